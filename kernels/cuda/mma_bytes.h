// mma_bytes: products of weights of at most 8 bits with x by tensor cores, in integers
// (mma.m16n8k32 with signed bytes).
//
// A turn is 64 columns, two blocks of 32, of 16 rows. A lane is at place (lane / 4, lane % 4): it
// has bytes of columns 4 * part to 3 after it, and of 16 after those, of both blocks, of rows lane
// / 4 and 8 after it; what it adds up is its share of the sums of these two rows, which the four
// lanes of a row add together in the end. A format may have 8 neighbouring columns instead, from
// 8 * part on, if x is put so, too.
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

// A lane's share of the sums of two rows.
struct byte_sums {
    float of[2];
    METAL_FUNC float get(uint row) const { return of[row]; }
};
// The same in integers: the two digits that a lane has.
struct digit_sums {
    int of[2][2];
    METAL_FUNC float get(uint row) const {
        return fma(256.0f, float(of[row][0]), float(of[row][1]));
    }
};

// What a byte of 1 of a block stands for: of block lane % 4 / 2. Bytes have a sign.
// spread: see byte_products::find().
struct byte_scale {
    typedef byte_sums sums;
    enum : uint { spread = 4 };
    float factor;
};

// The same for bytes without a sign, in integers of 6 bits: a sum of 256 columns has at most 28 bits, and
// becomes a float once instead of in every turn.
struct unsigned_scale {
    typedef digit_sums sums;
    enum : uint { spread = 2 };
    int factor;
};

// Those of 16 columns, of each block that of its first or last 16: integers of 8 bits, so that a sum
// of 256 columns has at most 29.
struct byte_halves {
    typedef digit_sums sums;
    enum : uint { spread = 2 };
    int factors[2];
};

// 16 times each nibble of a word less 8, as bytes: those of lower nibbles, and of upper ones.
// signs: 0x80808080.
inline uint get_lower_bytes(uint word, uint signs) {
    return (word << 4u & 0xF0F0F0F0u) ^ signs;
}
inline uint get_upper_bytes(uint word, uint signs) {
    return (word & 0xF0F0F0F0u) ^ signs;
}

// x of N turns of one warp at a time. HasOffsets: something is added to all weights of a block, which
// takes a product of the sums of x of all blocks. Spread: see find().
template <uint N, uint Spread, bool HasOffsets> struct byte_products {
    enum : uint {
        memory = 2 * N * 16,
        blocks = 2 * N
    }; // uint2s, and words of sums_of_x, of a warp
    static_assert(2 * N * 4 == 32, "a lane takes 8 values");

    threadgroup uint2 *digits;
    threadgroup uint *sums_of_x; // digits of a sum of x of each block, in 32 times the unit of x
    float unit;                  // what 1 in the last digit stands for
    float lift;                  // x was multiplied by this

    // Where a digit of a part of a block is: those of Spread neighbouring blocks are in different banks. Of
    // four, put() stores them without conflicts. Of two, the blocks of a turn, what a lane loads is at the
    // same distance in all turns, which saves the registers for four addresses.
    static METAL_FUNC uint find(uint block, uint digit, uint part) {
        return 16 * block + 4 * (digit ^ block % Spread) + part;
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
            const uint q = uint(int(rint(fma(sum, 0x1p-5f * up, float(0x808080)))));
            const uint digit = lane % 4;
            ((threadgroup uchar *)sums_of_x)[blocks * digit + lane / 4] =
                uchar(q >> (24u - 8u * digit) ^ (digit ? 0x80u : 0u));
        }
    }

    // The integers of a product, of at most 20 bits, as the share of a lane in two sums.
    static METAL_FUNC void add_up(thread const int (&products)[2][2], float first, float second,
                                  thread byte_sums &sums) {
        sums.of[0] = fma(first, float(256 * products[0][0] + products[0][1]), sums.of[0]);
        sums.of[1] = fma(second, float(256 * products[1][0] + products[1][1]), sums.of[1]);
    }
    static METAL_FUNC void add_up(thread const int (&products)[2][2], int first, int second,
                                  thread digit_sums &sums) {
        for (uint i = 0; i < 2; i++) {
            sums.of[0][i] += first * products[0][i];
            sums.of[1][i] += second * products[1][i];
        }
    }

    static METAL_FUNC void multiply(thread const uint (&a)[2][2], thread const uint (&b)[2],
                                    thread int (&products)[2][2], thread const byte_scale &) {
        cuda::mma_bytes(a, b, products);
    }
    static METAL_FUNC void multiply(thread const uint (&a)[2][2], thread const uint (&b)[2],
                                    thread int (&products)[2][2], thread const unsigned_scale &) {
        cuda::mma_unsigned_bytes(a, b, products);
    }

    // Adds the products of a turn of 16 rows, of those that put() took.
    template <typename Scale>
    METAL_FUNC void add(thread const byte_pair (&w)[2], thread const Scale (&scales)[2], uint turn,
                        uint lane, thread typename Scale::sums &sums) const {
        const uint2 x = digits[find(2 * turn + lane / 16, lane / 4 % 4, lane % 4)];
        int products[2][2] = {{0, 0}, {0, 0}};
        for (uint b = 0; b < 2; b++) {
            const uint a[2][2] = {{w[0].at[b][0], w[0].at[b][1]}, {w[1].at[b][0], w[1].at[b][1]}};
            const bool is_own = lane / 16 == b;
            const uint columns[2] = {is_own ? x.x : 0u, is_own ? x.y : 0u};
            multiply(a, columns, products, scales[0]);
        }
        add_up(products, scales[0].factor, scales[1].factor, sums);
    }

    // Products of the sums of x of all blocks with bytes of 16 rows, in 32 times the unit of add(): a lane
    // has those of blocks 4 * (lane % 4) and the 3 after it, where these exist.
    METAL_FUNC void add_offsets(thread const uint (&w)[2], uint lane,
                                thread byte_sums &sums) const {
        enum : uint { words = blocks / 4 };
        const bool is_there = lane < 16 && lane % 4 < words;
        const uint a[2][2] = {{w[0], 0u}, {w[1], 0u}};
        const uint columns[2] = {is_there ? sums_of_x[lane / 4 * words + lane % words] : 0u, 0u};
        int products[2][2] = {{0, 0}, {0, 0}};
        cuda::mma_unsigned_bytes(a, columns, products);
        add_up(products, 1.0f, 1.0f, sums);
    }

    // The digits of the first 16 columns of a block are the four columns, those of the last 16 the
    // others.
    METAL_FUNC void add(thread const byte_pair (&w)[2], thread const byte_halves (&scales)[2],
                        uint turn, uint lane, thread digit_sums &sums) const {
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
