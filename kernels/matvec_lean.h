// matvec_lean: y = W x and y += W x for one token, by simdgroups whose lanes take half blocks of 16
// weights: two neighbours share a block. For formats of blocks of 32; needs matvec_rows.h.
//
// H is a format by halves: H::block; H::input, 16 values of x as a half block needs them, and
// H::load, which loads them; H::multiply, the product of a half block with them.

// R rows per simdgroup, 4 simdgroups per threadgroup of 128. One row each fills a GPU with the few
// rows of a small model; several share the x that they load. Rows past the end are replaced by the
// last one.
template <typename H, uint R, bool accumulate> kernel void
matvec_lean(device const typename H::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
            device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
            constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
            uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const uint first = (group * 4 + sg) * R;
    if (first >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    device const typename H::block *rows[R];
    for (uint r = 0; r < R; r++)
        rows[r] = w + size_t(min(first + r, out_dim - 1)) * blocks;
    float sums[R] = {};
    for (uint b = lane / 2; b < blocks; b += 16) {
        const typename H::input input = H::load(x + 32 * b, lane % 2);
        for (uint r = 0; r < R; r++)
            sums[r] += H::multiply(rows[r] + b, lane % 2, input);
    }
    for (uint r = 0; r < R; r++) {
        const float sum = simd_sum(sums[r]);
        if (lane == r && first + r < out_dim)
            put<accumulate>(y + first + r, sum);
    }
}

// One row per simdgroup, N half blocks per lane and turn without a branch between them, so that all
// loads of a short row are under way at once. Past the end of a row the last half block is loaded
// again and left out.
template <typename H, uint N, bool accumulate> kernel void
matvec_ahead(device const typename H::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
             device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
             constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
             uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * 4 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    device const typename H::block *weights = w + size_t(row) * blocks;
    float before = 0.0f;
    if (accumulate && lane == 0)
        before = y[row]; // loaded with the weights, not after them
    float sum = 0.0f;
    for (uint first = 0; first < blocks; first += 16 * N)
        for (uint i = 0; i < N; i++) {
            const uint b = first + 16 * i + lane / 2;
            const uint at = min(b, blocks - 1);
            const typename H::input input = H::load(x + 32 * at, lane % 2);
            const float product = H::multiply(weights + at, lane % 2, input);
            sum += b < blocks ? product : 0.0f;
        }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = before + sum;
}

#define MATVEC_LEAN_KERNEL(name, format, R, accumulate)                                            \
    template [[host_name(name)]] kernel decltype(matvec_lean<format##_halves, R, accumulate>)      \
        matvec_lean<format##_halves, R, accumulate>;
#define MATVEC_AHEAD_KERNEL(name, format, accumulate)                                              \
    template [[host_name(name)]] kernel decltype(matvec_ahead<format##_halves, 3, accumulate>)     \
        matvec_ahead<format##_halves, 3, accumulate>;
#define MATVEC_LEAN(format)                                                                        \
    MATVEC_LEAN_KERNEL("matvec_" #format "_lean", format, 1, false)                                \
    MATVEC_LEAN_KERNEL("matvec_" #format "_lean_rows", format, 4, false)                           \
    MATVEC_LEAN_KERNEL("matvec_" #format "_accumulate_lean", format, 1, true)                      \
    MATVEC_LEAN_KERNEL("matvec_" #format "_accumulate_lean_rows", format, 4, true)                 \
    MATVEC_AHEAD_KERNEL("matvec_" #format "_ahead", format, false)                                 \
    MATVEC_AHEAD_KERNEL("matvec_" #format "_accumulate_ahead", format, true)
