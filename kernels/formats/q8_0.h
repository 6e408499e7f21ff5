// q8_0: the Q8_0 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 34 bytes: a half scale d, then 32 signed bytes; byte q stands for q * d.
// Blocks are only 2-byte aligned.
struct block_q8_0 {
    half d;
    char qs[32];
};

struct q8_0 {
    typedef block_q8_0 block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const block_q8_0 *row, uint unit, thread float4 *v) {
        device const block_q8_0 *b = row + unit;
        device const packed_char4 *q = (device const packed_char4 *)b->qs;
        const float d = float(b->d);
        for (uint j = 0; j < 8; j++)
            v[j] = float4(char4(q[j])) * d;
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q8_0 *table, size_t i) {
        device const block_q8_0 *b = table + i / 32;
        return float(b->qs[i % 32]) * float(b->d);
    }
};
