// Every simdgroup and quadgroup function, with all lanes or with the lanes of a mask.
//
// One simdgroup a threadgroup. Lanes whose bit in `mask` is not set do not take part and write
// nothing. `asked` has the function and its argument, the same for all lanes; tests/test_simd.c has the
// same list as a scalar model.
#include <metal_stdlib>
using namespace metal;

#define FAMILY(prefix, first)                                                                      \
    case first + 0: return prefix##_sum(x);                                                        \
    case first + 1: return prefix##_max(x);                                                        \
    case first + 2: return prefix##_min(x);                                                        \
    case first + 3: return prefix##_product(x);                                                    \
    case first + 4: return prefix##_shuffle(x, n);                                                 \
    case first + 5: return prefix##_shuffle_xor(x, n);                                             \
    case first + 6: return prefix##_shuffle_up(x, n);                                              \
    case first + 7: return prefix##_shuffle_down(x, n);                                            \
    case first + 8: return prefix##_broadcast(x, n);                                               \
    case first + 9: return prefix##_broadcast_first(x);                                            \
    case first + 10: return prefix##_prefix_inclusive_sum(x);                                      \
    case first + 11: return prefix##_prefix_exclusive_sum(x);                                      \
    case first + 12: return prefix##_prefix_inclusive_product(x);                                  \
    case first + 13: return prefix##_prefix_exclusive_product(x);                                  \
    case first + 14: return prefix##_shuffle_rotate_up(x, n);                                      \
    case first + 15: return prefix##_shuffle_rotate_down(x, n);                                    \
    case first + 16: return prefix##_shuffle_and_fill_up(x, T(77), n);                             \
    case first + 17: return prefix##_shuffle_and_fill_down(x, T(77), n);
#define BITS(prefix, first)                                                                        \
    case first + 18: return prefix##_and(x);                                                       \
    case first + 19: return prefix##_or(x);                                                        \
    case first + 20: return prefix##_xor(x);

template <typename T> T reduce(T x, uint op, uint arg) {
    const ushort n = ushort(arg);
    switch (op) {
        FAMILY(simd, 0)
        FAMILY(quad, 32)
    }
    if constexpr (is_integral_v<T>) {
        switch (op) {
            BITS(simd, 0)
            BITS(quad, 32)
        }
    }
    return T(0);
}

template <typename T>
kernel void simd_of(device const T *in [[buffer(0)]], device T *out [[buffer(1)]],
                    constant uint &mask [[buffer(2)]], device const uint2 *asked [[buffer(3)]],
                    uint group [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]]) {
    const uint at = 32 * group + lane;
    if (mask >> lane & 1)
        out[at] = reduce(in[at], asked[group].x, asked[group].y);
}
#define SIMD_OF(T) template [[host_name("simd_" #T)]] kernel decltype(simd_of<T>) simd_of<T>;
SIMD_OF(float)
SIMD_OF(half)
SIMD_OF(bfloat)
SIMD_OF(float4)
SIMD_OF(half2)
SIMD_OF(char)
SIMD_OF(uchar)
SIMD_OF(short)
SIMD_OF(ushort)
SIMD_OF(int)
SIMD_OF(uint)
SIMD_OF(long)
SIMD_OF(ulong)
SIMD_OF(ushort4)

#define VOTES(prefix, first)                                                                       \
    case first + 0: out[lane] = uint(prefix##_vote::vote_t(prefix##_ballot(x & 1))); break;        \
    case first + 1: out[lane] = prefix##_any(x & 1); break;                                        \
    case first + 2: out[lane] = prefix##_all(x & 1); break;                                        \
    case first + 3: out[lane] = prefix##_is_first(); break;                                        \
    case first + 4:                                                                                \
        out[lane] = uint(prefix##_vote::vote_t(prefix##_active_threads_mask()));                   \
        break;
kernel void simd_votes(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],
                       constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                       uint lane [[thread_index_in_simdgroup]]) {
    if (!(mask >> lane & 1))
        return;
    const uint x = in[lane];
    switch (op) {
        VOTES(simd, 0)
        VOTES(quad, 32)
    }
}

// Both arms of a divergent branch meet among themselves: the sums must not mix.
kernel void simd_both_arms(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                           constant uint &mask [[buffer(2)]],
                           uint lane [[thread_index_in_simdgroup]]) {
    float r;
    if (mask >> lane & 1)
        r = simd_sum(in[lane]);
    else
        r = simd_sum(in[lane]);
    out[lane] = r + 1000 * simd_sum(1.0f);
}

// Lane i goes round i times: at round k the lanes above k take part.
kernel void simd_uneven_loop(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                             uint lane [[thread_index_in_simdgroup]]) {
    float total = 0;
    for (uint k = 0; k < lane; k++)
        total += simd_sum(in[lane]);
    out[lane] = total;
}

// Different types wait at different calls at the same time.
kernel void simd_mixed_types(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                             uint lane [[thread_index_in_simdgroup]]) {
    float r = 0;
    if (lane % 3 == 0)
        r = simd_sum(float4(in[lane], 0, 0, 1)).w;
    else if (lane % 3 == 1)
        r = float(simd_max(ushort(lane)));
    else
        r = simd_shuffle_down(in[lane], ushort(3));
    simdgroup_barrier(mem_flags::mem_none);
    out[lane] = r;
}

// Each lane's pair is two times the same half, which LLVM makes by a product of integers.
kernel void turn_pairs(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    const half2 pair = clamp(half2(half(in[i] & 15u)), half2(0.75h), half2(1.5h));
    out[i] = as_type<uint>(simd_shuffle(pair, ushort(i + 1 & 31)));
}
