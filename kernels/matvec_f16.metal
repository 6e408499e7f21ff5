// matvec_f16: y = W x and y += W x, with W (out_dim, in_dim) in halves: how files store rows that
// are not whole blocks.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/floats.h.
// The kernels that take rows of any length read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "formats/floats.h"
#include "matvec_matrix.h"
#include "matvec_rows.h"
#include "matvec_tiled.h"

MATVEC_ONE_TOKEN(f16, f16_single)
MATVEC_TOKEN_BY_TOKEN(f16, f16_single)
MATVEC_MANY_TOKENS(f16, f16_single)
MATVEC_TILED(f16, tile_floats<f16>)
MATVEC_TILED_SIZE(f16, tile_floats<f16>, split)
MATVEC_MATRIX(f16, tile_floats<f16>)
