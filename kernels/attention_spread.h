// attention_spread: the attention of one query by a whole threadgroup, for one token or many.
//
// A launch for a few hundred keys takes as long as its chain of trips to memory, so there is one
// trip: the query, the keys and the values of a turn are all under way before the first is used. No
// load depends on its lane: past the end of the cache it is that of the last key, past the end of a
// head that of its first dimensions.
#pragma once

#include "attention.h"
#include "prefetch.h"
#include "swap.h"

// Floats from one simdgroup's share to the next, for heads of at most as many dimensions: compilers know where
// each of them is.
constant uint SPREAD_STRIDE = 256;

// Memory for the simdgroups' shares: the largest score of each, the sum of its weights, and a head.
struct spread_memory {
    threadgroup float4 *largest; // 4 float4s
    threadgroup float4 *sums;    // 4 float4s
    threadgroup float4 *parts;   // 16 heads
};

inline float spread_largest(float4 v) {
    return max(max(v.x, v.y), max(v.z, v.w));
}
inline float spread_sum(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

// Rows of a cache: `count` from `first` on, of which those from `fresh` on may be what the launch before
// has written.
struct spread_keys {
    uint first;
    uint count;
    uint fresh;
};

// What a simdgroup knows of the keys it has seen. L lanes take a key, J of them per turn, and hold
// 4 dimensions of each of two halves of 4 L: head_dim is at most 8 L, and just that if it is_whole.
template <typename T, uint L, bool is_whole> struct spread_share {
    enum : uint { J = 4, together = 16 * 32 / L }; // keys that a threadgroup takes at once
    typedef typename cached_four<T>::type four;
    attention_head_of<T> h;
    uint lower, upper; // where this lane's dimensions begin
    bool has_lower, has_upper;
    float largest;
    float sum;
    float4 parts[2];
    bool is_key[J]; // of this turn: past the end of the cache there is none
    four rows[J][2];
    four values[J][2];

    METAL_FUNC void start(attention_head_of<T> head, uint lane) {
        const uint d = 4 * (lane % L);
        h = head;
        has_lower = is_whole || d < h.head_dim;
        has_upper = is_whole || d + 4 * L < h.head_dim;
        lower = has_lower ? d : 0;
        upper = has_upper ? d + 4 * L : 0;
        largest = NO_SCORE;
        sum = 0.0f;
        parts[0] = float4(0.0f);
        parts[1] = float4(0.0f);
    }

    METAL_FUNC void load(uint j, uint row) {
        const size_t at = size_t(row) * h.stride;
        rows[j][0] = *(device const four *)(h.keys + at + lower);
        rows[j][1] = *(device const four *)(h.keys + at + upper);
        values[j][0] = *(device const four *)(h.values + at + lower);
        values[j][1] = *(device const four *)(h.values + at + upper);
    }

    // Adds the keys that are loaded; what is not a key has no weight.
    METAL_FUNC void add(device const float *q) {
        float4 query[2] = {*(device const float4 *)(q + lower),
                           *(device const float4 *)(q + upper)};
        KEEP_ORDER(); // or compilers load values after they use keys
        query[0] = has_lower ? query[0] : float4(0.0f);
        query[1] = has_upper ? query[1] : float4(0.0f);
        float4 scores; // all summed at once
        for (uint j = 0; j < J; j++)
            scores[j] = spread_sum(query[0] * cached_floats(rows[j][0]) +
                                   query[1] * cached_floats(rows[j][1]));
        for (uint step = L / 2; step > 0; step /= 2)
            scores += SWAP(scores, step);
        for (uint j = 0; j < J; j++)
            scores[j] = is_key[j] ? h.scale * scores[j] : NO_SCORE;
        const float before = largest;
        largest = max(before, spread_largest(scores));
        for (uint step = L; step < 32; step *= 2)
            largest = max(largest, SWAP(largest, step));
        // Without a key both differences are of NO_SCORE from itself: under fast math, anything.
        const float fade = before > NO_SCORE ? exp(before - largest) : 0.0f;
        float4 weights = exp(scores - largest);
        for (uint j = 0; j < J; j++)
            weights[j] = is_key[j] ? weights[j] : 0.0f;
        sum = fade * sum + spread_sum(weights);
        for (uint i = 0; i < 2; i++) {
            parts[i] *= fade;
            for (uint j = 0; j < J; j++)
                parts[i] += weights[j] * cached_floats(values[j][i]);
        }
    }

    // Leaves the sums over all lanes in threadgroup memory. Each lane gives one half away and gets
    // that of its partner, then only one is left to sum.
    METAL_FUNC void leave(spread_memory memory, uint lane, uint sg) {
        if (L < 32) {
            const bool is_upper = lane & 16;
            const float4 given = is_upper ? parts[0] : parts[1];
            parts[0] = (is_upper ? parts[1] : parts[0]) + SWAP(given, 16);
            sum += SWAP(sum, 16);
        }
        if (L < 16) {
            parts[0] += SWAP(parts[0], 8);
            sum += SWAP(sum, 8);
        }
        threadgroup float4 *own = memory.parts + sg * (SPREAD_STRIDE / 4);
        const uint at = (L < 32 ? lane / 16 * L : 0) + lane % L;
        if (4 * at < h.head_dim && (L > 8 || lane % 16 < 8))
            own[at] = parts[0];
        if (L == 32 && has_upper)
            own[L + lane] = parts[1];
        if (lane == 0) {
            ((threadgroup float *)memory.largest)[sg] = largest;
            ((threadgroup float *)memory.sums)[sg] = sum;
        }
    }
};

// The whole from the shares of the 16 simdgroups, which are `stride` floats apart, dimension d by thread d.
// *log_sum, if asked for: the logarithm of the sum of exp(score).
template <uint stride = SPREAD_STRIDE> inline void spread_merge(spread_memory memory, uint head_dim,
                                                                device float *out,
                                                                device float *log_sum, uint d) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (d >= head_dim)
        return;
    float4 fades[4];
    for (uint s = 0; s < 4; s++)
        fades[s] = memory.largest[s];
    const float top = spread_largest(max(max(fades[0], fades[1]), max(fades[2], fades[3])));
    threadgroup const float *column = (threadgroup const float *)memory.parts + d;
    float4 totals = float4(0.0f);
    float4 shares = float4(0.0f);
    for (uint s = 0; s < 4; s++) {
        fades[s] = exp(fades[s] - top);
        totals += fades[s] * memory.sums[s];
        float4 four;
        for (uint i = 0; i < 4; i++)
            four[i] = column[(4 * s + i) * stride];
        shares += fades[s] * four;
    }
    const float total = spread_sum(totals);
    out[d] = spread_sum(shares) / total;
    if (log_sum && d == 0)
        *log_sum = top + log(total);
}

