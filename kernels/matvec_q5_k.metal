// matvec_q5_k: y = W x and y += W x, with W (out_dim, in_dim) in Q5_K blocks: most matrices of a
// Q5_K_M file.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/q5_k.h.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_k.h"
#include "formats/q5_k.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(q5_k, q5_k)
MATVEC_MANY_TOKENS(q5_k, q5_k)
MATVEC_TILED(q5_k, tile_units<q5_k>)
