// matvec_floats: y = W x and y += W x, with W (out_dim, in_dim) in floats, which need no decoding: the
// roof of the other formats; in halves, how files store rows that are not whole blocks; and in
// bfloats, the format models are trained in.
//
// row.h and tiled.h say what a thread and a threadgroup do; the formats are in formats/floats.h. The
// kernels that take rows of any length read one weight at a time; the others read four and take rows
// that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "../formats/floats.h"
#include "per_thread.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"

#define FLOATS(f)                                                                                  \
    MATVEC_ONE_TOKEN(f, f##_single)                                                                \
    MATVEC_TOKEN_BY_TOKEN(f, f##_single)                                                           \
    MATVEC_MANY_TOKENS(f, f##_single)                                                              \
    MATVEC_PER_THREAD(f)                                                                                \
    MATVEC_TILED(f, tile_floats<f>)
FLOATS(f32)
FLOATS(f16)
FLOATS(bf16)
MATVEC_TILED_SIZE(f16, tile_floats<f16>, split_k)
MATVEC_MATRIX(f16, tile_halves<f16>)
MATVEC_MATRIX(bf16, tile_bfloats)
MATVEC_MATRIX(f32, tile_floats<f32>)
