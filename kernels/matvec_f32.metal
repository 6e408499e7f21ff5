// matvec_f32: y = W x and y += W x, with W (out_dim, in_dim) in floats: no decoding at all, the
// roof of the other formats.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/floats.h.
// The kernels that take rows of any length read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "formats/floats.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(f32, f32_single)
MATVEC_TOKEN_BY_TOKEN(f32, f32_single)
MATVEC_MANY_TOKENS(f32, f32_single)
MATVEC_TILED(f32, tile_floats<f32>)
