// Wrong kernels whose findings are looked at closely (tests/test_checked.c); right_*.metal and wrong*.metal
// have the others, canaries (harness/check/canaries) the plain cases.
#include <metal_stdlib>
using namespace metal;

// Loads `by` elements further and stores as far: zeros come back, nothing is hurt.
kernel void far_outside(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                        constant int &by [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const int at = int(i) + by;
    out[i] = in[at];
    if (at < 0 || at >= 128)
        out[at] = 7;
}

// uint arithmetic that runs below zero: an address 16 GB away.
kernel void underflow(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
    out[i] = in[i - 1u];
}

// Where a NaN and an infinity are born.
kernel void births(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    const float x = in[i];
    const float zero = x - x;
    float y = x;
    if (i == 5)
        y = zero / zero;
    const float z = i == 7 ? x / zero : x;
    out[i] = y + z;
}

kernel void underflow_of_a_store(device const float *in [[buffer(0)]],
                                 device float *out [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
    out[i - 1u] = in[i];
}

constexpr uint twice(uint x) {
    return 2 * x;
}
static float inverse(float x) {
    if (x > 0)
        return x;
    return 1 /
           x;
}
kernel void births_in_returns(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
    float kept[twice(1)] = {in[i], 0};
    out[i] = inverse(kept[i == 5]);
}

// One of these updates is lost on a GPU; here it is when threads take turns.
kernel void counted_twice(device atomic_uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);
    uint seen = atomic_load_explicit(&out[1], memory_order_relaxed);
    atomic_store_explicit(&out[1], seen + 1, memory_order_relaxed);
    if (i == 0)
        ((device uint *)out)[1000] = 0; // outside in both orders
    if (i == 5 && seen < 2)
        ((device uint *)out)[2000] = 0; // outside in one
}
