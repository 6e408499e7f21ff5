// matvec_q8_0: y = W x and y += W x, with W (out_dim, in_dim) in Q8_0 blocks: the head of a small
// model, whose embeddings need more than 4 bits.
//
// row.h says what a thread and a threadgroup do; the format is in formats/q8_0.h.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q8_0.h"
#include "per_thread.h"
#include "vec16.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"

MATVEC_MANY_TOKENS(q8_0, q8_0)
MATVEC_PER_THREAD(q8_0)
MATVEC_VEC16(q8_0)
MATVEC_TILED(q8_0, q8_0_tiles)
MATVEC_TILED_SIZE(q8_0, q8_0_tiles, split_k)
MATVEC_MATRIX(q8_0, tile_numbers<q8_0_numbers>)
