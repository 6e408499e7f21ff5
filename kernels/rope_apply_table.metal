// rope_apply_table: rotary position embedding of the query and key heads of many tokens, whose
// frequencies come from a table: freqs (head_dim / 2). Token t is at position pos + t.
#include <metal_stdlib>
using namespace metal;

#include "prefetch.h"

#define ROPE_TABLE_ARGUMENTS                                                                       \
    device float *q [[buffer(0)]], device float *k [[buffer(1)]],                                  \
        constant uint &nq [[buffer(2)]], constant uint &nk [[buffer(3)]],                          \
        constant uint &head_dim [[buffer(4)]], constant uint &pos [[buffer(5)]],                   \
        device const float *freqs [[buffer(6)]], constant uint &n_tokens [[buffer(7)]]

// A thread rotates one pair of one head of one token: those of q and then those of k, token after token;
// the rest of the last threadgroup none. It reads its frequency instead of computing it. Moves 8 bytes in and 8 out per pair; the table stays in cache.
// It exists for models that stretch the frequencies for long contexts, each in its own way: the
// table is filled once when the model is loaded. That there is no power to compute comes for free.
kernel void rope_apply_table(ROPE_TABLE_ARGUMENTS,
                             uint i [[thread_position_in_grid]]) {
    const uint pairs = head_dim / 2;
    const uint q_pairs = nq * pairs;
    const uint k_pairs = nk * pairs;
    const uint token = i / (q_pairs + k_pairs);
    if (token >= n_tokens)
        return;
    const uint j = i % (q_pairs + k_pairs); // of this token
    const float frequency = freqs[j % pairs];
    PREFETCHED(1 << 6);
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

inline void rotate(device float *pair, float c, float s) {
    const float a = pair[0];
    const float b = pair[1];
    pair[0] = a * c - b * s;
    pair[1] = a * s + b * c;
}

// A thread rotates the same pair of all heads of one token, so that its sine and cosine are computed
// once. Neighbouring threads still load neighbouring pairs, but there are fewer of them: one token
// of 9 and 3 heads of 64 has 32. It is for the software device, where what is computed counts.
kernel void rope_apply_table_heads(ROPE_TABLE_ARGUMENTS,
                                   uint i [[thread_position_in_grid]]) {
    const uint pairs = head_dim / 2;
    const uint token = i / pairs;
    if (token >= n_tokens)
        return;
    const uint p = i % pairs;
    const float angle = float(pos + token) * freqs[p];
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    for (uint head = 0; head < nq; head++)
        rotate(q + 2 * ((token * nq + head) * pairs + p), c, s);
    for (uint head = 0; head < nk; head++)
        rotate(k + 2 * ((token * nk + head) * pairs + p), c, s);
}
