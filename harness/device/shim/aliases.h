// aliases: THE list of functions that Apple's own headers call __metal_x for metal::x, by what they
// take: one to three values, a value and a lane, or what a shift that fills takes. internals.h of the
// shim and of msl/strict make them of it.
#pragma once

#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 1
#define __METAL_FAST_MATH__ 2
#define __METAL_MEMORY_SCOPE_SYSTEM__ 4

// clang-format off
#define ASSAY_ALIASES(ONE, TWO, THREE, LANE, FILL) \
    ONE(acos) ONE(acosh) ONE(asin) ONE(asinh) ONE(atan) ONE(atanh) ONE(ceil) ONE(cos) ONE(cosh) \
    ONE(cospi) ONE(exp) ONE(exp10) ONE(exp2) ONE(fabs) ONE(floor) ONE(fract) ONE(log) ONE(log10) \
    ONE(log2) ONE(rint) ONE(round) ONE(rsqrt) ONE(sin) ONE(sinh) ONE(sinpi) ONE(sqrt) ONE(tan) \
    ONE(tanh) ONE(tanpi) ONE(trunc) ONE(simd_max) ONE(simd_min) \
    ONE(simd_prefix_exclusive_product) ONE(simd_prefix_exclusive_sum) \
    ONE(simd_prefix_inclusive_product) ONE(simd_prefix_inclusive_sum) ONE(simd_product) \
    ONE(simd_sum) ONE(simd_xor) \
    TWO(atan2) TWO(divide) TWO(fmax) TWO(fmin) TWO(fmod) TWO(nextafter) TWO(pow) TWO(powr) \
    THREE(fma) THREE(fmax3) THREE(fmedian3) THREE(fmin3) \
    LANE(simd_broadcast) LANE(simd_shuffle) LANE(simd_shuffle_down) \
    LANE(simd_shuffle_rotate_down) LANE(simd_shuffle_rotate_up) LANE(simd_shuffle_up) \
    LANE(simd_shuffle_xor) \
    FILL(simd_shuffle_and_fill_down) FILL(simd_shuffle_and_fill_up)
// clang-format on
