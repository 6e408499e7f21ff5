/* Kernels as others write them, for tests of `bench --against`: a matrix of floats times vectors,
 * with the output first, one struct of arguments, a function constant, float4 loads and threadgroup
 * memory from the launch. Some are wrong on purpose. */
#include <metal_stdlib>
using namespace metal;

typedef struct {
    int columns, rows;
    ulong row_bytes;
    int tokens;
    short unused;
} others_args;

constant short others_simdgroups [[function_constant(40)]];

/* One row per threadgroup, whose simdgroups share it. */
static float others_dot(constant others_args &args, device const char *matrix,
                        device const float *vector, threadgroup float *partial, uint row,
                        int columns, ushort lane, ushort simdgroup) {
    device const float4 *w = (device const float4 *)(matrix + row * args.row_bytes);
    device const float4 *x = (device const float4 *)vector;
    float sum = 0;
    for (int i = simdgroup * 32 + lane; i < columns / 4; i += 32 * others_simdgroups)
        sum += dot(w[i], x[i]);
    sum = simd_sum(sum);
    if (lane == 0)
        partial[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0;
    for (short i = 0; i < others_simdgroups; i++)
        total += partial[i];
    return total;
}

#define OTHERS(name, width, place, value)                                                          \
    kernel void name(device float *dst [[buffer(0)]], constant others_args &args [[buffer(1)]],    \
                     device const float *vectors [[buffer(2)]],                                    \
                     device const char *matrix [[buffer(4)]],                                      \
                     threadgroup float *partial [[threadgroup(0)]],                                \
                     uint3 group [[threadgroup_position_in_grid]],                                 \
                     ushort lane [[thread_index_in_simdgroup]],                                    \
                     ushort simdgroup [[simdgroup_index_in_threadgroup]]) {                        \
        float sum = others_dot(args, matrix, vectors + group.y * args.columns, partial, group.x,   \
                               width, lane, simdgroup);                                            \
        uint at = group.y * args.rows + group.x;                                                   \
        if (simdgroup == 0 && lane == 0)                                                           \
            dst[place] = value;                                                                    \
    }

/* By its bits: under fast math no float is NaN. */
static bool others_is_nan(device const float *x) {
    return (*(device const uint *)x & 0x7F800000) == 0x7F800000;
}

OTHERS(others_right, args.columns, at, sum)
/* Leaves out the last four columns. */
OTHERS(others_short, args.columns - 4, at, sum)
/* Every row one place too far: the first is never written, the last is outside. */
OTHERS(others_outside, args.columns, at + 1, sum)
/* Far outside. */
OTHERS(others_crash, args.columns, at + ((ulong)1 << 40), sum)
/* Right where nothing was written before, and only there. */
OTHERS(others_once, args.columns, at, others_is_nan(&dst[at]) ? sum : sum + 1)
