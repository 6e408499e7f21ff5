// Kernels that the tests of `assay launch` run.
#include <metal_stdlib>
using namespace metal;

constant uint stride [[function_constant(0)]];
constant bool doubled [[function_constant(1)]];

struct settings {
    uint count;
    float scale;
};

kernel void scale_inplace(device float *x [[buffer(0)]], constant float &factor [[buffer(1)]],
                          constant uint &count [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
    if (i < count)
        x[i] *= factor;
}

kernel void copy_f16(device const half *x [[buffer(0)]], device half *y [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
}

kernel void copy_bf16(device const bfloat *x [[buffer(0)]], device bfloat *y [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
}

kernel void copy_u64(device const ulong *x [[buffer(0)]], device ulong *y [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
}

kernel void copy_i8(device const char *x [[buffer(0)]], device char *y [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
}

kernel void with_struct(constant settings &s [[buffer(0)]], device float *y [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    if (i < s.count)
        y[i] = s.scale;
}

kernel void specialised(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[i] = i * stride * (doubled ? 2u : 1u);
}

kernel void reverses(device int *x [[buffer(0)]], threadgroup int *tile [[threadgroup(0)]],
                     ushort i [[thread_position_in_threadgroup]],
                     ushort n [[threads_per_threadgroup]]) {
    tile[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = tile[n - 1 - i];
}

kernel void where_am_i(device uint *y [[buffer(0)]], uint2 at [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]]) {
    y[at.y * size.x + at.x] = at.y * 100 + at.x;
}

kernel void writes_past(device float *y [[buffer(0)]], constant uint &count [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    if (i <= count)
        y[i] = 1.0f;
}

kernel void crashes(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    y[i + ((ulong)1 << 43)] = 1.0f;
}

kernel void hangs(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    for (volatile uint n = 1; n != 0;)
        n = n | 1u;
    y[i] = 1.0f;
}

// Waits n times for the threadgroup, or for ever: 0.
kernel void waits(device float *y [[buffer(0)]], constant uint &n [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    for (uint k = 0; n == 0 || k < n; k++) {
        for (uint j = 0; j < 60; j++)
            y[i] = float(k + j);
        threadgroup_barrier(mem_flags::mem_device);
    }
}

kernel void stores_far(device float *y [[buffer(0)]], constant int &n [[buffer(1)]],
                       uint g [[threadgroup_position_in_grid]]) {
    y[int(g) * n] = 1;
}

kernel void multiplies(device atomic_float *y [[buffer(0)]]) {
    float old = atomic_load_explicit(y, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(y, &old, 2 * old, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}
