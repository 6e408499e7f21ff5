// fast: the fast functions that the others are made of, on NVIDIA GPUs: the approximate instructions,
// which flush denormals. Sine and cosine are good near 0 only, so angles are reduced to a turn.
#pragma once
#pragma clang system_header

namespace assay {

METAL_FUNC float fast_rsqrt(float x) {
    return __nvvm_rsqrt_approx_ftz_f(x);
}
METAL_FUNC float fast_sqrt(float x) {
    return __nvvm_sqrt_approx_ftz_f(x);
}
METAL_FUNC float fast_exp2(float x) {
    return __nvvm_ex2_approx_ftz_f(x);
}
METAL_FUNC float fast_log2(float x) {
    return __nvvm_lg2_approx_ftz_f(x);
}

// sin(2 pi (x + quarter)).
METAL_FUNC float fast_sin_turns(float x, float quarter) {
    float t = x - __builtin_rintf(x) + quarter;
    t -= __builtin_rintf(t); // -1/2 to 1/2
    return __nvvm_sin_approx_ftz_f(6.28318531f * t);
}
METAL_FUNC float fast_sin(float x) {
    return fast_sin_turns(x * 0.159154943f, 0.0f);
}
METAL_FUNC float fast_cos(float x) {
    return fast_sin_turns(x * 0.159154943f, 0.25f);
}

} // namespace assay
