// repetition_penalty: makes tokens that occurred before less likely: a positive logit is divided by
// the penalty, any other multiplied.
#include <metal_stdlib>
using namespace metal;

// One thread per id. An id that occurs several times is penalised once, by the thread of its first
// occurrence: the others find it before their own and return. So no two threads touch the same
// logit, and there is no race. Ids past the end of the vocabulary are ignored. Reads up to n^2 / 2
// ids, from cache: for the few hundred recent tokens that are penalised, that is cheaper than a
// launch.
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
