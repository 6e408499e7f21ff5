// q4_0_tokens: rows of Q4_0 weights times 8 tokens by one simdgroup: what the kernels of
// matvec, qkv_rope_append and gate_up_silu for many tokens share.
//
// A lane takes half blocks, as in q4_0_rows.h. It decodes those of R rows once, to floats that are
// exact, and multiplies them with 8 tokens, whose R * 8 sums stay in registers. In the end the lanes
// exchange sums so that each has one sum, or several lanes the same.

constant uint TOKENS = 8;

// The sums of R rows and 8 tokens, and those of the squares of the tokens where HasNorm. A kernel
// calls take, which loads only weights, then EARLY_LOADS, then add.
template <uint R, bool HasNorm> struct token_sums {
    float dots[R * TOKENS];
    float squares[HasNorm ? TOKENS : 1];
    q4_0_half_bits bits[R]; // on their way
    float4 norm[HasNorm ? 4 : 1];

    METAL_FUNC void take(device const block_q4_0 *const thread *rows, device const float *norm_w,
                         uint in_dim, uint block, uint lane) {
        const uint b = min(block, in_dim / 32 - 1);
        for (uint r = 0; r < R; r++)
            bits[r] = q4_0_take_half(rows[r] + b, lane % 2);
        if (HasNorm) {
            device const float4 *v = (device const float4 *)(norm_w + 32 * b) + lane % 2 * 2;
            norm[0] = v[0];
            norm[1] = v[1];
            norm[2] = v[4];
            norm[3] = v[5];
        }
    }

    // Tokens first to first + 7 of x (tokens, in_dim); past the last one, the last is repeated. The
    // next half block is loaded while one is multiplied.
    METAL_FUNC void add(device const block_q4_0 *const thread *rows, device const float *x,
                        device const float *norm_w, uint in_dim, uint first, uint tokens,
                        uint lane) {
        for (uint i = 0; i < R * TOKENS; i++)
            dots[i] = 0.0f;
        for (uint t = 0; t < (HasNorm ? TOKENS : 1u); t++)
            squares[t] = 0.0f;
        const uint sixteen = get_sixteen(in_dim);
        for (uint b = lane / 2; b < in_dim / 32; b += 16) {
            float4 w[R][4];
            for (uint r = 0; r < R; r++)
                q4_0_decode_half(bits[r], sixteen, w[r]);
            if (HasNorm) {
                const q4_0_half_input n = q4_0_arrange_half(norm[0], norm[1], norm[2], norm[3]);
                for (uint r = 0; r < R; r++) {
                    w[r][0] *= n.low_even;
                    w[r][1] *= n.low_odd;
                    w[r][2] *= n.high_even;
                    w[r][3] *= n.high_odd;
                }
            }
            take(rows, norm_w, in_dim, b + 16, lane);
            for (uint t = 0; t < TOKENS; t++)
                add_token(w, x + size_t(min(first + t, tokens - 1)) * in_dim + 32 * b, lane % 2, t);
        }
    }

    METAL_FUNC void add_token(thread const float4 (&w)[R][4], device const float *x, uint part,
                              uint t) {
        const q4_0_half_input v = q4_0_load_half(x, part);
        for (uint r = 0; r < R; r++) {
            float4 dot = w[r][0] * v.low_even;
            dot = fma(w[r][1], v.low_odd, dot);
            dot = fma(w[r][2], v.high_even, dot);
            dot = fma(w[r][3], v.high_odd, dot);
            dots[r * TOKENS + t] += (dot.x + dot.y) + (dot.z + dot.w);
        }
        if (HasNorm) {
            float4 s = v.low_even * v.low_even;
            s = fma(v.low_odd, v.low_odd, s);
            s = fma(v.high_even, v.high_even, s);
            s = fma(v.high_odd, v.high_odd, s);
            squares[t] += (s.x + s.y) + (s.z + s.w);
        }
    }
};

// What a lane has after token_sums were exchanged: the sum of one row and one token, divided by the
// token's rms where there is a norm. With R * 8 < 32 several lanes have the same.
template <uint R> struct token_place {
    uint row;   // of the R
    uint token; // of the 8
    bool is_first;

    METAL_FUNC explicit token_place(uint lane) {
        const uint sharing = 32 / (R * TOKENS);
        row = lane / sharing / TOKENS;
        token = lane / sharing % TOKENS;
        is_first = lane % sharing == 0;
    }
    // The sum of the other row of a pair, of the same token.
    static METAL_FUNC float get_partner(float sum) {
        return simd_shuffle_xor(sum, TOKENS * (32 / (R * TOKENS)));
    }
};

template <uint R> METAL_FUNC float finish(thread token_sums<R, false> &s, uint lane) {
    scatter<R * TOKENS>::sum(s.dots, lane);
    return s.dots[0];
}

template <uint R>
METAL_FUNC float finish(thread token_sums<R, true> &s, uint in_dim, float eps, uint lane) {
    scatter<R * TOKENS>::sum(s.dots, lane);
    scatter<TOKENS>::sum(s.squares, lane);
    const uint token = token_place<R>(lane).token;
    const float squares = simd_shuffle(s.squares[0], token * (32 / TOKENS));
    return s.dots[0] * rsqrt(squares / float(in_dim) + eps);
}
