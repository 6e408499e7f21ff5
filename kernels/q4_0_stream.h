// q4_0_stream: y = W x for Q4_0 by way of threadgroup memory, for GPUs whose memory is fast.
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
inline float4 q4_0_add_word(uint n, uint sixteen, float4 low, float4 high, float4 dots) {
    dots = fma(q4_0_sixteen_more(uint4(n << 19u, n << 11u, n << 3u, n >> 5u), sixteen), low, dots);
    return fma(q4_0_sixteen_more(uint4(n << 15u, n << 7u, n >> 1u, n >> 9u), sixteen), high, dots);
}

inline float q4_0_scale_word(uint bits, float4 dots, float offset) {
    return float(as_type<half>(ushort(bits))) * ((dots.x + dots.y) + (dots.z + dots.w) - offset);
}

// The product of two neighbouring blocks with 64 values of x; offsets: 24 times the sum of each 32.
inline float q4_0_two_blocks(threadgroup const uint *words, uint sixteen, thread const float4 *x,
                             float2 offsets) {
    uint w[9];
    for (uint i = 0; i < 9; i++)
        w[i] = words[i];
    float4 a = float4(0.0f);
    float4 b = float4(0.0f);
    for (uint i = 0; i < 4; i++) {
        a = q4_0_add_word(w[i] >> 16u | w[i + 1] << 16u, sixteen, x[i], x[i + 4], a);
        b = q4_0_add_word(w[i + 5], sixteen, x[i + 8], x[i + 12], b);
    }
    return q4_0_scale_word(w[0], a, offsets.x) + q4_0_scale_word(w[4] >> 16u, b, offsets.y);
}

inline float sum_of_eight(thread const float4 *v) {
    const float4 s = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    return (s.x + s.y) + (s.z + s.w);
}

// A chunk of four rows on its way from device to threadgroup memory: 9 uint4s per lane, as words,
// because an array of vectors is not kept in registers.
struct q4_0_chunk {
    uint words[36];

    // The chunk that begins with column `start`, if there is one. Rows past the end are replaced by
    // the last one.
    METAL_FUNC void take(device const uint4 *w, uint first_row, uint out_dim, uint in_dim,
                         uint start, uint lane) {
        if (start >= in_dim)
            return;
        const uint last = min(CHUNK, in_dim - start) / 256 * 9 - 1;
        for (uint i = 0; i < 9; i++) {
            const uint at = lane + 32 * i;
            const uint row = min(first_row + at / CHUNK_WORDS, out_dim - 1);
            const uint4 v =
                w[size_t(row) * (in_dim / 256 * 9) + start / 256 * 9 + min(at % CHUNK_WORDS, last)];
            words[4 * i] = v.x;
            words[4 * i + 1] = v.y;
            words[4 * i + 2] = v.z;
            words[4 * i + 3] = v.w;
        }
    }
    METAL_FUNC void put(threadgroup uint4 *to, uint lane) const {
        for (uint i = 0; i < 9; i++)
            to[lane + 32 * i] =
                uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
};

// Two chunks, with all loads under way at once.
METAL_FUNC void q4_0_copy_chunks(device const uint4 *w, uint first_row, uint out_dim, uint in_dim,
                                 uint start, threadgroup uint4 *to, uint lane) {
    q4_0_chunk one, two;
    one.take(w, first_row, out_dim, in_dim, start, lane);
    two.take(w, first_row, out_dim, in_dim, start + CHUNK, lane);
    one.put(to, lane);
    two.put(to + 4 * CHUNK_WORDS, lane);
}

// A chunk of x, copied by the 64 threads of a threadgroup; past the end the last values are repeated.
METAL_FUNC void copy_x(device const float *x, uint in_dim, uint start, threadgroup float4 *to,
                       uint thread_index) {
    for (uint i = thread_index; i < CHUNK / 4; i += 64)
        to[i / 16 * LANE_X + i % 16] =
            ((device const float4 *)x)[min(start / 4 + i, in_dim / 4 - 1)];
}

// A threadgroup of 64 computes 8 rows, four per simdgroup, two chunks at a time: both are copied
// before any of x is needed.
template <bool accumulate> kernel void
matvec_stream(device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
              device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
              constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
              uint thread_index [[thread_index_in_threadgroup]],
              uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint4 staged[2 * 2 * 4 * CHUNK_WORDS];
    threadgroup float4 staged_x[32 * LANE_X];
    threadgroup uint4 *own = staged + sg * 2 * 4 * CHUNK_WORDS;
    device const uint4 *words = (device const uint4 *)w;
    const uint first_row = (group * 2 + sg) * 4;
    const uint sixteen = q4_0_get_sixteen(in_dim);
    q4_0_copy_chunks(words, first_row, out_dim, in_dim, 0, own, lane);
    EARLY_LOADS(1);
    float sums[4] = {};
    for (uint first = 0; first < in_dim; first += CHUNK) {
        copy_x(x, in_dim, first, staged_x, thread_index);
        if (first > 0 && first / CHUNK % 2 == 0)
            q4_0_copy_chunks(words, first_row, out_dim, in_dim, first, own, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (first + lane * 64 < in_dim) {
            float4 v[16];
            for (uint i = 0; i < 16; i++)
                v[i] = staged_x[lane * LANE_X + i];
            const float2 offsets = 24.0f * float2(sum_of_eight(v), sum_of_eight(v + 8));
            threadgroup const uint *from =
                (threadgroup const uint *)(own + first / CHUNK % 2 * 4 * CHUNK_WORDS) + lane * 9;
            for (uint r = 0; r < 4; r++)
                sums[r] += q4_0_two_blocks(from + r * 4 * CHUNK_WORDS, sixteen, v, offsets);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    scatter<4>::sum(sums, lane);
    const uint row = first_row + lane / 8;
    if (lane % 8 == 0 && row < out_dim)
        put<accumulate>(y + row, sums[0]);
}

template
    [[host_name("matvec_q4_0_stream")]] kernel decltype(matvec_stream<false>) matvec_stream<false>;
template [[host_name(
    "matvec_q4_0_accumulate_stream")]] kernel decltype(matvec_stream<true>) matvec_stream<true>;
