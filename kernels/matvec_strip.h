// matvec_strip: y = W x and y += W x for one token, by threads that take several rows each. Needs
// matvec_rows.h.
//
// S is a format by blocks: S::block, of S::values weights; S::rows, how many rows a thread takes;
// S::input, the values of x as a block needs them, and S::load, which loads them; S::add, which adds
// the product of both to sums of which the total counts.

// A thread computes S::rows rows at once, so that it loads and arranges x once for all of them, and
// scales the sums of a block instead of its weights. A threadgroup has 32 rows. In the last strip rows
// past the end are replaced by the last row. Loads are not coalesced, and 32 rows leave most of a
// simdgroup idle: this is for the software device, which runs one thread after another.
template <typename S, bool accumulate>
kernel void strip(device const typename S::block *w [[buffer(0)]],
                  device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                  constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                  uint thread_index [[thread_position_in_grid]]) {
    const uint first = S::rows * thread_index;
    if (first >= out_dim)
        return;
    const uint blocks = in_dim / S::values;
    device const typename S::block *rows[S::rows];
    for (uint r = 0; r < S::rows; r++)
        rows[r] = w + size_t(min(first + r, out_dim - 1)) * blocks;
    float4 sums[S::rows] = {};
    for (uint b = 0; b < blocks; b++) {
        const typename S::input input = S::load(x + S::values * b);
        for (uint r = 0; r < S::rows; r++)
            sums[r] = S::add(rows[r] + b, input, sums[r]);
    }
    for (uint r = 0; r < S::rows; r++)
        if (first + r < out_dim)
            put<accumulate>(y + first + r, total(sums[r]));
}

#define MATVEC_STRIP(format)                                                                       \
    MATVEC_KERNEL("matvec_" #format "_strip", strip, format##_strip, false)                        \
    MATVEC_KERNEL("matvec_" #format "_accumulate_strip", strip, format##_strip, true)
