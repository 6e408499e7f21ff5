// matvec_q4_k: y = W x and y += W x, with W (out_dim, in_dim) in Q4_K blocks: most matrices of a
// Q4_K_M file.
//
// row.h says what a thread and a threadgroup do; the format is in formats/q4_k.h.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q4_k.h"
#include "per_thread.h"
#include "vec16.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"

MATVEC_MANY_TOKENS(q4_k, q4_k)
MATVEC_PER_THREAD(q4_k)
MATVEC_VEC16(q4_k)
MATVEC_TILED(q4_k, q4_k_tiles)
MATVEC_TILED_SIZE(q4_k, q4_k_tiles, split_k)
MATVEC_MATRIX(q4_k, q4_k_tiles)
