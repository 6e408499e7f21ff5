// Where lanes rejoin: each kernel counts the lanes that meet at its calls. test_simd.c knows the counts.
#include <metal_stdlib>
using namespace metal;

#define HERE simd_sum(1u)
#define REJOIN(name)                                                                               \
    static uint name##_of(uint lane, uint x);                                                      \
    kernel void name(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],          \
                     uint lane [[thread_index_in_simdgroup]]) {                                    \
        out[lane] = 0;                                                                             \
        out[lane] = name##_of(lane, in[lane]);                                                     \
    }                                                                                              \
    static uint name##_of(uint lane, uint x)

// The compiler lays out an unlikely arm, or one whose result nobody needs, after what follows it.
REJOIN(rejoin_unlikely) {
    uint v = lane;
    if (__builtin_expect(x < 5, 0))
        v = simd_sum(v);
    const uint all = HERE;
    return v == 12345 ? 0 : all;
}
REJOIN(rejoin_dead) {
    if (x < 5)
        simd_sum(lane);
    return HERE;
}

__attribute__((noinline)) static uint count_twice(uint lane) {
    uint r = HERE;
    if (lane % 2)
        r = r * 100 + HERE;
    return r;
}
REJOIN(rejoin_called) {
    uint r = x < 16 ? count_twice(lane) : 1000000 + count_twice(lane);
    return r + 10000 * HERE;
}

// The inner loop is left by return alone: it has no exit, and the outer one has.
REJOIN(rejoin_endless) {
    uint r = 0;
    for (uint i = 0; i <= lane % 2; i++) {
        if (lane >= 24)
            for (uint k = 0;; k++)
                if (HERE + k > 8 + lane % 4)
                    return k;
        r = r * 100 + HERE;
    }
    return r * 100 + HERE;
}
