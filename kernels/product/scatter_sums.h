// scatter_sums: many sums over the lanes of a simdgroup at once.
#pragma once

// sums[0] = sum over all lanes of sums[lane / (32 / N)]; N is a power of 2, at most 32. Each step
// halves the sums that a lane still has: it gives away one half and gets its own from its partner.
template <uint N, uint step = 16> struct scatter {
    static METAL_FUNC void sum(thread float *sums, uint lane) {
        const bool is_upper = lane & step;
        for (uint i = 0; i < N / 2; i++) {
            const float lower = sums[i];
            const float upper = sums[i + N / 2];
            const float given = is_upper ? lower : upper;
            sums[i] = (is_upper ? upper : lower) + simd_shuffle_xor(given, step);
        }
        scatter<N / 2, step / 2>::sum(sums, lane);
    }
};
template <uint step> struct scatter<1, step> {
    static METAL_FUNC void sum(thread float *sums, uint) {
        for (uint s = step; s > 0; s /= 2)
            sums[0] += simd_shuffle_xor(sums[0], s);
    }
};
