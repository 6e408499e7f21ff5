// q4_0_tiles: Q4_0 as tiles read it (tiles.h): two threads per row, half a block each, loaded ahead.
// Needs q4_0_rows.h.
struct q4_0_tiles {
    typedef block_q4_0 block;
    enum : uint { values = 32, lanes = 2 };
    struct part {
        half d;
        ushort4 n;
    };
    static METAL_FUNC part fetch(device const block_q4_0 *row, uint step, uint, uint lane) {
        device const block_q4_0 *b = row + step;
        device const ushort *q = (device const ushort *)b->qs + 4 * lane;
        return {b->d, ushort4(q[0], q[1], q[2], q[3])};
    }
    // (16 + n) * d - 24 * d in one operation: exactly (n - 8) * d.
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        const uint sixteen = q4_0_get_sixteen(0);
        const uint4 n = uint4(p.n);
        const float4 d = float4(float(p.d));
        const float4 m = -24.0f * d;
        const float4 low_even = fma(q4_0_sixteen_more(n << 19u, sixteen), d, m);
        const float4 low_odd = fma(q4_0_sixteen_more(n << 11u, sixteen), d, m);
        const float4 high_even = fma(q4_0_sixteen_more(n << 15u, sixteen), d, m);
        const float4 high_odd = fma(q4_0_sixteen_more(n << 7u, sixteen), d, m);
        at += 2 * lane;
        at[0] = float4(low_even.x, low_odd.x, low_even.y, low_odd.y);
        at[1] = float4(low_even.z, low_odd.z, low_even.w, low_odd.w);
        at[4] = float4(high_even.x, high_odd.x, high_even.y, high_odd.y);
        at[5] = float4(high_even.z, high_odd.z, high_even.w, high_odd.w);
    }
};
