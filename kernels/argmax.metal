// argmax: the index of the largest logit, in two launches: argmax_reduce finds the best of each
// 1024, argmax_final the best of those.
//
// NaN is skipped, of equal values the lowest index wins, and if all are NaN the answer is 0. Values
// are compared by their ranks: unlike floats, these can be compared with what fast math takes for
// granted never to occur. A pair (0, NOTHING) stands for "none yet": a number has a higher rank,
// and NOTHING is the highest index.
#include <metal_stdlib>
using namespace metal;

#include "arguments.h"

constant uint NOTHING = 0xFFFFFFFF;
constant uint VALUES_A_GROUP = 1024;

// A number that is larger where the value is, the same for both zeros, and 0 for NaN. There is no
// condition in it, so that a compiler makes vectors of a loop.
inline uint get_rank(float value) {
    const uint bits = as_type<uint>(value);
    const uint is_minus_zero = bits == 0x80000000u;
    const uint is_number = (bits & 0x7FFFFFFFu) <= 0x7F800000u;
    const uint sign = uint(as_type<int>(value) >> 31);
    return ((bits ^ (sign | 0x80000000u)) + is_minus_zero) * is_number;
}

struct candidate {
    uint rank;
    uint index;
};

inline candidate find_candidate(float value, uint index) {
    const uint rank = get_rank(value);
    const candidate c = {rank, rank == 0 ? NOTHING : index};
    return c;
}

// The value of the candidate; minus infinity for none. By its bits, because fast math would not see
// that infinity.
inline float get_value(device const float *logits, candidate c) {
    return as_type<float>(c.index == NOTHING ? 0xFF800000u : as_type<uint>(logits[c.index]));
}

inline candidate better_of(candidate a, candidate b) {
    return b.rank > a.rank || (b.rank == a.rank && b.index < a.index) ? b : a;
}

// The best of one candidate per lane, returned to every lane: the highest rank, then the lowest
// index among the lanes that have it.
inline candidate simd_best(candidate mine) {
    candidate best;
    best.rank = simd_max(mine.rank);
    best.index = simd_min(mine.rank == best.rank ? mine.index : NOTHING);
    return best;
}

// The best of one candidate per thread. The result is valid in simdgroup 0.
inline candidate threadgroup_best(candidate mine,
                                  threadgroup uint *ranks,
                                  threadgroup uint *indices,
                                  uint lane,
                                  uint sg,
                                  uint sg_count) {
    mine = simd_best(mine);
    if (lane == 0) {
        ranks[sg] = mine.rank;
        indices[sg] = mine.index;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    mine.rank = lane < sg_count ? ranks[lane] : 0u;
    mine.index = lane < sg_count ? indices[lane] : NOTHING;
    return simd_best(mine);
}

// A thread compares 4 of the 1024 logits of its threadgroup (256 apart, so that loads are
// coalesced); the threadgroup writes one pair. Reads n floats, writes 8 bytes per threadgroup. It
// exists so that 49152 logits need not travel to the CPU for a 4-byte answer.
kernel void argmax_reduce(device const float *logits [[buffer(0)]],
                          constant uint &n [[buffer(1)]],
                          device float *pvals [[buffer(2)]],
                          device uint *pidx [[buffer(3)]],
                          uint group [[threadgroup_position_in_grid]],
                          TEAM_PLACE) {
    threadgroup uint ranks[32];
    threadgroup uint indices[32];
    const uint first = group * VALUES_A_GROUP;
    const uint end = min(first + VALUES_A_GROUP, n);
    candidate best = {0u, NOTHING};
    for (uint i = first + thread_index; i < end; i += threads)
        best = better_of(best, find_candidate(logits[i], i));
    best = threadgroup_best(best, ranks, indices, lane, sg, sg_count);
    if (thread_index == 0) {
        pvals[group] = get_value(logits, best);
        pidx[group] = best.index;
    }
}

// One thread for 1024 logits: first the largest rank, then the lowest index that has it, because a
// compiler makes vectors of two plain reductions. Loads are not coalesced: this is for the software
// device, where lanes that meet cost more than the comparisons.
kernel void argmax_reduce_per_thread(device const float *logits [[buffer(0)]],
                                constant uint &n [[buffer(1)]],
                                device float *pvals [[buffer(2)]],
                                device uint *pidx [[buffer(3)]],
                                uint group [[threadgroup_position_in_grid]]) {
    const uint first = group * VALUES_A_GROUP;
    const uint count = min(VALUES_A_GROUP, n - first);
    device const float *values = logits + first;
    uint largest = 0;
    for (uint i = 0; i < count; i++)
        largest = max(largest, get_rank(values[i]));
    uint found = count;
    for (uint i = 0; i < count; i++)
        found = min(found, get_rank(values[i]) == largest ? i : count);
    const candidate best = {largest, largest == 0 ? NOTHING : first + found};
    pvals[group] = get_value(logits, best);
    pidx[group] = best.index;
}

// One threadgroup: a thread compares every 256th of the pairs that argmax_reduce left, the
// threadgroup writes the answer. Reads 8 bytes per pair, writes 4. The pairs may be in any order.
kernel void argmax_final(device const float *pvals [[buffer(0)]],
                         device const uint *pidx [[buffer(1)]],
                         constant uint &groups [[buffer(2)]],
                         device uint *result [[buffer(3)]],
                         TEAM_PLACE) {
    threadgroup uint ranks[32];
    threadgroup uint indices[32];
    candidate best = {0u, NOTHING};
    for (uint i = thread_index; i < groups; i += threads)
        best = better_of(best, find_candidate(pvals[i], pidx[i]));
    best = threadgroup_best(best, ranks, indices, lane, sg, sg_count);
    if (thread_index == 0)
        result[0] = best.index == NOTHING ? 0 : best.index;
}
