// speeds: the functions that MSL has in two variants, precise and fast, and the fast ones.
//
// Fast ones are made as the specification says ("implemented as") or within its bounds for fast
// math, so that what breaks with them on a GPU breaks here: tanh of a large number is infinity by
// infinity, sin is good to a few digits near 0 and to fewer far away. Without fast math both names
// mean the precise functions: the difference is then what a tolerance is for.
#pragma once
#pragma clang system_header

#include "packed.h"

#include "fast.h" // of the device that is compiled for

namespace assay {

METAL_FUNC float fast_exp(float x) {
    return fast_exp2(x * 1.44269504f);
}
METAL_FUNC float fast_log(float x) {
    return fast_log2(x) * 0.693147181f;
}
METAL_FUNC float fast_pow(float x, float y) {
    return fast_exp2(y * fast_log2(x));
}

METAL_FUNC float fast_tan(float x) {
    return fast_sin(x) * (1.0f / fast_cos(x));
}
METAL_FUNC float fast_tanh(float x) {
    const float t = fast_exp(2.0f * x);
    return (t - 1.0f) / (t + 1.0f);
}

} // namespace assay

// One line per function: its name, the precise variant, the fast one.
#define ASSAY_TWO_SPEEDS(ONE, TWO)                                                                 \
    ONE(acosh, __builtin_acoshf(x), assay::fast_log(x + assay::fast_sqrt(x * x - 1.0f)))           \
    ONE(asinh, __builtin_asinhf(x), assay::fast_log(x + assay::fast_sqrt(x * x + 1.0f)))           \
    ONE(atanh, __builtin_atanhf(x), 0.5f * assay::fast_log((1.0f + x) / (1.0f - x)))               \
    ONE(cos, __builtin_cosf(x), assay::fast_cos(x))                                                \
    ONE(cosh, __builtin_coshf(x), 0.5f * (assay::fast_exp(x) + assay::fast_exp(-x)))               \
    ONE(cospi, assay::sin_pi(x, 1), assay::fast_sin_turns(0.5f * x, 0.25f))                        \
    ONE(exp, __builtin_expf(x), assay::fast_exp(x))                                                \
    ONE(exp2, __builtin_exp2f(x), assay::fast_exp2(x))                                             \
    ONE(exp10, __builtin_powf(10.0f, x), assay::fast_exp2(x * 3.32192809f))                        \
    ONE(log, __builtin_logf(x), assay::fast_log(x))                                                \
    ONE(log10, __builtin_log10f(x), assay::fast_log2(x) * 0.301029996f)                            \
    ONE(log2, __builtin_log2f(x), assay::fast_log2(x))                                             \
    ONE(rsqrt, 1.0f / __builtin_sqrtf(x), assay::fast_rsqrt(x))                                    \
    ONE(sin, __builtin_sinf(x), assay::fast_sin(x))                                                \
    ONE(sinh, __builtin_sinhf(x), 0.5f * (assay::fast_exp(x) - assay::fast_exp(-x)))               \
    ONE(sinpi, assay::sin_pi(x, 0), assay::fast_sin_turns(0.5f * x, 0.0f))                         \
    ONE(sqrt, __builtin_sqrtf(x), assay::fast_sqrt(x))                                             \
    ONE(tan, __builtin_tanf(x), assay::fast_tan(x))                                                \
    ONE(tanh, __builtin_tanhf(x), assay::fast_tanh(x))                                             \
    ONE(tanpi, assay::sin_pi(x, 0) / assay::sin_pi(x, 1), assay::fast_tan(x * M_PI_F))             \
    TWO(pow, __builtin_powf(x, y), assay::fast_pow(x, y))                                          \
    TWO(powr, x < 0.0f ? __builtin_nanf("") : __builtin_powf(x, y), assay::fast_pow(x, y))
