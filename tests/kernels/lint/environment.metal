#include <metal_stdlib>
using namespace metal;
#include "environment.h"

#ifdef __ASSAY__ // mistake
#define LESS_WORK
#endif
#if defined(__clang__) && __clang_major__ > 14 // mistake
#define WITH_CLANG
#elif __has_builtin(__builtin_amdgcn_s_barrier) // mistake
#endif
#if __has_include("secrets.h") // mistake
#endif
#if !defined(__APPLE__) // mistake
#endif
#define IS_NVIDIA __CUDA_ARCH__ // mistake
/* not one: __aarch64__ */ // nor this: __linux__

kernel void fine(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
    if (i < count)
        y[i] = float(sizeof("__TIME__"));
}

kernel void names_its_file(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
    if (i < count)
        y[i] = float(sizeof(__FILE__)); // mistake
}
