#include <metal_stdlib>
using namespace metal;

/* One simdgroup; the tests know the counts of each line. */
kernel void accesses(device const float *x [[buffer(0)]], device const float4 *v [[buffer(1)]],
                     device float *y [[buffer(2)]], device atomic_uint *count [[buffer(3)]],
                     constant uint &n [[buffer(4)]], uint lane [[thread_position_in_grid]]) {
    float a = x[lane * 8];
    float b = x[lane + 1];
    float c = x[0];
    float4 d = v[lane];
    float sum = 0;
    for (uint i = 0; i < n; i++)
        sum += x[i * 32 + lane] * x[i * 32 + lane];
    atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    y[lane] = a + b + c + d.x + d.y + d.z + d.w + sum;
    if (lane % 2 == 1)
        y[lane + 32] = precise::sin(a);
}

kernel void banks(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                  uint i [[thread_position_in_threadgroup]]) {
    threadgroup float s[1024];
    s[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float a = s[i % 32 * 32];
    float b = s[i ^ 1];
    y[i] = simd_sum(a) + b;
}

kernel void pieces(device const packed_float4 *p [[buffer(0)]], device const float4 *v [[buffer(1)]],
                   device float *y [[buffer(2)]], constant float &scale [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    const float4 a = p[i];
    const float4 b = v[i];
    y[i] = dot(a, b) * scale;
}

kernel void endless(device float *y [[buffer(0)]]) {
    while (y[0] == 0)
        y[1] += 1;
}

kernel void wild(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    device float *p = (device float *)(ulong)(y[0] == 0 ? i + 8 : 0);
    *p = 1;
}

kernel void copies(device const float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                   device const float *x [[buffer(2)]], constant uint &n [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    threadgroup float4 s[32];
    float own[64];
    s[i] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = s[i ^ 1];
    for (uint k = 0; k < n; k++)
        own[k] = x[k];
    out[i + 32] = float4(own[n - 1 - i]);
}

kernel void wide_banks(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup float4 s[160];
    for (uint k = 0; k < 5; k++)
        s[32 * k + i] = float4(i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup const float2 *p = (threadgroup const float2 *)(s + 5 * i);
    float sum = 0;
    for (uint k = 0; k < 4; k++)
        sum += p[k].x * p[k].y - p[4 + k].x * p[4 + k].y;
    threadgroup const float2 *row = (threadgroup const float2 *)(s + i / 4 * 10);
    sum += row[0].x * row[0].y;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (i % 8 != 3)
        s[i] = float4(sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = s[31 - i].x;
}

// The next turn's w is loaded while one is multiplied, for nothing in the last turn.
#include "../../kernels/prefetch.h"
kernel void ahead(device const float *w [[buffer(0)]],
                  device const float *x [[buffer(1)]],
                  device float *y [[buffer(2)]],
                  constant uint &n [[buffer(3)]],
                  uint lane [[thread_index_in_simdgroup]]) {
    float next = w[lane], sum = 0.0f;
    PREFETCHED(1);
    for (uint i = lane; i < n; i += 32) {
        const float now = next;
        next = w[min(i + 32, n - 1)];
        sum += now * x[i];
    }
    y[lane] = sum;
}
