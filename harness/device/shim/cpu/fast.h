// fast: the fast functions that the others are made of, on a CPU: within MSL's bounds for fast
// math, and as far from the precise ones as those allow.
#pragma once
#pragma clang system_header

namespace assay {

// Greater than 0 and finite, by its bits: fast math takes it that nothing is infinite.
METAL_FUNC bool is_positive(float x) {
    return __builtin_bit_cast(unsigned, x) - 1u < 0x7f7fffffu;
}

// Newton's steps from a first guess made of the exponent: below 2 ULP.
METAL_FUNC float fast_rsqrt(float x) {
    if (!is_positive(x))
        return 1.0f / __builtin_sqrtf(x);
    float y = __builtin_bit_cast(float, 0x5F375A86u - (__builtin_bit_cast(unsigned, x) >> 1));
    for (int i = 0; i < 3; i++)
        y *= 1.5f - 0.5f * x * y * y;
    return y;
}
METAL_FUNC float fast_sqrt(float x) {
    return is_positive(x) ? x * fast_rsqrt(x) : __builtin_sqrtf(x);
}
// 2^(x - n) by a polynomial, below 2 ULP, with n added to its exponent: from 128 on this is
// infinity. What is not a normal number is 0. Inlined, because a call costs as much again, and four
// of them become one of vectors. A NaN is a NaN, whatever integer its exponent becomes.
__attribute__((no_sanitize("float-cast-overflow"))) METAL_FUNC float fast_exp2(float x) {
    const float near = x < -126.0f ? -126.0f : x > 128.0f ? 128.0f : x; // NaN stays
    const float n = __builtin_rintf(near), t = near - n;
    float y = 1.535336188e-4f;
    y = __builtin_fmaf(y, t, 1.339887440e-3f);
    y = __builtin_fmaf(y, t, 9.618437357e-3f);
    y = __builtin_fmaf(y, t, 5.550332471e-2f);
    y = __builtin_fmaf(y, t, 2.402264791e-1f);
    y = __builtin_fmaf(y, t, 6.931472029e-1f);
    y = __builtin_fmaf(y, t, 1.0f);
    const unsigned bits =
        __builtin_bit_cast(unsigned, y) + (static_cast<unsigned>(static_cast<int>(n)) << 23);
    return x < -126.0f ? 0.0f : __builtin_bit_cast(float, bits);
}
METAL_FUNC float fast_log2(float x) {
    return __builtin_log2f(x);
}

// sin(2 pi (x + quarter / 4)) by a polynomial that is off by 4e-6 at most.
METAL_FUNC float fast_sin_turns(float x, float quarter) {
    float t = x - __builtin_rintf(x) + quarter;
    t -= __builtin_rintf(t); // -1/2 to 1/2
    if (t > 0.25f)
        t = 0.5f - t;
    else if (t < -0.25f)
        t = -0.5f - t;
    const float a = 6.28318531f * t, s = a * a;
    const float inner = 8.33333333e-3f - s * (1.98412698e-4f - s * 2.75573192e-6f);
    return a * (1.0f - s * (0.166666667f - s * inner));
}
METAL_FUNC float fast_sin(float x) {
    return fast_sin_turns(x * 0.159154943f, 0.0f);
}
METAL_FUNC float fast_cos(float x) {
    return fast_sin_turns(x * 0.159154943f, 0.25f);
}

} // namespace assay
