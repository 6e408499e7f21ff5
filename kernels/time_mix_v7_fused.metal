// time_mix_v7_prepare, time_mix_v7_finish, time_mix_v7_token: what stands before and after the
// recurrence of RWKV-7, each in one launch, and all of it in one launch for one token.
//
// Before, per head of a token:
//   v  = v + (v_first - v) * v_gate     in layers after the first
//   kk = k * k_k / max(|k * k_k|, 1e-12)
//   k  = k * (1 + (a - 1) * k_a)
// After:
//   y  = (group_norm(y) * norm_w + norm_b + (sum of r * k * r_k) * v) * g
#include <metal_stdlib>
using namespace metal;

#include "teams.h"

constant float SHORTEST = 1e-12f; // a key that is shorter is not normalised

// packed (4, tokens, dim) = k, v, a, kk, of one head of a token; pointers are to its values.
template <typename T>
METAL_FUNC void prepare(T team, device const float *k, device const float *v, device const float *a,
                        device const float *k_k, device const float *k_a,
                        device const float *v_gate, device const float *v_first, bool mixes_v,
                        device float *packed, size_t plane, uint size) {
    float squares = 0.0f;
    for (uint i = team.first(); i < size; i += team.step())
        squares += k[i] * k_k[i] * (k[i] * k_k[i]);
    const float inverse = rsqrt(max(team.sum(squares, 0), SHORTEST * SHORTEST));
    for (uint i = team.first(); i < size; i += team.step()) {
        packed[i] = k[i] * (1.0f + (a[i] - 1.0f) * k_a[i]);
        packed[plane + i] = mixes_v ? v[i] + (v_first[i] - v[i]) * v_gate[i] : v[i];
        packed[2 * plane + i] = a[i];
        packed[3 * plane + i] = k[i] * k_k[i] * inverse;
    }
}

// y of one head of a token, in place.
template <typename T>
METAL_FUNC void finish(T team, device const float *r, device const float *k, device const float *v,
                       device const float *g, device const float *r_k, device const float *norm_w,
                       device const float *norm_b, device float *y, uint size, float eps) {
    float sum = 0.0f;
    float bonus = 0.0f;
    for (uint i = team.first(); i < size; i += team.step()) {
        sum += y[i];
        bonus += r[i] * k[i] * r_k[i];
    }
    const float mean = team.sum(sum, 0) / float(size);
    bonus = team.sum(bonus, 1);
    float squares = 0.0f;
    for (uint i = team.first(); i < size; i += team.step())
        squares += (y[i] - mean) * (y[i] - mean);
    const float inverse = rsqrt(team.sum(squares, 2) / float(size) + eps);
    for (uint i = team.first(); i < size; i += team.step())
        y[i] = ((y[i] - mean) * inverse * norm_w[i] + norm_b[i] + bonus * v[i]) * g[i];
}

// Arguments of prepare, for a head of a token by a simdgroup or by one thread.
#define PREPARE_ARGUMENTS                                                                          \
    device const float *k [[buffer(0)]], device const float *v [[buffer(1)]],                      \
        device const float *a [[buffer(2)]], device const float *k_k [[buffer(3)]],                \
        device const float *k_a [[buffer(4)]], device const float *v_gate [[buffer(5)]],           \
        device const float *v_first [[buffer(6)]], device float *packed [[buffer(7)]],             \
        constant uint &tokens [[buffer(8)]], constant uint &heads [[buffer(9)]],                   \
        constant uint &head_size [[buffer(10)]], constant uint &mixes_v [[buffer(11)]]
#define PREPARE(team, index)                                                                       \
    const size_t at = size_t(index) * head_size;                                                   \
    const uint weights = index % heads * head_size;                                                \
    prepare(team, k + at, v + at, a + at, k_k + weights, k_a + weights, v_gate + at, v_first + at, \
            mixes_v != 0, packed + at, size_t(tokens) * heads * head_size, head_size)

