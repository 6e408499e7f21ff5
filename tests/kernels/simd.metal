// Every simdgroup and quadgroup function, with all lanes or with the lanes of a mask.
//
// One simdgroup a threadgroup. Lanes whose bit in `mask` is not set do not take part and write
// nothing. `op` chooses the function (the same for all lanes); tests/test_simd.c has the same list
// as a scalar model.
#include <metal_stdlib>
using namespace metal;

template <typename T> T reduce(T x, uint op, uint arg) {
    const ushort n = ushort(arg);
    switch (op) {
    case 0: return simd_sum(x);
    case 1: return simd_max(x);
    case 2: return simd_min(x);
    case 3: return simd_product(x);
    case 4: return simd_shuffle(x, n);
    case 5: return simd_shuffle_xor(x, n);
    case 6: return simd_shuffle_up(x, n);
    case 7: return simd_shuffle_down(x, n);
    case 8: return simd_broadcast(x, n);
    case 9: return simd_broadcast_first(x);
    case 10: return simd_prefix_inclusive_sum(x);
    case 11: return simd_prefix_exclusive_sum(x);
    case 12: return simd_prefix_inclusive_product(x);
    case 13: return simd_prefix_exclusive_product(x);
    case 14: return simd_shuffle_rotate_up(x, n);
    case 15: return simd_shuffle_rotate_down(x, n);
    case 16: return quad_sum(x);
    case 17: return quad_max(x);
    case 18: return quad_min(x);
    case 19: return quad_product(x);
    case 20: return quad_shuffle(x, n);
    case 21: return quad_shuffle_xor(x, n);
    case 22: return quad_shuffle_up(x, n);
    case 23: return quad_shuffle_down(x, n);
    case 24: return quad_broadcast(x, n);
    case 25: return simd_shuffle_and_fill_up(x, T(77), n);
    case 26: return simd_shuffle_and_fill_down(x, T(77), n);
    }
    return T(0);
}

kernel void simd_float(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                       constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                       constant uint &arg [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    if (mask >> lane & 1)
        out[lane] = reduce(in[lane], op, arg);
}

kernel void simd_int(device const int *in [[buffer(0)]], device int *out [[buffer(1)]],
                     constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                     constant uint &arg [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    if (mask >> lane & 1)
        out[lane] = reduce(in[lane], op, arg);
}

kernel void simd_half(device const half *in [[buffer(0)]], device half *out [[buffer(1)]],
                      constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                      constant uint &arg [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
    if (mask >> lane & 1)
        out[lane] = reduce(in[lane], op, arg);
}

// The component that `arg >> 8` names of a vector reduction.
kernel void simd_float4(device const float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                        constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                        constant uint &arg [[buffer(4)]],
                        uint lane [[thread_index_in_simdgroup]]) {
    if (mask >> lane & 1)
        out[lane] = reduce(in[lane], op, arg);
}

kernel void simd_bits(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],
                      constant uint &mask [[buffer(2)]], constant uint &op [[buffer(3)]],
                      uint lane [[thread_index_in_simdgroup]]) {
    if (!(mask >> lane & 1))
        return;
    const uint x = in[lane];
    switch (op) {
    case 0: out[lane] = simd_and(x); break;
    case 1: out[lane] = simd_or(x); break;
    case 2: out[lane] = simd_xor(x); break;
    case 3: out[lane] = uint(simd_vote::vote_t(simd_ballot(x & 1))); break;
    case 4: out[lane] = simd_any(x & 1); break;
    case 5: out[lane] = simd_all(x & 1); break;
    case 6: out[lane] = simd_is_first(); break;
    case 7: out[lane] = uint(simd_vote::vote_t(simd_active_threads_mask())); break;
    case 8: out[lane] = quad_and(x); break;
    case 9: out[lane] = quad_or(x); break;
    case 10: out[lane] = quad_xor(x); break;
    case 11: out[lane] = quad_any(x & 1); break;
    case 12: out[lane] = quad_all(x & 1); break;
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
