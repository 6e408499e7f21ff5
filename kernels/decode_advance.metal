// decode_advance: the end of a greedy decode step. The token that argmax chose becomes the next
// step's input, and position, cache length and step count increase by one.
#include <metal_stdlib>
using namespace metal;

// One thread. Moves some 40 bytes. It takes the CPU out of the loop between two tokens: the next
// step can be submitted before this one is done. history (ring) keeps the last tokens in a ring,
// for the CPU to read later.
struct decode_state {
    uint token, pos, kv_len, step;
};

kernel void decode_advance(device const uint *next [[buffer(0)]],
                           device decode_state *state [[buffer(1)]],
                           device uint *history [[buffer(2)]],
                           constant uint &ring [[buffer(3)]]) {
    const uint token = next[0];
    history[state->step % ring] = token;
    state->token = token;
    state->pos += 1;
    state->kv_len += 1;
    state->step += 1;
}
