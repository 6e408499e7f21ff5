// halves: products of weights of 4 bits with values of 8 tokens, as halves.
//
// A turn is 32 columns of 16 rows and 8 tokens; places are those of few.h. A device may multiply
// matrices of halves with sums in floats. A value then goes in two halves, of which the second has
// what the first one lost: 22 bits, if it is neither too large nor too small for that. Therefore
// values are multiplied by a power of two, the usual one first; whether it was right is known in
// the end. A value of less than 2^-17 of the largest that a simdgroup takes of its token has fewer
// bits, each half fewer.
#pragma once

#include "all_lanes.h"
#include "few.h"
#include "nibbles.h"

#ifdef __ASSAY__
#define HAS_HALVES_16X8X16 ASSAY_HAS_HALVES_16X8X16
#define MULTIPLY_HALVES_16X8X16 ASSAY_MULTIPLY_HALVES_16X8X16
#define PACK_HALVES ASSAY_PACK_HALVES
#define LARGER_HALVES ASSAY_LARGER_HALVES
#else
#define HAS_HALVES_16X8X16 false
#define MULTIPLY_HALVES_16X8X16(a, b, sums) ((void)0)
#define PACK_HALVES(lower, upper) 0u
#define LARGER_HALVES(a, b) 0u
#endif

struct few_halves {
    enum : uint { memory = 0 };
    uint exponents; // nibbles.h
    float up;       // the power of two of the token whose values this lane takes
    uint largest;   // of its first halves: two of them
    uint upper[4], lower[4];

    // The usual power of two is that of values whose largest is from 1 / 32 to 512.
    static METAL_FUNC float get_usual() { return 128.0f; }
    // What sums are to be multiplied by in the end.
    static METAL_FUNC float get_unit() { return 0.0078125f; }

    METAL_FUNC few_halves(uint some, threadgroup float *) {
        exponents = get_1024s(some);
        up = get_usual();
        largest = 0u;
    }

    METAL_FUNC void split(float a, float b, thread uint &first, thread uint &rest) {
        first = PACK_HALVES(a, b);
        const half2 taken = as_type<half2>(first);
        rest = PACK_HALVES(a - float(taken.x), b - float(taken.y));
    }

    // A lane's values of a turn: of columns 4 * pair to 3 after it, and of 16 after those. These
    // meet with 16 times their weights.
    METAL_FUNC void take(thread const float4 (&v)[2]) {
        const float4 first = v[0] * up;
        const float4 last = v[1] * (0.0625f * up);
        split(first.x, first.z, upper[0], lower[0]);
        split(first.y, first.w, upper[1], lower[1]);
        split(last.x, last.z, upper[2], lower[2]);
        split(last.y, last.w, upper[3], lower[3]);
        for (uint i = 0; i < 4; i++)
            largest = LARGER_HALVES(largest, upper[i]);
    }

    // Adds the products of a turn. words: the nibbles of a lane's weights, of its two rows.
    METAL_FUNC void add(thread const uint (&words)[2], thread float (&sums)[2][2], uint) const {
        for (uint side = 0; side < 2; side++) {
            uint a[2][2];
            for (uint r = 0; r < 2; r++)
                for (uint odd = 0; odd < 2; odd++) {
                    const uint bytes = words[r] >> 8u * odd;
                    const half2 w =
                        side ? high_nibbles_16(bytes, exponents) : low_nibbles(bytes, exponents);
                    a[r][odd] = as_type<uint>(w);
                }
            const uint x[2] = {upper[2 * side], upper[2 * side + 1]};
            const uint rest[2] = {lower[2 * side], lower[2 * side + 1]};
            MULTIPLY_HALVES_16X8X16(a, x, sums);
            MULTIPLY_HALVES_16X8X16(a, rest, sums);
        }
    }

    // The largest of the four lanes that take values of the same token.
    static METAL_FUNC float compare(float x) {
        x = max(x, EXCHANGE(x, 1));
        return max(x, EXCHANGE(x, 2));
    }

    // Was the usual power of two wrong for the values of a token? The second half of one has no bit
    // below 2^-24: less than 4 would have lost some of its 22. The same for all lanes.
    METAL_FUNC bool is_wrong() const {
        if (up != get_usual())
            return false;
        const half2 halves = as_type<half2>(largest);
        const float found = compare(max(float(halves.x), float(halves.y)));
        return ANY(!(found >= 4.0f && found < INFINITY));
    }

    // The right one, but never the usual one, for those that this lane takes: of 64 columns, of 64
    // that are `step` further, and so on.
    METAL_FUNC void set_power(device const float *values, uint step, uint count) {
        float most = 0.0f;
        for (uint turn = 0; turn < count; turn++)
            for (uint i = 0; i < 16; i++)
                most = max(most, fabs(values[step * turn + i / 4 * 16 + i % 4]));
        const uint exponent = as_type<uint>(compare(most)) >> 23u;
        up = as_type<float>((268u - clamp(exponent, 15u, 254u)) << 23u);
        if (up == get_usual())
            up *= 0.5f; // is_wrong(): none has the usual one now
    }

    // As if all powers of two had been the usual one.
    METAL_FUNC void finish(thread float (&sums)[4][2], uint lane) const {
        if (!ANY(up != get_usual()))
            return;
        for (uint j = 0; j < 2; j++) {
            const float factor = get_usual() / simd_shuffle(up, ushort(lane % 4 * 8 + 4 * j));
            for (uint i = 0; i < 4; i++)
                sums[i][j] *= factor;
        }
    }
};

// Floats where there are none.
template <bool HasMatrices> struct halves_or_floats { typedef few_halves type; };
template <> struct halves_or_floats<false> { typedef few_floats type; };