// A threadgroup of 512 computes one head; its 16 simdgroups take keys in rotation and leave their
// shares in memory. Loads are coalesced; a score is summed over L lanes, and the values of a simdgroup
// over its 32 / L keys at the end. If it is_early, the caches are buffers 1 and 2, and most of the
// first turn is loaded before the launch before has ended.
template <uint L, bool is_whole, bool is_early, typename T>
inline void spread_head(device const float *q, attention_head_of<T> h, spread_keys k,
                        spread_memory memory, device float *out, device float *log_sum,
                        uint thread_index, uint lane, uint sg) {
    typedef spread_share<T, L, is_whole> share_type;
    constexpr uint J = share_type::J, together = share_type::together;
    const uint own = 32 / L * sg + lane / L;
    share_type share;
    share.start(h, lane);
    uint next = 0;
    if (is_early) {
        const uint old = min(min(k.fresh, k.count), (J - 1) * together);
        for (uint j = 0; j < J - 1; j++) {
            share.is_key[j] = own + together * j < old;
            for (uint i = 0; i < 2; i++)
                share.rows[j][i] = share.values[j][i] = typename share_type::four(0);
            if (old > 0)
                share.load(j, k.first + min(own + together * j, old - 1));
        }
        PREFETCHED_ROWS(1 << 1 | 1 << 2);
        share.is_key[J - 1] = old + own < k.count;
        share.load(J - 1, k.first + min(old + own, k.count - 1));
        share.add(q);
        next = old + together;
    }
    for (; next + 32 / L * sg < k.count; next += together * J) {
        for (uint j = 0; j < J; j++) {
            share.is_key[j] = next + own + together * j < k.count;
            share.load(j, k.first + min(next + own + together * j, k.count - 1));
        }
        share.add(q);
    }
    share.leave(memory, lane, sg);
    if (is_early)
        spread_merge(memory, h.head_dim, out, log_sum, thread_index);
}

// By the size of a head. If it is_early, shares are merged in each case, which is faster; else once, which
// is fewer instructions and registers.
template <bool is_early, typename T>
inline void spread_attention(device const float *q, attention_head_of<T> h, spread_keys k,
                             spread_memory memory, device float *out, device float *log_sum,
                             uint thread_index, uint lane, uint sg) {
    if (h.head_dim == 64)
        spread_head<8, true, is_early>(q, h, k, memory, out, log_sum, thread_index, lane, sg);
    else if (h.head_dim == 128)
        spread_head<16, true, is_early>(q, h, k, memory, out, log_sum, thread_index, lane, sg);
    else if (h.head_dim == 256)
        spread_head<32, true, is_early>(q, h, k, memory, out, log_sum, thread_index, lane, sg);
    else if (h.head_dim < 128)
        spread_head<16, false, is_early>(q, h, k, memory, out, log_sum, thread_index, lane, sg);
    else
        spread_head<32, false, is_early>(q, h, k, memory, out, log_sum, thread_index, lane, sg);
    if (!is_early)
        spread_merge(memory, h.head_dim, out, log_sum, thread_index);
}
