// pack_kvakk, channel_mix_v7: what an RWKV-7 layer copies.
#include <metal_stdlib>
using namespace metal;

// packed (4, n) = k, v, a, kk (n): what a time mix reads, in one buffer. One thread per index.
kernel void pack_kvakk(device const float *k [[buffer(0)]],
                       device const float *v [[buffer(1)]],
                       device const float *a [[buffer(2)]],
                       device const float *kk [[buffer(3)]],
                       device float *packed [[buffer(4)]],
                       constant uint &n [[buffer(5)]],
                       uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    packed[i] = k[i];
    packed[i + n] = v[i];
    packed[i + 2 * n] = a[i];
    packed[i + 3 * n] = kk[i];
}

// state (dim) = the last row of x (tokens, dim), then x = v: the end of a channel mix, where x
// enters as what the next token is mixed with. One thread per value of x; the same thread reads x
// for the state and overwrites it.
kernel void channel_mix_v7(device float *state [[buffer(0)]],
                           device const float *v [[buffer(1)]],
                           device float *x [[buffer(2)]],
                           constant uint &tokens [[buffer(3)]],
                           constant uint &dim [[buffer(4)]],
                           uint i [[thread_position_in_grid]]) {
    const uint count = tokens * dim;
    if (i >= count)
        return;
    if (i >= count - dim)
        state[i - (count - dim)] = x[i];
    x[i] = v[i];
}
