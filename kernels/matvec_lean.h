// matvec_lean: y = W x and y += W x for one token, by simdgroups whose lanes take 16 weights of a
// block at a time: two neighbours share a block of 32, sixteen a block of 256. Needs matvec_rows.h.
//
// H is a format by such parts: H::block, of H::values weights for H::lanes lanes; H::input, 16 values
// of x as a part needs them, and H::load, which loads them; H::multiply, the product of a part with
// them.

// sums[r] += this lane's part of the product of rows[r] with x, for R rows of `blocks` blocks.
template <typename H, uint R>
METAL_FUNC void add_lean_rows(device const typename H::block *const thread *rows,
                              device const float *x, uint blocks, uint lane, thread float *sums) {
    const uint part = lane % H::lanes;
    for (uint b = lane / H::lanes; b < blocks; b += 32 / H::lanes) {
        const typename H::input input = H::load(x + H::values * b, part);
        for (uint r = 0; r < R; r++)
            sums[r] += H::multiply(rows[r] + b, part, input);
    }
}

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
    const uint blocks = in_dim / H::values;
    device const typename H::block *rows[R];
    for (uint r = 0; r < R; r++)
        rows[r] = w + size_t(min(first + r, out_dim - 1)) * blocks;
    float sums[R] = {};
    add_lean_rows<H, R>(rows, x, blocks, lane, sums);
    for (uint r = 0; r < R; r++) {
        const float sum = simd_sum(sums[r]);
        if (lane == r && first + r < out_dim)
            put<accumulate>(y + first + r, sum);
    }
}

// One row per simdgroup, N parts per lane and turn without a branch between them, so that all loads
// of a short row are under way at once. Past the end of a row the last block is loaded again and left
// out.
template <typename H, uint N, bool accumulate> kernel void
matvec_ahead(device const typename H::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
             device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
             constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
             uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * 4 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / H::values;
    device const typename H::block *weights = w + size_t(row) * blocks;
    float before = 0.0f;
    if (accumulate && lane == 0)
        before = y[row]; // loaded with the weights, not after them
    float sum = 0.0f;
    const uint part = lane % H::lanes;
    const uint stride = 32 / H::lanes;
    for (uint first = 0; first < blocks; first += stride * N)
        for (uint i = 0; i < N; i++) {
            const uint b = first + stride * i + lane / H::lanes;
            const uint at = min(b, blocks - 1);
            const typename H::input input = H::load(x + H::values * at, part);
            const float product = H::multiply(weights + at, part, input);
            sum += b < blocks ? product : 0.0f;
        }
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = before + sum;
}

#define MATVEC_LEAN_KERNEL(name, format, R, accumulate)                                            \
    template [[host_name(name)]] kernel decltype(matvec_lean<format##_parts, R, accumulate>)       \
        matvec_lean<format##_parts, R, accumulate>;
#define MATVEC_AHEAD_KERNEL(name, format, accumulate)                                              \
    template [[host_name(name)]] kernel decltype(matvec_ahead<format##_parts, 3, accumulate>)      \
        matvec_ahead<format##_parts, 3, accumulate>;
#define MATVEC_LEAN(format)                                                                        \
    MATVEC_LEAN_KERNEL("matvec_" #format "_lean", format, 1, false)                                \
    MATVEC_LEAN_KERNEL("matvec_" #format "_lean_rows", format, 4, false)                           \
    MATVEC_LEAN_KERNEL("matvec_" #format "_accumulate_lean", format, 1, true)                      \
    MATVEC_LEAN_KERNEL("matvec_" #format "_accumulate_lean_rows", format, 4, true)                 \
    MATVEC_AHEAD_KERNEL("matvec_" #format "_ahead", format, false)                                 \
    MATVEC_AHEAD_KERNEL("matvec_" #format "_accumulate_ahead", format, true)
