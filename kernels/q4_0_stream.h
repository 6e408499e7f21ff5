// q4_0_stream: y = W x for Q4_0 by way of threadgroup memory, for GPUs whose memory is fast.
//
// Blocks of 18 bytes are only 2-byte aligned, and loading them ushort by ushort costs more than
// multiplying them. But 8 blocks are 9 uint4: where in_dim is a multiple of 256 and w starts at a
// multiple of 16 bytes, a simdgroup copies its rows with loads of 16 bytes, all under way at once,
// and takes words of 4 bytes from the copy. Lane l takes blocks 2 l and 2 l + 1 of each 64, 9 words,
// so that lanes never meet in a bank.

constant uint CHUNK = 2048;     // columns at a time: 64 blocks
constant uint CHUNK_WORDS = 72; // uint4s of a row's chunk
constant uint LANE_X = 17;      // float4s from lane to lane: 16, and one that keeps banks apart

// A chunk of four rows on its way from device to threadgroup memory: 9 uint4s per lane, as words,
// because an array of vectors is not kept in registers.
struct q4_0_chunk {
    uint at[9]; // where this lane's parts of the first chunk are
    uint last;  // of the whole matrix
    uint words[36];

    // Rows past the end are replaced by the last one.
    METAL_FUNC void start(uint first_row, uint out_dim, uint row_words, uint lane) {
        last = out_dim * row_words - 1;
        for (uint i = 0; i < 9; i++)
            at[i] = min(first_row + (lane + 32 * i) / CHUNK_WORDS, out_dim - 1) * row_words +
                    (lane + 32 * i) % CHUNK_WORDS;
    }
    // The chunk that begins with this column, if there is one. The last of a row may be shorter: what
    // is loaded past its end is not used.
    METAL_FUNC void take(device const uint4 *w, uint column, uint in_dim) {
        if (column >= in_dim)
            return;
        for (uint i = 0; i < 9; i++) {
            const uint4 v = w[min(at[i] + column / 256 * 9, last)];
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

// sum((16 + n) * x) of the 8 weights in a word: low nibbles times `low`, high ones times `high`.
inline float4 q4_0_add_word(uint n, uint sixteen, float4 low, float4 high, float4 dots) {
    dots = fma(sixteen_more_low(n, sixteen), low, dots);
    return fma(sixteen_more_high(n, sixteen), high, dots);
}

// sums[r] += the product of block B of the lane's two in row r with 32 values of x.
template <uint B> inline void q4_0_add_block(threadgroup const uint *words,
                                             threadgroup const float4 *x, uint sixteen,
                                             thread float *sums) {
    float4 v[8];
    for (uint i = 0; i < 8; i++)
        v[i] = x[8 * B + i];
    const float4 s = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    const float offset = 24.0f * ((s.x + s.y) + (s.z + s.w));
    for (uint r = 0; r < 4; r++) {
        uint w[5];
        for (uint i = 0; i < 5; i++)
            w[i] = words[r * 4 * CHUNK_WORDS + 4 * B + i];
        float4 dots = float4(0.0f);
        for (uint i = 0; i < 4; i++)
            dots = q4_0_add_word(B == 0 ? w[i] >> 16u | w[i + 1] << 16u : w[i + 1], sixteen, v[i],
                                 v[i + 4], dots);
        const half d = as_type<half>(ushort(B == 0 ? w[0] : w[0] >> 16u));
        sums[r] += float(d) * ((dots.x + dots.y) + (dots.z + dots.w) - offset);
    }
}

// A threadgroup of 128 computes 16 rows, four per simdgroup. A chunk is on its way while the one
// before it is multiplied.
template <bool accumulate> kernel void
matvec_stream(device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
              device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
              constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
              uint thread_index [[thread_index_in_threadgroup]],
              uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint4 staged[4 * 4 * CHUNK_WORDS];
    threadgroup float4 staged_x[32 * LANE_X];
    threadgroup uint4 *own = staged + sg * 4 * CHUNK_WORDS;
    device const uint4 *from = (device const uint4 *)w;
    const uint first_row = (group * 4 + sg) * 4;
    q4_0_chunk chunk;
    chunk.start(first_row, out_dim, in_dim / 256 * 9, lane);
    chunk.take(from, 0, in_dim);
    chunk.put(own, lane);
    chunk.take(from, CHUNK, in_dim);
    EARLY_LOADS(1);
    const uint sixteen = get_sixteen(in_dim);
    float sums[4] = {};
    for (uint first = 0; first < in_dim; first += CHUNK) {
        for (uint i = thread_index; i < CHUNK / 4; i += 128)
            staged_x[i / 16 * LANE_X + i % 16] =
                ((device const float4 *)x)[min(first / 4 + i, in_dim / 4 - 1)];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (first + lane * 64 < in_dim) {
            threadgroup const uint *words = (threadgroup const uint *)own + lane * 9;
            threadgroup const float4 *mine = staged_x + lane * LANE_X;
            q4_0_add_block<0>(words, mine, sixteen, sums);
            q4_0_add_block<1>(words, mine, sixteen, sums);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        chunk.put(own, lane);
        chunk.take(from, first + 2 * CHUNK, in_dim);
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
