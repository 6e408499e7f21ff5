// matvec_q8_0: y = W x and y += W x, with W (out_dim, in_dim) in Q8_0 blocks: the head of a small
// model, whose embeddings need more than 4 bits.
//
// matvec_rows.h says what a thread and a threadgroup do; the format is in formats/q8_0.h.
#include <metal_stdlib>
using namespace metal;

#include "formats/q8_0.h"
#include "matvec_rows.h"

#include "matvec_lean.h"

// By halves of blocks, for matvec_lean.h: 16 weights from 8 loads, the widest that their alignment
// allows.
struct q8_0_halves {
    typedef block_q8_0 block;
    struct input {
        float4 v[4];
    };
    static METAL_FUNC input load(device const float *x, uint part) {
        device const float4 *v = (device const float4 *)x + 4 * part;
        const input i = {{v[0], v[1], v[2], v[3]}};
        return i;
    }
    static METAL_FUNC float multiply(device const block_q8_0 *b, uint part, thread const input &x) {
        device const ushort *q = (device const ushort *)b->qs + 8 * part;
        float4 dots = float4(0.0f);
        for (uint i = 0; i < 4; i++) {
            const uint word = q[2 * i] | uint(q[2 * i + 1]) << 16u;
            dots = fma(float4(as_type<char4>(word)), x.v[i], dots);
        }
        return float(b->d) * ((dots.x + dots.y) + (dots.z + dots.w));
    }
};

MATVEC_ONE_TOKEN(q8_0, q8_0)
MATVEC_MANY_TOKENS(q8_0, q8_0)
MATVEC_LEAN(q8_0)
