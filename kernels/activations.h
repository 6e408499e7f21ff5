/* activations: THE list of functions that kernels apply to a finished value, for C and for MSL.
 *
 * Which one is an argument of the launch and not part of a kernel's name: it is applied once per
 * output, where a choice costs nothing. */
#pragma once

/* decay is what RWKV-7 makes of its decay channel: e^(-e^-0.5 sigmoid(x)), from 0.545 to 1, with the
 * constant rounded as its implementations round it. */
#define DECAY_RATE 0.606531f
enum activation {
    ACTIVATION_NONE,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_SQUARED_RELU,
    ACTIVATION_SILU,
    ACTIVATION_DECAY,
    ACTIVATION_COUNT
};

#ifdef __METAL_VERSION__

// Comparisons let NaN pass, where min and max would replace it by the limit. Below -87 e^-x leaves
// the range of a float, which fast math takes for granted never to happen, and there is less than
// the smallest normal float left to return.
inline float sigmoid(float x) {
    return x < -87.0f ? 0.0f : 1.0f / (1.0f + exp(-x));
}

// A fast tanh is infinity divided by infinity for large x; at 15 it is 1 to the last bit.
inline float tanh_of_any(float x) {
    return precise::tanh(x < -15.0f ? -15.0f : x > 15.0f ? 15.0f : x);
}

inline float activate(uint kind, float x) {
    switch (kind) {
    case ACTIVATION_TANH:
        return tanh_of_any(x);
    case ACTIVATION_SIGMOID:
        return sigmoid(x);
    case ACTIVATION_SQUARED_RELU:
        return x < 0.0f ? 0.0f : x * x;
    case ACTIVATION_SILU:
        return x * sigmoid(x);
    case ACTIVATION_DECAY:
        return exp(-DECAY_RATE * sigmoid(x));
    default:
        return x;
    }
}

#endif