// A threadgroup of 256 does 8 heads of any tokens, one simdgroup each.
kernel void time_mix_v7_prepare(PREPARE_ARGUMENTS, uint group [[threadgroup_position_in_grid]],
                                uint sg [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
    const uint index = group * 8 + sg;
    if (index >= tokens * heads)
        return;
    const one_simdgroup team = {lane};
    PREPARE(team, index);
}

// One thread per head of a token, for the software device.
kernel void time_mix_v7_prepare_alone(PREPARE_ARGUMENTS, uint index [[thread_position_in_grid]]) {
    if (index >= tokens * heads)
        return;
    const lone_thread team = {};
    PREPARE(team, index);
}

#define FINISH_ARGUMENTS                                                                           \
    device const float *r [[buffer(0)]], device const float *packed [[buffer(1)]],                 \
        device const float *g [[buffer(2)]], device const float *r_k [[buffer(3)]],                \
        device const float *norm_w [[buffer(4)]], device const float *norm_b [[buffer(5)]],        \
        device float *y [[buffer(6)]], constant uint &tokens [[buffer(7)]],                        \
        constant uint &heads [[buffer(8)]], constant uint &head_size [[buffer(9)]],                \
        constant float &eps [[buffer(10)]]
#define FINISH(team, index)                                                                        \
    const size_t at = size_t(index) * head_size;                                                   \
    const uint weights = index % heads * head_size;                                                \
    const size_t plane = size_t(tokens) * heads * head_size;                                       \
    finish(team, r + at, packed + at, packed + plane + at, g + at, r_k + weights,                  \
           norm_w + weights, norm_b + weights, y + at, head_size, eps)

// A threadgroup of 256 does 8 heads of any tokens, one simdgroup each.
kernel void time_mix_v7_finish(FINISH_ARGUMENTS, uint group [[threadgroup_position_in_grid]],
                               uint sg [[simdgroup_index_in_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]]) {
    const uint index = group * 8 + sg;
    if (index >= tokens * heads)
        return;
    const one_simdgroup team = {lane};
    FINISH(team, index);
}

// One thread per head of a token, for the software device.
kernel void time_mix_v7_finish_alone(FINISH_ARGUMENTS, uint index [[thread_position_in_grid]]) {
    if (index >= tokens * heads)
        return;
    const lone_thread team = {};
    FINISH(team, index);
}

inline float total(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

// Everything for one token: prepare, the recurrence (time_mix_v7.metal), finish. One threadgroup
// per head, one quad per row of its state. Threads 0 to head_size - 1 make the vectors of the head
// in threadgroup memory, each its own channel; then lane `part` of a quad takes float4s part,
// part + 4, ... of its row. Reads and writes the state once and everything else once; what was 11
// launches is one, with five barriers.
kernel void time_mix_v7_token(
    device const float *k [[buffer(0)]], device const float *v [[buffer(1)]],
    device const float *a [[buffer(2)]], device const float *k_k [[buffer(3)]],
    device const float *k_a [[buffer(4)]], device const float *v_gate [[buffer(5)]],
    device const float *v_first [[buffer(6)]], device const float *r [[buffer(7)]],
    device const float *w [[buffer(8)]], device const float *g [[buffer(9)]],
    device const float *r_k [[buffer(10)]], device const float *norm_w [[buffer(11)]],
    device const float *norm_b [[buffer(12)]], device float *state [[buffer(13)]],
    device float *y [[buffer(14)]], constant uint &size [[buffer(15)]],
    constant uint &mixes_v [[buffer(16)]], constant float &eps [[buffer(17)]],
    uint head [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
    uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[128];
    threadgroup float4 vectors[5][64]; // r, w, k, kk, kk * a
    threadgroup float values[256];
    const uint at = head * size;
    float keys = 0.0f;
    float raw = 0.0f;
    float bonus = 0.0f;
    if (index < size) {
        const uint c = at + index;
        raw = k[c] * k_k[c];
        keys = k[c] * (1.0f + (a[c] - 1.0f) * k_a[c]);
        bonus = r[c] * keys * r_k[c];
        ((threadgroup float *)vectors[0])[index] = r[c];
        ((threadgroup float *)vectors[1])[index] = w[c];
        ((threadgroup float *)vectors[2])[index] = keys;
        values[index] = mixes_v ? v[c] + (v_first[c] - v[c]) * v_gate[c] : v[c];
    }
    const float squares = threadgroup_sum(raw * raw, partial, lane, sg, sg_count);
    const float inverse_length = rsqrt(max(squares, SHORTEST * SHORTEST));
    if (index < size) {
        const float kk = raw * inverse_length;
        ((threadgroup float *)vectors[3])[index] = kk;
        ((threadgroup float *)vectors[4])[index] = kk * a[at + index];
    }
    bonus = threadgroup_sum(bonus, partial + 32, lane, sg, sg_count); // its barrier is for all

    const uint part = index % 4;
    const bool is_owner = index / 4 < size; // a small head has fewer rows than a simdgroup has quads
    const uint row = is_owner ? index / 4 : 0;
    const float value = values[row];
    const uint end = is_owner ? size / 4 : 0;
    device float4 *s = (device float4 *)(state + size_t(at + row) * size);
    float4 dots = float4(0.0f);
    for (uint j = part; j < end; j += 4)
        dots = fma(s[j], vectors[3][j], dots);
    const float sa = -quad_sum(total(dots));
    float4 sums = float4(0.0f);
    for (uint j = part; j < end; j += 4) {
        s[j] = fma(float4(sa), vectors[4][j],
                   fma(float4(value), vectors[2][j], s[j] * vectors[1][j]));
        sums = fma(s[j], vectors[0][j], sums);
    }
    const float out = quad_sum(total(sums));

    const bool is_first = is_owner && part == 0;
    const float mean =
        threadgroup_sum(is_first ? out : 0.0f, partial + 64, lane, sg, sg_count) / float(size);
    const float difference = is_first ? out - mean : 0.0f;
    const float variance =
        threadgroup_sum(difference * difference, partial + 96, lane, sg, sg_count) / float(size);
    if (is_first) {
        const uint c = at + row;
        y[c] = (difference * rsqrt(variance + eps) * norm_w[c] + norm_b[c] + bonus * value) * g[c];
    }
}
