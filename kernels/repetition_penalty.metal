// repetition_penalty: makes the tokens that were there before less likely: a positive logit is
// divided by the penalty, any other multiplied.
#include <metal_stdlib>
using namespace metal;

// A thread takes one id, a threadgroup as many as it has threads. An id that comes several times
// is penalised once, by its first occurrence: the thread of any other finds it in front of itself
// and leaves. So no two threads touch the same logit, and there is no race to lose. Ids past the
// end of the vocabulary are nobody's. Reads up to n^2 / 2 ids, from cache: for the few hundred
// tokens that a penalty looks back, less than a launch.
kernel void repetition_penalty(device float *logits [[buffer(0)]],
                               device const uint *ids [[buffer(1)]],
                               constant uint &n [[buffer(2)]],
                               constant float &penalty [[buffer(3)]],
                               constant uint &vocab [[buffer(4)]],
                               uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    const uint id = ids[i];
    if (id >= vocab)
        return;
    for (uint j = 0; j < i; j++)
        if (ids[j] == id)
            return;
    const float logit = logits[id];
    logits[id] = logit > 0.0f ? logit / penalty : logit * penalty;
}
