// prefill_attention: causal attention of many tokens in one launch: query t of n_tokens is at
// position start + t and sees rows 0 to start + t of the cache. The keys and values of all these
// tokens are already in the cache.
//
// q and out are (n_tokens, n_heads, head_dim). start is read when the kernel runs, so that the next
// part of a prompt can be played from the same tape.
#include <metal_stdlib>
using namespace metal;

#include "attention.h"
#include "attention_spread.h"
#include "prefetch.h"

// A threadgroup is one simdgroup and computes one head of one token, as decode_attention does.
// Reads the cache again for every token. The first variant: what n_tokens launches of
// decode_attention do, in one launch.
kernel void prefill_attention(ATTENTION_ARGUMENTS(float, start),
                              constant uint &n_tokens [[buffer(9)]],
                              uint2 group [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[2 * KEYS];
    const attention_head h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    const size_t at = (size_t(group.y) * n_heads + group.x) * head_dim;
    const uint kv_len = start + group.y + 1;
    attention_store(attention_run(q + at, h, 0, KEYS, kv_len, weights, lane), out + at, head_dim,
                    lane);
}

// Four queries of the same head, those of neighbouring tokens.
struct query_block {
    device const float *q[4];
    uint4 seen; // rows of the cache that each of them sees
};

// Those of tokens `token` to token + 3. Past the last token, the last one is repeated.
inline query_block query_block_find(device const float *q,
                                    uint head,
                                    uint n_heads,
                                    uint head_dim,
                                    uint start,
                                    uint token,
                                    uint n_tokens) {
    query_block b;
    for (uint i = 0; i < 4; i++) {
        const uint t = min(token + i, n_tokens - 1);
        b.q[i] = q + (size_t(t) * n_heads + head) * head_dim;
        b.seen[i] = start + t + 1;
    }
    return b;
}

// The dot products of four queries with one key.
inline float4 query_block_dot(query_block b, device const float *k, uint head_dim) {
    float4 sums = float4(0.0f);
    if (head_dim % 4 == 0) {
        device const float4 *k4 = (device const float4 *)k;
        device const float4 *q0 = (device const float4 *)b.q[0];
        device const float4 *q1 = (device const float4 *)b.q[1];
        device const float4 *q2 = (device const float4 *)b.q[2];
        device const float4 *q3 = (device const float4 *)b.q[3];
        float4 s0 = float4(0.0f);
        float4 s1 = float4(0.0f);
        float4 s2 = float4(0.0f);
        float4 s3 = float4(0.0f);
        for (uint i = 0; i < head_dim / 4; i++) {
            const float4 key = k4[i];
            s0 += q0[i] * key;
            s1 += q1[i] * key;
            s2 += q2[i] * key;
            s3 += q3[i] * key;
        }
        sums.x = (s0.x + s0.y) + (s0.z + s0.w);
        sums.y = (s1.x + s1.y) + (s1.z + s1.w);
        sums.z = (s2.x + s2.y) + (s2.z + s2.w);
        sums.w = (s3.x + s3.y) + (s3.z + s3.w);
    } else {
        for (uint i = 0; i < head_dim; i++)
            sums += float4(b.q[0][i], b.q[1][i], b.q[2][i], b.q[3][i]) * k[i];
    }
    return sums;
}

// A threadgroup is one simdgroup and computes one head of four tokens at once, the four as the
// components of a float4; everything else is as in attention_add. Each key and value is read once
// for four queries: a quarter of the traffic. Keys that only some of the four see have no score
// for the others. Results of repeated tokens are not written.
kernel void prefill_attention_queryblock(ATTENTION_ARGUMENTS(float, start),
                                         constant uint &n_tokens [[buffer(9)]],
                                         uint2 group [[threadgroup_position_in_grid]],
                                         uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float4 weights[2 * KEYS];
    const attention_head h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    const uint token = 4 * group.y;
    const query_block b = query_block_find(q, group.x, n_heads, head_dim, start, token, n_tokens);
    const uint kv_len = b.seen.w;
    float4 largest = float4(NO_SCORE);
    float4 sum = float4(0.0f);
    float4 parts[PARTS];
    for (uint part = 0; part < PARTS; part++)
        parts[part] = float4(0.0f);
    uint turn = 0;
    for (uint first = 0; first < kv_len; first += KEYS) {
        const uint count = min(KEYS, kv_len - first);
        device const float *values = h.values + size_t(first) * h.stride;
        float4 score = float4(NO_SCORE);
        if (lane < count) {
            const float4 dots =
                query_block_dot(b, h.keys + size_t(first + lane) * h.stride, head_dim);
            score = select(score, scale * dots, first + lane < b.seen);
        }
        const float4 before = largest;
        largest = max(before, simd_max(score));
        const float4 fade = exp(before - largest);
        const float4 weight = exp(score - largest);
        weights[turn + lane] = weight;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        sum = fade * sum + weight;
        for (uint part = 0; part < PARTS; part++) {
            const uint d = 32 * part + lane;
            if (d < head_dim) {
                float4 s = fade * parts[part];
                for (uint j = 0; j < count; j++)
                    s += weights[turn + j] * values[j * h.stride + d];
                parts[part] = s;
            }
        }
        turn = KEYS - turn;
    }
    sum = simd_sum(sum);
    for (uint part = 0; part < PARTS; part++) {
        const uint d = 32 * part + lane;
        for (uint i = 0; i < 4; i++) // of four, so that no vector is indexed by a variable
            if (d < head_dim && token + i < n_tokens)
                out[(size_t(token + i) * n_heads + group.x) * head_dim + d] =
                    parts[part][i] / sum[i];
    }
}

// A threadgroup of 512 computes one head of one token (attention_spread.h). head_dim is a multiple of
// 32: prefill_attention_record refuses anything else. For a few tokens, which do not fill a GPU
// otherwise.
[[max_total_threads_per_threadgroup(512)]]
kernel void prefill_attention_spread(ATTENTION_ARGUMENTS(float, start),
                                     constant uint &n_tokens [[buffer(9)]],
                                     uint2 group [[threadgroup_position_in_grid]],
                                     THREAD_PLACE) {
    threadgroup float4 largest[4];
    threadgroup float4 sums[4];
    threadgroup float4 parts[16 * 64];
    const spread_memory memory = {largest, sums, parts};
    const attention_head h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    // Never so, but what follows then waits until the head is found.
    if (h.head >= n_kv_heads)
        return;
    PREFETCHED(0); // only the scalars
    const size_t at = (size_t(group.y) * n_heads + group.x) * head_dim;
    const spread_keys keys = {0, start + group.y + 1, start};
    spread_attention<false>(q + at, h, keys, memory, out + at, nullptr, thread_index, lane, sg);
}
