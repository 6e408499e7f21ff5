// matvec_blocks: y = W x and y += W x for every format that formats.h lists as `blocks`: those that
// need no kernels of their own.
//
// row.h and tiled.h say what a thread and a threadgroup do; a format is in formats/<format>.h.
#include <metal_stdlib>
using namespace metal;

#include "../formats/formats.h"
#include "per_thread.h"
#include "matrix.h"
#include "row.h"
#include "tiled.h"

#define KERNELS_parts(f)
#define KERNELS_floats(f)
#define KERNELS_blocks(f)                                                                          \
    MATVEC_ONE_TOKEN(f, f)                                                                         \
    MATVEC_MANY_TOKENS(f, f)                                                                       \
    MATVEC_PER_THREAD(f)                                                                                \
    MATVEC_TILED(f, tile_units<f>)
#define KERNELS(f, kind, ...) KERNELS_##kind(f)
FORMATS(KERNELS)

#define MATRICES(f)                                                                                \
    MATVEC_MATRIX(f, tile_numbers<f##_numbers>)                                                    \
    MATVEC_MATRIX_SPLIT(f, tile_numbers<f##_numbers>)
MATRICES(q4_1)
MATRICES(q5_0)
MATRICES(q5_1)
MATVEC_MATRIX(q5_k, tile_units<q5_k>)
