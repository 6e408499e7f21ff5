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

#include "arguments.h"
#include "prefetch.h"
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
                                SIMDGROUP_PLACE) {
    const uint index = group * 8 + sg;
    if (index >= tokens * heads)
        return;
    PREFETCHED(0); // only the scalars
    const one_simdgroup team = {lane};
    PREPARE(team, index);
}

// One thread per head of a token, for the software device.
kernel void time_mix_v7_prepare_per_thread(PREPARE_ARGUMENTS, uint index [[thread_position_in_grid]]) {
    if (index >= tokens * heads)
        return;
    const single_thread team = {};
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
                               SIMDGROUP_PLACE) {
    const uint index = group * 8 + sg;
    if (index >= tokens * heads)
        return;
    PREFETCHED(0); // only the scalars
    const one_simdgroup team = {lane};
    FINISH(team, index);
}

// One thread per head of a token, for the software device.
kernel void time_mix_v7_finish_per_thread(FINISH_ARGUMENTS, uint index [[thread_position_in_grid]]) {
    if (index >= tokens * heads)
        return;
    const single_thread team = {};
    FINISH(team, index);
}

inline float total(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

// The state of a row as a quad works on it: lane `part` has float4s part, part + 4, ... In registers
// for heads of up to 64, where it arrives while other things are computed; where it is for larger
// ones, which would need too many.
struct held_row {
    device float4 *row;
    uint part, wides;
    float4 s[4];

    METAL_FUNC void load() {
        for (uint p = 0; p < 4; p++)
            s[p] = part + 4 * p < wides ? row[part + 4 * p] : float4(0.0f);
    }
    METAL_FUNC uint count() const { return 4; }
    METAL_FUNC float4 get(uint p) const { return s[p]; }
    METAL_FUNC void set(uint p, float4 v) { s[p] = row[part + 4 * p] = v; }
};

struct placed_row {
    device float4 *row;
    uint part, wides;

    METAL_FUNC void load() {}
    METAL_FUNC uint count() const { return (wides + 3) / 4; }
    METAL_FUNC float4 get(uint p) const { return row[part + 4 * p]; }
    METAL_FUNC void set(uint p, float4 v) { row[part + 4 * p] = v; }
};

// What a token reads and writes, and whose threads work on it.
struct token_vectors {
    device const float *k, *v, *a, *k_k, *k_a, *v_gate, *v_first, *r, *w, *g, *r_k, *norm_w, *norm_b;
    device float *state, *y;
    uint size, mixes_v;
    float eps;
};
struct token_thread {
    uint head, index, lane, sg, sg_count;
};

// Threads 0 to size - 1 make the vectors of the head in threadgroup memory, each its own channel;
// then each quad does its row, which is an S.
template <typename S>
METAL_FUNC void mix_token(thread const token_vectors &x, token_thread me,
                          threadgroup float4 *vectors, threadgroup float *values,
                          threadgroup float *partial) {
    const uint at = me.head * x.size;
    const uint part = me.index % 4;
    const bool has_row = me.index / 4 < x.size; // a small head has fewer rows than quads
    const uint row = has_row ? me.index / 4 : 0;
    const uint wides = has_row ? x.size / 4 : 0;
    S own;
    own.row = (device float4 *)(x.state + size_t(at + row) * x.size);
    own.part = part;
    own.wides = wides;
    own.load();

    threadgroup float4 *r = vectors;
    threadgroup float4 *w = vectors + 64;
    threadgroup float4 *k = vectors + 128;
    threadgroup float4 *kk = vectors + 192;
    threadgroup float4 *b = vectors + 256;
    float raw = 0.0f;
    float bonus = 0.0f;
    float rate = 0.0f;
    if (me.index < x.size) {
        const uint c = at + me.index;
        rate = x.a[c];
        raw = x.k[c] * x.k_k[c];
        const float key = x.k[c] * (1.0f + (rate - 1.0f) * x.k_a[c]);
        bonus = x.r[c] * key * x.r_k[c];
        ((threadgroup float *)r)[me.index] = x.r[c];
        ((threadgroup float *)w)[me.index] = x.w[c];
        ((threadgroup float *)k)[me.index] = key;
        values[me.index] = x.mixes_v ? x.v[c] + (x.v_first[c] - x.v[c]) * x.v_gate[c] : x.v[c];
    }
    const float squares = threadgroup_sum(raw * raw, partial, me.lane, me.sg, me.sg_count);
    const float unit = raw * rsqrt(max(squares, SHORTEST * SHORTEST));
    if (me.index < x.size) {
        ((threadgroup float *)kk)[me.index] = unit;
        ((threadgroup float *)b)[me.index] = unit * rate;
    }
    // The barrier of this sum is also that of the vectors.
    bonus = threadgroup_sum(bonus, partial + 32, me.lane, me.sg, me.sg_count);

    const float value = values[row];
    float4 dots = float4(0.0f);
    for (uint p = 0; p < own.count(); p++)
        if (part + 4 * p < wides)
            dots = fma(own.get(p), kk[part + 4 * p], dots);
    const float sa = -quad_sum(total(dots));
    float4 sums = float4(0.0f);
    for (uint p = 0; p < own.count(); p++)
        if (part + 4 * p < wides) {
            const uint j = part + 4 * p;
            own.set(p, fma(float4(sa), b[j], fma(float4(value), k[j], own.get(p) * w[j])));
            sums = fma(own.get(p), r[j], sums);
        }
    const float out = quad_sum(total(sums));

    const bool is_first = has_row && part == 0;
    const float mean =
        threadgroup_sum(is_first ? out : 0.0f, partial + 64, me.lane, me.sg, me.sg_count) /
        float(x.size);
    const float difference = is_first ? out - mean : 0.0f;
    const float variance = threadgroup_sum(difference * difference, partial + 96, me.lane, me.sg,
                                           me.sg_count) /
                           float(x.size);
    if (is_first) {
        const uint c = at + row;
        const float normal = difference * rsqrt(variance + x.eps);
        x.y[c] = (normal * x.norm_w[c] + x.norm_b[c] + bonus * value) * x.g[c];
    }
}

// Everything for one token: prepare, the recurrence (time_mix_v7.metal), finish. One threadgroup
// per head, one quad per row of its state. Reads and writes the state once and everything else
// once; what was 11 launches is one, with four barriers.
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
    SIMDGROUP_PLACE, uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[128];
    threadgroup float4 vectors[5 * 64]; // r, w, k, kk, kk * a
    threadgroup float values[256];
    PREFETCHED(0); // only the scalars
    const token_vectors x = {k, v, a,   k_k,    k_a,    v_gate, v_first, r,       w,
                             g, r_k, norm_w, norm_b, state,  y,       size, mixes_v, eps};
    const token_thread me = {head, index, lane, sg, sg_count};
    if (size <= 64)
        mix_token<held_row>(x, me, vectors, values, partial);
    else
        mix_token<placed_row>(x, me, vectors, values, partial);
}
