// attention: what one simdgroup does with 32 keys at a time, shared by the attention kernels.
//
// Each lane takes a whole key, so that a score needs no reduction over lanes; the weights then pass
// through threadgroup memory, because for the values it is the other way round: a lane takes
// dimensions lane, lane + 32, ... of all keys, and the loads are coalesced. Nothing is kept per
// key: the softmax is online. A share has the largest score so far and holds its sums relative to
// it; when a larger one comes, they are scaled down. So any number of keys will do.
//
// The caches are (rows, n_kv_heads, head_dim), of floats or of halves. Where head_dim is a multiple of
// 4, every row of a head is aligned to four of them and is read so; otherwise one by one.
#pragma once

#include "arguments.h"

// Of every attention kernel; the caches are of T. `at`: where the tokens stand.
#define ATTENTION_ARGUMENTS(T, at)                                                                 \
    device const float *q [[buffer(0)]], device const T *k_cache [[buffer(1)]],                    \
        device const T *v_cache [[buffer(2)]], device float *out [[buffer(3)]],                    \
        constant uint &n_heads [[buffer(4)]], constant uint &n_kv_heads [[buffer(5)]],             \
        constant uint &head_dim [[buffer(6)]], constant uint &at [[buffer(7)]],                    \
        constant float &scale [[buffer(8)]]

constant uint KEYS = 32; // taken at a time, one per lane
constant uint PARTS = 8; // of a head, 32 dimensions each: head_dim is at most 256

// Four elements of a cache as they are loaded, and as floats. Four halves that wait for their use are two
// words: a compiler may keep a half in a register of its own.
template <typename T> struct cached_four { typedef float4 type; };
template <> struct cached_four<half> { typedef uint2 type; };
inline float4 cached_floats(float4 v) {
    return v;
}
inline float4 cached_floats(uint2 v) {
    return float4(as_type<half4>(v));
}

// Where the keys and values of one head are, and how to weigh them.
template <typename T> struct attention_head_of {
    uint head; // of the cache
    device const T *keys;
    device const T *values;
    uint stride; // elements from row to row
    uint head_dim;
    float scale;
};
typedef attention_head_of<float> attention_head;

// Query heads share the heads of the cache in equal runs: 9 of 3 are 0 0 0 1 1 1 2 2 2.
template <typename T>
inline attention_head_of<T> attention_find_head(device const T *k_cache, device const T *v_cache,
                                                uint head, uint n_heads, uint n_kv_heads,
                                                uint head_dim, float scale) {
    const uint shared = head * n_kv_heads / n_heads;
    const uint at = shared * head_dim;
    const attention_head_of<T> h = {shared,   k_cache + at, v_cache + at, n_kv_heads * head_dim,
                                    head_dim, scale};
    return h;
}

inline float attention_dot(device const float *q, device const float *k, uint head_dim) {
    float4 sums = float4(0.0f);
    if (head_dim % 4 == 0) {
        device const float4 *q4 = (device const float4 *)q;
        device const float4 *k4 = (device const float4 *)k;
        for (uint i = 0; i < head_dim / 4; i++)
            sums += q4[i] * k4[i];
    } else {
        for (uint i = 0; i < head_dim; i++)
            sums.x += q[i] * k[i];
    }
    return (sums.x + sums.y) + (sums.z + sums.w);
}

// The score of a missing key. Finite, because fast math assumes that nothing is infinite; half of
// the lowest float, so that its distance from a score is finite too. e to that distance is 0.
constant float NO_SCORE = -0.5f * FLT_MAX;

// A lane's part of the attention of one query to the keys its simdgroup has seen.
struct attention_share {
    float largest;      // score; the same in all lanes
    float sum;          // of the weights of this lane's keys
    float parts[PARTS]; // sums of weight * value, of dimensions lane, lane + 32, ...
};

// Adds keys first to first + count - 1 (1 to 32 of them) to the share; a lane without a key adds no
// weight. All 32 lanes must call it. weights has room for 32 and must be different memory than in
// the previous call: then one barrier is enough, because a lane that reaches the barrier of the
// next call has read what this one left.
inline void attention_add(thread attention_share &share, device const float *q, attention_head head,
                          uint first, uint count, threadgroup float *weights, uint lane) {
    device const float *keys = head.keys + size_t(first) * head.stride;
    device const float *values = head.values + size_t(first) * head.stride;
    float score = NO_SCORE;
    if (lane < count)
        score = head.scale * attention_dot(q, keys + lane * head.stride, head.head_dim);
    const float largest = max(share.largest, simd_max(score));
    const float fade = exp(share.largest - largest); // 0 at the first call
    const float weight = exp(score - largest);
    weights[lane] = weight;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    share.largest = largest;
    share.sum = fade * share.sum + weight;
    for (uint part = 0; part < PARTS; part++) {
        const uint d = 32 * part + lane;
        if (d < head.head_dim) {
            float sum = fade * share.parts[part];
            for (uint j = 0; j < count; j++)
                sum += weights[j] * values[j * head.stride + d];
            share.parts[part] = sum;
        }
    }
}

// The attention of q to 32 keys of every `step`, from `first` on. weights: room for 64.
inline attention_share attention_run(device const float *q, attention_head head, uint first,
                                     uint step, uint kv_len, threadgroup float *weights,
                                     uint lane) {
    attention_share share;
    share.largest = NO_SCORE;
    share.sum = 0.0f;
    for (uint part = 0; part < PARTS; part++)
        share.parts[part] = 0.0f;
    uint turn = 0;
    for (; first < kv_len; first += step) {
        attention_add(share, q, head, first, min(KEYS, kv_len - first), weights + turn, lane);
        turn = KEYS - turn;
    }
    return share;
}

// The result of a simdgroup that has seen all keys.
inline void attention_store(attention_share share, device float *out, uint head_dim, uint lane) {
    const float sum = simd_sum(share.sum);
    for (uint part = 0; part < PARTS; part++) {
        const uint d = 32 * part + lane;
        if (d < head_dim)
            out[d] = share.parts[part] / sum;
    }
}
