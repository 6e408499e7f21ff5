// rope_apply: rotary position embedding, in place, on neighbouring pairs (2p, 2p + 1) of each head.
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
