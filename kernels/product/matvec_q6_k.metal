// matvec_q6_k: y = W x and y += W x, with W (out_dim, in_dim) in Q6_K blocks: the head of most
// quantised models.
//
// row.h says what a thread and a threadgroup do; the format is in formats/q6_k.h.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q6_k.h"
#include "per_thread.h"
#include "vec16.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"

MATVEC_MANY_TOKENS(q6_k, q6_k)
MATVEC_PER_THREAD(q6_k)
MATVEC_VEC16(q6_k)
MATVEC_TILED(q6_k, q6_k_tiles)
MATVEC_TILED_SIZE(q6_k, q6_k_tiles, split_k)
MATVEC_MATRIX(q6_k, q6_k_tiles)
