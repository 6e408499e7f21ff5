// attention_spread: the attention of one query by a whole threadgroup, for one token or many. Needs
// attention.h.

// What 8 lanes know of the keys they have seen; lane l of them holds dimensions 4 l to 4 l + 3 of
// every 32. N * 32 is at least head_dim.
template <uint N> struct spread_share {
    float largest;
    float sum;
    float4 parts[N];
};

// A threadgroup of 512 computes one head: each of its 16 simdgroups takes 4 keys at a time, 8 lanes
// each, J times per turn. Loads of keys and values are coalesced, a score is reduced over 3
// exchanges, and values need none. Memory for the shares of simdgroups: `found` has the largest
// score and the sum of each, `parts` a head of each. *log_sum, if asked for: the logarithm of the
// sum of exp(score).
template <uint N, uint J>
inline void spread_attention(device const float *q, attention_head h, device float *out,
                             device float *log_sum, uint kv_len, threadgroup float2 *found,
                             threadgroup float *parts, uint thread_index, uint lane, uint sg) {
    const uint at = lane % 8 * 4;
    float4 query[N];
    spread_share<N> share;
    share.largest = NO_SCORE;
    share.sum = 0.0f;
    for (uint i = 0; i < N; i++) {
        share.parts[i] = float4(0.0f);
        query[i] = float4(0.0f);
        if (32 * i < h.head_dim)
            query[i] = h.scale * *(device const float4 *)(q + 32 * i + at);
    }
    const uint own = 4 * sg + lane / 8;
    for (uint first = 0; first + 4 * sg < kv_len; first += 64 * J) {
        float4 values[J][N];
        float scores[J];
        float largest = share.largest;
        for (uint j = 0; j < J; j++) {
            const uint key = first + own + 64 * j;
            const size_t row = size_t(min(key, kv_len - 1)) * h.stride + at;
            float4 dots = float4(0.0f);
            for (uint i = 0; i < N; i++)
                if (32 * i < h.head_dim) {
                    dots += query[i] * *(device const float4 *)(h.keys + row + 32 * i);
                    values[j][i] = *(device const float4 *)(h.values + row + 32 * i);
                }
            float score = (dots.x + dots.y) + (dots.z + dots.w);
            score += simd_shuffle_xor(score, 1);
            score += simd_shuffle_xor(score, 2);
            score += simd_shuffle_xor(score, 4);
            scores[j] = key < kv_len ? score : NO_SCORE;
            largest = max(largest, scores[j]);
        }
        const float fade = exp(share.largest - largest);
        share.largest = largest;
        share.sum *= fade;
        for (uint i = 0; i < N; i++)
            share.parts[i] *= fade;
        for (uint j = 0; j < J; j++) {
            const float weight = first + own + 64 * j < kv_len ? exp(scores[j] - largest) : 0.0f;
            share.sum += weight;
            for (uint i = 0; i < N; i++)
                if (32 * i < h.head_dim)
                    share.parts[i] += weight * values[j][i];
        }
    }
    const float largest = simd_max(share.largest);
    const float fade = exp(share.largest - largest);
    float sum = fade * share.sum;
    sum += simd_shuffle_xor(sum, 8);
    sum += simd_shuffle_xor(sum, 16);
    if (lane == 0)
        found[sg] = float2(largest, sum);
    for (uint i = 0; i < N; i++)
        if (32 * i < h.head_dim) {
            float4 part = fade * share.parts[i];
            part += simd_shuffle_xor(part, 8);
            part += simd_shuffle_xor(part, 16);
            if (lane < 8)
                *(threadgroup float4 *)(parts + sg * h.head_dim + 32 * i + at) = part;
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index >= h.head_dim)
        return;
    float top = found[0].x;
    for (uint s = 1; s < 16; s++)
        top = max(top, found[s].x);
    float total = 0.0f;
    float value = 0.0f;
    for (uint s = 0; s < 16; s++) {
        const float weight = exp(found[s].x - top);
        total += weight * found[s].y;
        value += weight * parts[s * h.head_dim + thread_index];
    }
    out[thread_index] = value / total;
    if (log_sum && thread_index == 0)
        *log_sum = top + log(total);
}

// By the size of a head.
inline void spread_head(device const float *q, attention_head h, device float *out,
                        device float *log_sum, uint kv_len, threadgroup float2 *found,
                        threadgroup float *parts, uint thread_index, uint lane, uint sg) {
    if (h.head_dim <= 64)
        spread_attention<2, 4>(q, h, out, log_sum, kv_len, found, parts, thread_index, lane, sg);
    else if (h.head_dim <= 128)
        spread_attention<4, 2>(q, h, out, log_sum, kv_len, found, parts, thread_index, lane, sg);
    else
        spread_attention<8, 1>(q, h, out, log_sum, kv_len, found, parts, thread_index, lane, sg);
}
