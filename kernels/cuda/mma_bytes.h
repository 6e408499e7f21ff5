// mma_bytes: products of weights of at most 8 bits with x by tensor cores, in integers
// (mma.m16n8k32 with signed bytes).
//
// A turn is 64 columns, two blocks of 32, of 16 rows. A lane is at place (lane / 4, lane % 4): it
// has bytes of columns 4 * part to 3 after it, and of 16 after those, of both blocks, of rows lane
// / 4 and 8 after it; what it adds up is its share of the sums of these two rows, which the four
// lanes of a row add together in the end.
//
// x goes in four digits of 8 bits, to the power of two that the largest of a warp's has, so that 31
// bits are left of that and all 24 of a value down to a hundredth of it. The four digits of the first
// block are four columns of a matrix of 8, those of the second the others: one sum of integers,
// without any rounding, for all of them.
#pragma once

// The bytes of a lane in a turn, of one row: of each block its first and last 16 columns.
struct byte_pair {
    uint at[2][2];
};

// What a byte of 1 of a block stands for, and what is added to every weight of it, in the same
// unit: of block lane % 4 / 2.
struct byte_scale {
    float factor, offset;
};

// The same of 16 columns, without offsets: of each block, that of its first or last 16.
struct byte_halves {
    float factors[2];
};

// 16 times each nibble of a word less 8, as bytes: those of lower nibbles, and of upper ones.
// signs: 0x80808080.
inline uint get_lower_bytes(uint word, uint signs) {
    return (word << 4u & 0xF0F0F0F0u) ^ signs;
}
inline uint get_upper_bytes(uint word, uint signs) {
    return (word & 0xF0F0F0F0u) ^ signs;
}

