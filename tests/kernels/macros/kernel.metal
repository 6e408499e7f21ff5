// Kernels that are macros, with the bugs of which tests/transcripts/launch.txt wants the lines.
#include <metal_stdlib>
#include "bodies.h"
using namespace metal;

#define NAME(op, type) op##_##type
#define TEXT(x) #x
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define KERNEL(op, type) \
/* a comment
   of two lines */ \
kernel void NAME(op, type)(device type *x [[buffer(0)]], constant uint &n [[buffer(1)]], \
                           uint i [[thread_position_in_grid]]) { \
    const constant char *name = TEXT(type); /* becomes a string */ \
    type sum = type(name[0]) + \
               x[i + n]; \
    STORE_PAST(x, i, \
               n) \
    x[i] = LARGER(sum, \
                  type(1)); \
}

KERNEL(add, float)
KERNEL(add,
       half)

kernel void beside(device float *x [[buffer(0)]], constant uint &n [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    STORE_PAST(x, i, n) x[i + 2 * n] = 3;
    x[i + 3 * n] = 4;
}

#ifdef BROKEN
KERNEL(broken, nothing)
#endif
