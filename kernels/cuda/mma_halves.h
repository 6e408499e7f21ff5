// mma_halves: products of weights of 4 bits with values of 8 tokens by tensor cores, as halves with
// sums in floats (mma.m16n8k16).
//
// A turn is 32 columns of 16 rows and 8 tokens; places are those of few.h. A value goes in two
// halves, of which the second has what the first one lost: 22 bits, if it is neither too large nor
// too small for that. Therefore values are multiplied by a power of two, the usual one first; whether
// it was right is known in the end. A value of less than 2^-17 of the largest that a warp takes of
// its token has fewer bits, each half fewer.
//
// Two weights a and b are in a byte, 16 columns apart. It is less work to multiply with a and with
// a + 16 b: a x + b v is a (x - v / 16) + (a + 16 b) v / 16.
#pragma once

// IsUsual: with the usual power of two, which is that of values whose largest is from 1 / 32 to
// 512; few_halves<false> is for where that is wrong.
template <bool IsUsual> struct few_halves {
    float up;     // if it is not the usual one: that of the token whose values this lane takes
    uint largest; // of its first halves: two of them
    uint upper[4], lower[4];

    static METAL_FUNC float get_usual() { return 128.0f; }
    // What sums are to be multiplied by in the end.
    static METAL_FUNC float get_unit() { return 0.0078125f; }

    METAL_FUNC few_halves() {
        up = get_usual();
        largest = 0u;
    }

    METAL_FUNC void split(float a, float b, thread uint &first, thread uint &rest) {
        first = cuda::pack_halves(a, b);
        const half2 taken = as_type<half2>(first);
        rest = cuda::pack_halves(a - float(taken.x), b - float(taken.y));
    }

    // A lane's values of a turn: of columns 4 * pair to 3 after it, and of 16 after those.
    METAL_FUNC void take(thread const float4 (&v)[2]) {
        const float power = IsUsual ? get_usual() : up;
        const float4 last = v[1] * (0.0625f * power);
        const float4 first = fma(v[0], power, -last);
        split(first.x, first.y, upper[0], lower[0]);
        split(first.z, first.w, upper[1], lower[1]);
        split(last.x, last.y, upper[2], lower[2]);
        split(last.z, last.w, upper[3], lower[3]);
        for (uint i = 0; IsUsual && i < 4; i++)
            largest = cuda::larger_halves(largest, upper[i]);
    }

    // Adds the products of a turn. words: the nibbles of a lane's weights, of its two rows.
    METAL_FUNC void add(thread const uint (&words)[2], thread float (&sums)[2][2], uint) const {
        uint both[2][2]; // n - 8 of the lower nibble and 16 times that of the upper one
        uint low[2][2];  // n - 8 of the lower nibble
        for (uint r = 0; r < 2; r++)
            for (uint i = 0; i < 2; i++) {
                // Below the exponent of 1024, a byte is added to it.
                const uint bits = cuda::permute(words[r], 0x64646464u, i ? 0x4342u : 0x4140u);
                both[r][i] = as_type<uint>(as_type<half2>(bits) - half2(1160.0h));
                low[r][i] = as_type<uint>(as_type<half2>(bits & 0x640F640Fu) - half2(1032.0h));
            }
        const uint x[2] = {upper[0], upper[1]}, x_rest[2] = {lower[0], lower[1]};
        const uint v[2] = {upper[2], upper[3]}, v_rest[2] = {lower[2], lower[3]};
        cuda::mma_halves(both, v, sums);
        cuda::mma_halves(both, v_rest, sums);
        cuda::mma_halves(low, x, sums);
        cuda::mma_halves(low, x_rest, sums);
    }

    // The largest of the four lanes that take values of the same token.
    static METAL_FUNC float compare(float x) {
        x = max(x, cuda::shuffle_xor(x, 1));
        return max(x, cuda::shuffle_xor(x, 2));
    }

    // Was the usual power of two wrong for the values of a token? The second half of one has no bit
    // below 2^-24: less than 4 would have lost some of its 22. The same for all lanes.
    METAL_FUNC bool is_wrong() const {
        const half2 halves = as_type<half2>(largest);
        const float found = compare(max(float(halves.x), float(halves.y)));
        return cuda::any(!(found >= 4.0f && found < 65536.0f)); // no half is that large
    }

    // The right one, for those that this lane takes: of 64 columns, of 64 that are `step` further,
    // and so on.
    METAL_FUNC void set_power(device const float *values, uint step, uint count) {
        float most = 0.0f;
        for (uint turn = 0; turn < count; turn++)
            for (uint i = 0; i < 16; i++)
                most = max(most, fabs(values[step * turn + i / 4 * 16 + i % 4]));
        const uint exponent = as_type<uint>(compare(most)) >> 23u;
        up = as_type<float>((268u - clamp(exponent, 15u, 254u)) << 23u);
    }

    // As if all powers of two had been the usual one.
    template <uint N> METAL_FUNC void finish(thread float (&sums)[N][2], uint lane) const {
        for (uint j = 0; j < 2; j++) {
            const float factor = get_usual() / simd_shuffle(up, ushort(lane % 4 * 8 + 4 * j));
            for (uint i = 0; i < N; i++)
                sums[i][j] *= factor;
        }
    }
};
