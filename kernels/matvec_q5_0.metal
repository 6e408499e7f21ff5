// matvec_q5_0: y = W x and y += W x, with W (out_dim, in_dim) in Q5_0 blocks.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/q5_0.h.
#include <metal_stdlib>
using namespace metal;

#include "formats/q5_0.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(q5_0, q5_0)
MATVEC_MANY_TOKENS(q5_0, q5_0)
MATVEC_TILED(q5_0, tile_units<q5_0>)
