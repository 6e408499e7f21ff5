// rope_apply_tokens: rotary position embedding of the query and key heads of many tokens in one
// launch. Token t is at position pos + t.
#include <metal_stdlib>
using namespace metal;

#include "prefetch.h"

// A thread rotates one pair of one head of one token, as in rope_apply: those of q and then those
// of k, token after token; the rest of the last threadgroup none. Moves 8 bytes in and 8 out per
// pair. It exists for prefill, where rope_apply_dual would be launched for every token.
kernel void rope_apply_tokens(device float *q [[buffer(0)]],
                              device float *k [[buffer(1)]],
                              constant uint &nq [[buffer(2)]],
                              constant uint &nk [[buffer(3)]],
                              constant uint &head_dim [[buffer(4)]],
                              constant uint &pos [[buffer(5)]],
                              constant float &theta [[buffer(6)]],
                              constant uint &n_tokens [[buffer(7)]],
                              uint i [[thread_position_in_grid]]) {
    const uint pairs = head_dim / 2;
    const uint q_pairs = nq * pairs;
    const uint k_pairs = nk * pairs;
    const uint token = i / (q_pairs + k_pairs);
    if (token >= n_tokens)
        return;
    const uint j = i % (q_pairs + k_pairs); // of this token
    const uint p = j % pairs;
    const float frequency = precise::pow(theta, -2.0f * float(p) / float(head_dim));
    PREFETCHED(0); // only the scalars
    device float *pair =
        j < q_pairs ? q + 2 * (token * q_pairs + j) : k + 2 * (token * k_pairs + j - q_pairs);
    const float a = pair[0]; // under way while the angle is computed
    const float b = pair[1];
    const float angle = float(pos + token) * frequency;
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    pair[0] = a * c - b * s;
    pair[1] = a * s + b * c;
}
