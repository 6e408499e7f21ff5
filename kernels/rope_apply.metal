// rope_apply: rotary position embedding, in place, on neighbouring pairs (2p, 2p + 1) of each head: of
// one buffer, or of q and k in one launch.
#include <metal_stdlib>
using namespace metal;

#include "prefetch.h"

// A thread rotates one pair of one head by pos * theta^(-2p / head_dim); threadgroups have no role
// of their own. Moves 8 bytes in and 8 out per pair. It uses the precise forms of sin, cos and pow:
// the angle reaches the thousands, where the fast ones are wrong in the first digits. pos is
// usually bound to device memory, so that a recorded token can be played at any position.
kernel void rope_apply(device float *qk [[buffer(0)]],
                       constant uint &heads [[buffer(1)]],
                       constant uint &head_dim [[buffer(2)]],
                       constant uint &pos [[buffer(3)]],
                       constant float &theta [[buffer(4)]],
                       uint i [[thread_position_in_grid]]) {
    const uint pairs = head_dim / 2;
    if (i >= heads * pairs)
        return;
    const uint p = i % pairs;
    const float frequency = precise::pow(theta, -2.0f * float(p) / float(head_dim));
    PREFETCHED(0); // only the scalars
    const float a = qk[2 * i]; // under way while the angle is computed
    const float b = qk[2 * i + 1];
    const float angle = float(pos) * frequency;
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    qk[2 * i] = a * c - b * s;
    qk[2 * i + 1] = a * s + b * c;
}

// A thread rotates one pair of one head, as in rope_apply: the first nq * head_dim / 2 threads
// those of q, the next nk * head_dim / 2 those of k, the rest of the last threadgroup none. Moves 8
// bytes in and 8 out per pair. It exists because two launches of a microsecond each, to move a few
// kilobytes, are nothing but launch overhead.
kernel void rope_apply_dual(device float *q [[buffer(0)]],
                            device float *k [[buffer(1)]],
                            constant uint &nq [[buffer(2)]],
                            constant uint &nk [[buffer(3)]],
                            constant uint &head_dim [[buffer(4)]],
                            constant uint &pos [[buffer(5)]],
                            constant float &theta [[buffer(6)]],
                            uint i [[thread_position_in_grid]]) {
    const uint pairs = head_dim / 2;
    const uint q_pairs = nq * pairs;
    if (i >= q_pairs + nk * pairs)
        return;
    const uint p = i % pairs;
    const float frequency = precise::pow(theta, -2.0f * float(p) / float(head_dim));
    PREFETCHED(0); // only the scalars
    device float *pair = i < q_pairs ? q + 2 * i : k + 2 * (i - q_pairs);
    const float a = pair[0]; // under way while the angle is computed
    const float b = pair[1];
    const float angle = float(pos) * frequency;
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    pair[0] = a * c - b * s;
    pair[1] = a * s + b * c;
}
