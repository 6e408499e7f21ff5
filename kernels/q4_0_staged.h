// q4_0_staged: y = W x for Q4_0 by way of threadgroup memory, for GPUs whose memory is fast.
//
// Blocks of 18 bytes are only 2-byte aligned, and loading them ushort by ushort costs more than
// multiplying them. But 8 blocks are 9 uint4: where in_dim is a multiple of 256 and w starts at a
// multiple of 16 bytes, a simdgroup copies its rows with loads of 16 bytes, all under way at once,
// and takes words of 4 bytes from the copy. Lane l takes blocks 2 l and 2 l + 1 of each 64, 9 words,
// so that lanes never meet in a bank; its 64 values of x stay in registers for all rows.

constant uint CHUNK = 2048;     // columns at a time: 64 blocks
constant uint CHUNK_WORDS = 72; // uint4s of a row's chunk
constant uint LANE_X = 17;      // float4s from lane to lane: 16, and one that keeps banks apart

// sum((16 + n) * x) of the 8 weights in a word: low nibbles times `low`, high ones times `high`.
inline float4 q4_0_add_word(uint n, float4 low, float4 high, float4 dots) {
    dots = fma(q4_0_sixteen_more(uint4(n << 19u, n << 11u, n << 3u, n >> 5u)), low, dots);
    return fma(q4_0_sixteen_more(uint4(n << 15u, n << 7u, n >> 1u, n >> 9u)), high, dots);
}

inline float q4_0_scale_word(uint bits, float4 dots, float offset) {
    return float(as_type<half>(ushort(bits))) * ((dots.x + dots.y) + (dots.z + dots.w) - offset);
}

// The product of two neighbouring blocks with 64 values of x; offsets: 24 times the sum of each 32.
inline float q4_0_two_blocks(threadgroup const uint *words, thread const float4 *x,
                             float2 offsets) {
    uint w[9];
    for (uint i = 0; i < 9; i++)
        w[i] = words[i];
    float4 a = float4(0.0f);
    float4 b = float4(0.0f);
    for (uint i = 0; i < 4; i++) {
        a = q4_0_add_word(w[i] >> 16u | w[i + 1] << 16u, x[i], x[i + 4], a);
        b = q4_0_add_word(w[i + 5], x[i + 8], x[i + 12], b);
    }
    return q4_0_scale_word(w[0], a, offsets.x) + q4_0_scale_word(w[4] >> 16u, b, offsets.y);
}

inline float sum_of_eight(thread const float4 *v) {
    const float4 s = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    return (s.x + s.y) + (s.z + s.w);
}

// A threadgroup of 64 computes 2 * R rows, R per simdgroup. Rows past the end are replaced by the
// last one.
template <uint R, bool accumulate> kernel void
matvec_staged(device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
              device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
              constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
              uint thread_index [[thread_index_in_threadgroup]],
              uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint4 staged[2 * R * CHUNK_WORDS];
    threadgroup float4 staged_x[32 * LANE_X];
    threadgroup uint4 *own = staged + sg * R * CHUNK_WORDS;
    const uint first_row = (group * 2 + sg) * R;
    const uint row_words = in_dim / 256 * 9;
    float sums[R] = {};
    for (uint first = 0; first < in_dim; first += CHUNK) {
        const uint columns = min(CHUNK, in_dim - first);
        const uint words = columns / 256 * 9;
        device const uint4 *from = (device const uint4 *)w + first / 256 * 9;
        uint taken[R * CHUNK_WORDS / 8];
        for (uint i = 0; i < R * CHUNK_WORDS / 32; i++) {
            const uint at = lane + 32 * i;
            const uint row = min(first_row + at / CHUNK_WORDS, out_dim - 1);
            const uint word = min(at % CHUNK_WORDS, words - 1);
            device const uint4 &words_at = from[size_t(row) * row_words + word];
            taken[4 * i] = words_at.x;
            taken[4 * i + 1] = words_at.y;
            taken[4 * i + 2] = words_at.z;
            taken[4 * i + 3] = words_at.w;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = thread_index; i < columns / 4; i += 64)
            staged_x[i / 16 * LANE_X + i % 16] = ((device const float4 *)(x + first))[i];
        for (uint i = 0; i < R * CHUNK_WORDS / 32; i++)
            own[lane + 32 * i] =
                uint4(taken[4 * i], taken[4 * i + 1], taken[4 * i + 2], taken[4 * i + 3]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lane * 64 >= columns)
            continue;
        float4 v[16];
        for (uint i = 0; i < 16; i++)
            v[i] = staged_x[lane * LANE_X + i];
        const float2 offsets = 24.0f * float2(sum_of_eight(v), sum_of_eight(v + 8));
        for (uint r = 0; r < R; r++)
            sums[r] += q4_0_two_blocks((threadgroup const uint *)(own + r * CHUNK_WORDS) + lane * 9,
                                       v, offsets);
    }
    scatter<R>::sum(sums, lane);
    const uint row = first_row + lane / (32 / R);
    if (lane % (32 / R) == 0 && row < out_dim)
        put<accumulate>(y + row, sums[0]);
}

#define MATVEC_STAGED(name, R, accumulate)                                                         \
    template [[host_name(                                                                          \
        name)]] kernel decltype(matvec_staged<R, accumulate>) matvec_staged<R, accumulate>;
MATVEC_STAGED("matvec_q4_0_staged", 4, false)
MATVEC_STAGED("matvec_q4_0_staged_rows", 8, false)
MATVEC_STAGED("matvec_q4_0_accumulate_staged", 4, true)
MATVEC_STAGED("matvec_q4_0_accumulate_staged_rows", 8, true)
