// matvec_q4_1: y = W x and y += W x, with W (out_dim, in_dim) in Q4_1 blocks.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/q4_1.h.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_1.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(q4_1, q4_1)
MATVEC_MANY_TOKENS(q4_1, q4_1)
MATVEC_TILED(q4_1, tile_units<q4_1>)