// x of N turns of one warp at a time. HasOffsets: not all offsets are 0.
template <uint N, bool HasOffsets> struct byte_products {
    enum : uint { memory = 2 * N * 16, blocks = 2 * N }; // uint2s and floats of a warp
    static_assert(2 * N * 4 == 32, "a lane takes 8 values");

    threadgroup uint2 *digits;
    threadgroup float *sums_of_x; // of each block, in the unit of the last digit
    float unit;                   // what 1 in that digit stands for
    float lift;                   // x was multiplied by this

    // Where a digit of a part of a block is: those of neighbouring blocks are in different banks.
    static METAL_FUNC uint find(uint block, uint digit, uint part) {
        return 16 * block + 4 * (digit ^ block % 4) + part;
    }

    // The digits of four integers to which 0x808080 was added, the highest first: bytes with signs.
    static METAL_FUNC void transpose(thread const uint (&q)[4], thread uint (&to)[4]) {
        const uint upper[2] = {cuda::permute(q[0], q[1], 0x7362u),
                               cuda::permute(q[2], q[3], 0x7362u)};
        const uint lower[2] = {cuda::permute(q[0], q[1], 0x5140u),
                               cuda::permute(q[2], q[3], 0x5140u)};
        to[0] = cuda::permute(upper[0], upper[1], 0x7632u);
        to[1] = cuda::permute(upper[0], upper[1], 0x5410u) ^ 0x80808080u;
        to[2] = cuda::permute(lower[0], lower[1], 0x7632u) ^ 0x80808080u;
        to[3] = cuda::permute(lower[0], lower[1], 0x5410u) ^ 0x80808080u;
    }

    // x of the columns of block lane / 4 whose part is lane % 4. All lanes of a warp call
    // this. Where all of x is tiny it is lifted, denormals too: its power of two must be a normal
    // float. NaN and infinity make all sums NaN.
    METAL_FUNC void put(float4 first, float4 last, uint lane) {
        enum : uint { LEAST = 30, TINY = 54, NOT_FINITE = 255 }; // as exponents
        float v[8] = {first.x, first.y, first.z, first.w, last.x, last.y, last.z, last.w};
        uint largest = 0;
        for (uint i = 0; i < 8; i++)
            largest = max(largest, as_type<uint>(v[i]) & 0x7FFFFFFFu);
        for (uint mask = 1; mask < 32; mask *= 2)
            largest = max(largest, cuda::shuffle_xor(largest, mask));
        lift = 1.0f;
        if (largest >> 23u < TINY) {
            lift = 0x1p60f;
            for (uint i = 0; i < 8; i++)
                v[i] *= lift;
            largest = as_type<uint>(as_type<float>(largest) * lift);
        }
        const uint e = max(largest >> 23u, uint(LEAST));
        const float up = as_type<float>((283u - e) << 23u);
        unit = as_type<float>(e >= NOT_FINITE ? 0x7FC00000u : (e - 29u) << 23u);
        uint words[2][4];
        for (uint side = 0; side < 2; side++) {
            uint q[4];
            for (uint i = 0; i < 4; i++) // the sum is as exact as the product
                q[i] = uint(int(rint(fma(v[4 * side + i], up, float(0x808080)))));
            transpose(q, words[side]);
        }
        for (uint d = 0; d < 4; d++)
            digits[find(lane / 4, d, lane % 4)] = uint2(words[0][d], words[1][d]);
        if (HasOffsets) {
            float sum = (v[0] + v[4] + v[1] + v[5]) + (v[2] + v[6] + v[3] + v[7]);
            sum += cuda::shuffle_xor(sum, 1);
            sum += cuda::shuffle_xor(sum, 2);
            if (lane % 4 == 0)
                sums_of_x[lane / 4] = sum * up;
        }
    }

    // The integers of a product, of at most 20 bits, as the share of a lane in two sums.
    METAL_FUNC void add_up(thread const int (&products)[2][2], float first, float second,
                           thread float *sums) const {
        sums[0] = fma(first, float(256 * products[0][0] + products[0][1]), sums[0]);
        sums[1] = fma(second, float(256 * products[1][0] + products[1][1]), sums[1]);
    }

    // Adds the products of a turn of 16 rows, of those that put() took.
    METAL_FUNC void add(thread const byte_pair (&w)[2], thread const byte_scale (&scales)[2],
                        uint turn, uint lane, thread float *sums) const {
        const uint2 x = digits[find(2 * turn + lane / 16, lane / 4 % 4, lane % 4)];
        int products[2][2] = {{0, 0}, {0, 0}};
        for (uint b = 0; b < 2; b++) {
            const uint a[2][2] = {{w[0].at[b][0], w[0].at[b][1]}, {w[1].at[b][0], w[1].at[b][1]}};
            const bool is_own = lane / 16 == b;
            const uint columns[2] = {is_own ? x.x : 0u, is_own ? x.y : 0u};
            cuda::mma_bytes(a, columns, products);
        }
        add_up(products, scales[0].factor, scales[1].factor, sums);
        if (HasOffsets && lane % 2 == 1) { // its sums are not made larger in the end
            const float sum_of_x = sums_of_x[2 * turn + lane % 4 / 2];
            for (uint r = 0; r < 2; r++)
                sums[r] = fma(scales[r].offset, sum_of_x, sums[r]);
        }
    }

    // The digits of the first 16 columns of a block are the four columns, those of the last 16 the
    // others.
    METAL_FUNC void add(thread const byte_pair (&w)[2], thread const byte_halves (&scales)[2],
                        uint turn, uint lane, thread float *sums) const {
        for (uint b = 0; b < 2; b++) {
            const uint2 x = digits[find(2 * turn + b, lane / 4 % 4, lane % 4)];
            const uint a[2][2] = {{w[0].at[b][0], w[0].at[b][1]}, {w[1].at[b][0], w[1].at[b][1]}};
            const uint columns[2] = {lane < 16 ? x.x : 0u, lane < 16 ? 0u : x.y};
            int products[2][2] = {{0, 0}, {0, 0}};
            cuda::mma_bytes(a, columns, products);
            add_up(products, scales[0].factors[b], scales[1].factors[b], sums);
        }
    }

    // A lane's share of a sum in the end, which was in units of its last digit.
    METAL_FUNC float finish(float sum, uint lane) const {
        const float larger = sum * (lane % 2 == 0 ? 0x1p16f * unit : unit);
        return lift == 1.0f ? larger : 0x1p-60f * larger;
    }
};
