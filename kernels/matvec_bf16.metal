// matvec_bf16: y = W x and y += W x, with W (out_dim, in_dim) in bfloats: the format models are
// trained in.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/floats.h.
// The kernels that take rows of any length read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "formats/floats.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(bf16, bf16_single)
MATVEC_TOKEN_BY_TOKEN(bf16, bf16_single)
MATVEC_MANY_TOKENS(bf16, bf16_single)
MATVEC_TILED(bf16, tile_floats<bf16>)
