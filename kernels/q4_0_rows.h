// q4_0_rows: several rows of Q4_0 weights times one x by one simdgroup, for GPUs with wide memory:
// what matvec_q4_0, rmsnorm_matvec, qkv_rope_append and gate_up_silu share.
//
// A lane takes half blocks: two neighbours share a block, so that a row of 576 (36 half blocks)
// occupies all 32 lanes. Its 16 values of x are loaded once for all rows.
//
// A nibble n becomes a float without a conversion, which costs a GPU more than the multiplication:
// moved to the top of the mantissa below the exponent of 16, its bits are those of 16 + n. The
// product of a half block is then sum((16 + n) * x) - 24 * sum(x), and the last part is the same
// for all rows.

// x * norm_w; and the squares of x, of which every lane sums those that it loads. As lanes load all
// of x between them, simd_sum(squares) is what a norm needs, and the norm is a factor of the sum.
struct normal_halves {
    device const float *x;
    device const float *norm_w;
    float squares;

    q4_0_half_input get(uint block, uint part) {
        device const float4 *v = (device const float4 *)(x + 32 * block) + 2 * part;
        device const float4 *w = (device const float4 *)(norm_w + 32 * block) + 2 * part;
        const float4 a = v[0];
        const float4 b = v[1];
        const float4 c = v[4];
        const float4 d = v[5];
        const float4 s = (a * a + b * b) + (c * c + d * d);
        squares += (s.x + s.y) + (s.z + s.w);
        return q4_0_arrange_half(a * w[0], b * w[1], c * w[4], d * w[5]);
    }
};

inline float4 q4_0_sixteen_more(uint4 nibbles) {
    return as_type<float4>((nibbles & 0x780000u) | 0x41800000u);
}

inline float q4_0_half_product(device const block_q4_0 *b, uint part,
                               thread const q4_0_half_input &x) {
    device const ushort *q = (device const ushort *)b->qs + 4 * part;
    const uint4 n = uint4(q[0], q[1], q[2], q[3]);
    float4 dots = q4_0_sixteen_more(n << 19u) * x.low_even;
    dots = fma(q4_0_sixteen_more(n << 11u), x.low_odd, dots);
    dots = fma(q4_0_sixteen_more(n << 15u), x.high_even, dots);
    dots = fma(q4_0_sixteen_more(n << 7u), x.high_odd, dots);
    return float(b->d) * ((dots.x + dots.y) + (dots.z + dots.w) - 3.0f * x.eights);
}

// sums[r] += this lane's part of the product of rows[r], for R rows of `blocks` blocks.
template <uint R, typename X>
METAL_FUNC void q4_0_add_rows(device const block_q4_0 *const thread *rows, thread X &x, uint blocks,
                              uint lane, thread float *sums) {
    const uint part = lane % 2;
    for (uint b = lane / 2; b < blocks; b += 16) {
        const q4_0_half_input input = x.get(b, part);
        for (uint r = 0; r < R; r++)
            sums[r] += q4_0_half_product(rows[r] + b, part, input);
    }
}

// The same for short rows: N half blocks of each row per turn, without a branch between them, so that
// all their loads are under way at once. Past the end of a row the last half block is loaded again
// and left out.
template <uint R, uint N>
METAL_FUNC void q4_0_add_rows_ahead(device const block_q4_0 *const thread *rows,
                                    thread normal_halves &x, uint blocks, uint lane,
                                    thread float *sums) {
    const uint part = lane % 2;
    for (uint first = 0; first < blocks; first += 16 * N)
        for (uint i = 0; i < N; i++) {
            const uint b = first + 16 * i + lane / 2;
            const uint at = min(b, blocks - 1);
            const float squares = x.squares;
            const q4_0_half_input input = x.get(at, part);
            x.squares = b < blocks ? x.squares : squares;
            for (uint r = 0; r < R; r++) {
                const float product = q4_0_half_product(rows[r] + at, part, input);
                sums[r] += b < blocks ? product : 0.0f;
            }
        }
}
// For matvec_lean.h.
struct q4_0_parts {
    typedef block_q4_0 block;
    enum : uint { values = 32, lanes = 2 };
    typedef q4_0_half_input input;
    static METAL_FUNC input load(device const float *x, uint part) {
        return q4_0_load_half(x, part);
    }
    static METAL_FUNC float multiply(device const block_q4_0 *b, uint part, thread const input &x) {
        return q4_0_half_product(b, part, x);
    }
};
