// q6_k: the Q6_K weight block as kernels read a format (formats.h).
//
// A block is 256 weights in 210 bytes, in 16 parts of 16, each with a signed scale; n of 6 bits
// stands for d * scale * (n - 32). Half a block has 64 bytes of lower nibbles and 32 bytes of upper
// pairs of bits; its weights l, l + 32, l + 64 and l + 96 have their upper bits in byte l, from the
// lowest up, and their lower ones in bytes l and l + 32: low nibbles for the first two, high
// nibbles for the others. Blocks are only 2-byte aligned.
struct block_q6_k {
    uchar ql[128];
    uchar qh[64];
    char scales[16];
    half d;
};

struct q6_k {
    typedef block_q6_k block;
    typedef float4 wide;
    enum : uint { values = 256, wides = 8 };

    static METAL_FUNC void load(device const block_q6_k *row, uint unit, thread float4 *v) {
        device const block_q6_k *b = row + unit / 8;
        const uint part = unit % 8; // 32 weights: a quarter of half a block
        const uint quarter = part % 4;
        device const packed_uchar4 *low =
            (device const packed_uchar4 *)b->ql + 16 * (part / 4) + 8 * (quarter % 2);
        device const packed_uchar4 *high = (device const packed_uchar4 *)b->qh + 8 * (part / 4);
        const float d = float(b->d);
        // Four weights at a time, as the bytes of one integer: bytes that are widened first cost twice
        // as much.
        for (uint j = 0; j < 8; j++) {
            const uint n =
                (as_type<uint>(uchar4(low[j])) >> (4u * (quarter / 2)) & 0x0F0F0F0Fu) |
                (as_type<uint>(uchar4(high[j])) >> (2u * quarter) & 0x03030303u) << 4u;
            v[j] = (float4(as_type<uchar4>(n)) - 32.0f) * (d * float(b->scales[2 * part + j / 4]));
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q6_k *table, size_t i) {
        device const block_q6_k *b = table + i / 256;
        const uint half_block = i % 256 / 128;
        const uint quarter = i % 128 / 32;
        const uint l = i % 32;
        const uint low =
            b->ql[64 * half_block + 32 * (quarter % 2) + l] >> (4u * (quarter / 2)) & 15u;
        const uint high = b->qh[32 * half_block + l] >> (2u * quarter) & 3u;
        const float scale = float(b->d) * float(b->scales[i % 256 / 16]);
        return (float(low | high << 4u) - 32.0f) * scale;
    }
};
