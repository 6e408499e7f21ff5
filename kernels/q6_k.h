// q6_k: the Q6_K weight block as matvec_rows.h reads a format.
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
        for (uint j = 0; j < 8; j++) {
            const uint4 n = (uint4(uchar4(low[j])) >> (4u * (quarter / 2)) & 15u) |
                            (uint4(uchar4(high[j])) >> (2u * quarter) & 3u) << 4u;
            v[j] = (float4(n) - 32.0f) * (d * float(b->scales[2 * part + j / 4]));
        }
    }
};
