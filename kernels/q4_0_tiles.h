// q4_0_tiles: Q4_0 as tiles read it (tiles.h): two threads per row, half a block each, loaded ahead.
// Needs q4_0_rows.h.
struct q4_0_tiles {
    typedef block_q4_0 block;
    enum : uint { values = 32, lanes = 2 };
    typedef q4_0_half_bits part;
    static METAL_FUNC part fetch(device const block_q4_0 *row, uint step, uint, uint lane) {
        return q4_0_take_half(row + step, lane);
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        float4 w[4];
        q4_0_decode_half(p, get_sixteen(0), w);
        at += 2 * lane;
        at[0] = float4(w[0].x, w[1].x, w[0].y, w[1].y);
        at[1] = float4(w[0].z, w[1].z, w[0].w, w[1].w);
        at[4] = float4(w[2].x, w[3].x, w[2].y, w[3].y);
        at[5] = float4(w[2].z, w[3].z, w[2].w, w[3].w);
    }
};
