// fast: the fast functions that the others are made of, one instruction each on Apple GPUs.
#pragma once
#pragma clang system_header

namespace assay {

METAL_FUNC float fast_rsqrt(float x) { return ::native_rsqrt(x); }
METAL_FUNC float fast_sqrt(float x) { return ::native_sqrt(x); }
METAL_FUNC float fast_exp2(float x) { return ::native_exp2(x); }
METAL_FUNC float fast_log2(float x) { return ::native_log2(x); }
METAL_FUNC float fast_sin(float x) { return ::native_sin(x); }
METAL_FUNC float fast_cos(float x) { return ::native_cos(x); }
METAL_FUNC float fast_sin_turns(float x, float quarter) {
    return ::native_sin((x + quarter) * 6.28318531f);
}

} // namespace assay
