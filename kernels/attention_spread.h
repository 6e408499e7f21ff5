// attention_spread: the attention of one query by a whole threadgroup, for one token or many. Needs
// attention.h.
//
// A launch for a few hundred keys takes as long as its chain of trips to memory, so there is one trip:
// the query, the keys and the values of a turn are all under way before the first of them is used.
// No load stands under a condition: past the end of the cache it is that of the last key, past the end
// of a head that of its first dimensions.

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

// A threadgroup of 512 computes one head. Of each of its 16 simdgroups L lanes take a key, four times
// per turn, and hold 4 dimensions of each of two halves of 4 L: head_dim is at most 8 L, and exactly
// that if it is_whole. Loads are coalesced; a score is summed over L lanes, and the values of a
// simdgroup over its 32 / L keys at the end. *log_sum, if asked for: the logarithm of the sum of
// exp(score).
template <uint L, bool is_whole>
inline void spread_attention(device const float *q, attention_head h, device float *out,
                             device float *log_sum, uint kv_len, spread_memory memory,
                             uint thread_index, uint lane, uint sg) {
    constexpr uint J = 4;
    constexpr uint together = 16 * 32 / L; // keys that the threadgroup takes at once
    const uint d = 4 * (lane % L);
    const bool has_lower = is_whole || d < h.head_dim;
    const bool has_upper = is_whole || d + 4 * L < h.head_dim;
    const uint lower = has_lower ? d : 0;
    const uint upper = has_upper ? d + 4 * L : 0;
    float4 parts[2] = {float4(0.0f), float4(0.0f)};
    float largest = NO_SCORE;
    float sum = 0.0f;
    const uint own = 32 / L * sg + lane / L;
    for (uint first = 0; first + 32 / L * sg < kv_len; first += together * J) {
        float4 keys[J][2];
        float4 values[J][2];
        float4 query[2] = {*(device const float4 *)(q + lower),
                           *(device const float4 *)(q + upper)};
        for (uint j = 0; j < J; j++) {
            const size_t row = size_t(min(first + own + together * j, kv_len - 1)) * h.stride;
            keys[j][0] = *(device const float4 *)(h.keys + row + lower);
            keys[j][1] = *(device const float4 *)(h.keys + row + upper);
            values[j][0] = *(device const float4 *)(h.values + row + lower);
            values[j][1] = *(device const float4 *)(h.values + row + upper);
        }
        simdgroup_barrier(mem_flags::mem_none); // or compilers load values after they use keys
        query[0] = has_lower ? query[0] : float4(0.0f);
        query[1] = has_upper ? query[1] : float4(0.0f);
        float4 scores; // of the keys of this lane, all summed at once
        for (uint j = 0; j < J; j++)
            scores[j] = spread_sum(query[0] * keys[j][0] + query[1] * keys[j][1]);
        for (uint step = L / 2; step > 0; step /= 2)
            scores += simd_shuffle_xor(scores, step);
        for (uint j = 0; j < J; j++)
            scores[j] = first + own + together * j < kv_len ? h.scale * scores[j] : NO_SCORE;
        const float before = largest;
        largest = max(before, spread_largest(scores));
        for (uint step = L; step < 32; step *= 2)
            largest = max(largest, simd_shuffle_xor(largest, step));
        const float fade = exp(before - largest); // 0 in the first turn
        const float4 weights = exp(scores - largest);
        sum = fade * sum + spread_sum(weights);
        for (uint i = 0; i < 2; i++) {
            parts[i] *= fade;
            for (uint j = 0; j < J; j++)
                parts[i] += weights[j] * values[j][i];
        }
    }
    // Each lane gives one half away and gets that of its partner, then only one is left to sum.
    if (L < 32) {
        const bool is_upper = lane & 16;
        const float4 given = is_upper ? parts[0] : parts[1];
        parts[0] = (is_upper ? parts[1] : parts[0]) + simd_shuffle_xor(given, 16);
        sum += simd_shuffle_xor(sum, 16);
    }
    if (L < 16) {
        parts[0] += simd_shuffle_xor(parts[0], 8);
        sum += simd_shuffle_xor(sum, 8);
    }
    threadgroup float4 *own_parts = memory.parts + sg * (h.head_dim / 4);
    const uint at = (L < 32 ? lane / 16 * L : 0) + lane % L;
    if (4 * at < h.head_dim && (L > 8 || lane % 16 < 8))
        own_parts[at] = parts[0];
    if (L == 32 && has_upper)
        own_parts[L + lane] = parts[1];
    if (lane == 0) {
        ((threadgroup float *)memory.largest)[sg] = largest;
        ((threadgroup float *)memory.sums)[sg] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index >= h.head_dim)
        return;
    float4 fades[4];
    for (uint s = 0; s < 4; s++)
        fades[s] = memory.largest[s];
    const float top = spread_largest(max(max(fades[0], fades[1]), max(fades[2], fades[3])));
    threadgroup const float *column = (threadgroup const float *)memory.parts + thread_index;
    float4 totals = float4(0.0f);
    float4 shares = float4(0.0f);
    for (uint s = 0; s < 4; s++) {
        fades[s] = exp(fades[s] - top);
        totals += fades[s] * memory.sums[s];
        float4 four;
        for (uint i = 0; i < 4; i++)
            four[i] = column[(4 * s + i) * h.head_dim];
        shares += fades[s] * four;
    }
    const float total = spread_sum(totals);
    out[thread_index] = spread_sum(shares) / total;
    if (log_sum && thread_index == 0)
        *log_sum = top + log(total);
}

// By the size of a head.
inline void spread_head(device const float *q, attention_head h, device float *out,
                        device float *log_sum, uint kv_len, spread_memory memory, uint thread_index,
                        uint lane, uint sg) {
    if (h.head_dim == 64)
        spread_attention<8, true>(q, h, out, log_sum, kv_len, memory, thread_index, lane, sg);
    else if (h.head_dim == 128)
        spread_attention<16, true>(q, h, out, log_sum, kv_len, memory, thread_index, lane, sg);
    else if (h.head_dim < 128)
        spread_attention<16, false>(q, h, out, log_sum, kv_len, memory, thread_index, lane, sg);
    else
        spread_attention<32, false>(q, h, out, log_sum, kv_len, memory, thread_index, lane, sg);
}
