// exchange: how the lanes of a warp exchange values. A simdgroup is a warp.
//
// Who takes part in a call is whom the nesting of the program brings there (converge.c): lanes that returned,
// went another way or are not there at the edge of a grid do not. Almost always all 32 do, and that has
// a path of its own: to find the others, and to exchange among them, costs much more.
#pragma once
#pragma clang system_header

#include "words.h"

namespace assay {

// Compilers know what a remainder can be: a source that cannot be outside is not looked at again.
METAL_FUNC uint lane_index() {
    return static_cast<uint>(__nvvm_read_ptx_sreg_laneid()) % MSL_LANES;
}

template <class V> METAL_FUNC V shuffle(uint party, V value, uint source) {
    words<V> w(value);
    for (int i = 0; i < w.count; ++i)
        w.word[i] = __nvvm_shfl_sync_idx_i32(party, w.word[i], source, MSL_LANES - 1);
    return w.get();
}
template <class V> METAL_FUNC V shuffle_xor(uint party, V value, uint mask) {
    words<V> w(value);
    for (int i = 0; i < w.count; ++i)
        w.word[i] = __nvvm_shfl_sync_bfly_i32(party, w.word[i], mask, MSL_LANES - 1);
    return w.get();
}

// Who is there, of those that structured code brings here. If it is not all 32, some may only be on their
// way: where lanes rejoin is up to the GPU. Then every lane that has not ended comes here, or to another such
// place, and those with the smallest path go on, as soft/abi.h says; the others wait until these
// come again, end, or come where all must be. Votes of one mask are one vote, wherever lanes call it.
METAL_FUNC uint rejoin(const uint *path, uint count) {
    for (;;) {
        const uint live = __nvvm_vote_ballot_sync(all_lanes, true); // less those in wait_for_all
        uint party = live;
#pragma clang loop unroll(disable)
        for (uint i = 0; __nvvm_vote_ballot_sync(live, i < count) & party; ++i) {
            const ulong word = i < count ? ulong(path[2 * i + 1]) << 32 | path[2 * i] : 0;
            ulong least = shuffle(live, word, static_cast<uint>(__builtin_ctz(party)));
            if (!(__nvvm_vote_ballot_sync(live, word != least) & party))
                continue;
#pragma clang loop unroll(disable)
            for (uint rest = party; rest; rest &= rest - 1) {
                const ulong other = shuffle(live, word, static_cast<uint>(__builtin_ctz(rest)));
                least = other < least ? other : least;
            }
            party &= __nvvm_vote_ballot_sync(live, word == least);
        }
        if (party >> lane_index() & 1)
            return party;
    }
}

METAL_FUNC uint read_active_lanes() {
    uint lanes;
    __asm__ volatile("activemask.b32 %0;" : "=r"(lanes));
    return lanes;
}
// Almost always all 32 lanes are here, and then they are together: nothing else is asked.
METAL_FUNC bool are_all_here() {
    return __builtin_expect(read_active_lanes() == all_lanes, true);
}

// Of the text that calls these, converge.c makes one that knows its path.
constexpr uint path_words = 32;
const uint *find_path(); // two for each word
uint count_path();

// If not: who takes part.
METAL_FUNC uint find_party() {
#if ASSAY_LANES
    const uint count = count_path();
    if (count > path_words)
        __builtin_trap();
    alignas(8) uint path[2 * path_words]; // a copy: the path itself stays in registers
#pragma clang loop unroll(full)
    for (uint i = 0; i < 2 * count; ++i)
        path[i] = find_path()[i];
    return rejoin(path, count);
#else
    return read_active_lanes(); // no function of lanes was seen in the text: macros may make one
#endif
}

METAL_FUNC uint active_lanes() {
    return are_all_here() ? all_lanes : find_party();
}

// Of kernels that know that all lanes take part (kernels/swap.h): without a look at who does, ptxas
// has no branch that it moves nothing across.
#define ASSAY_SWAP(value, mask) assay::shuffle_xor(assay::all_lanes, value, mask)
#define ASSAY_WAIT_FOR_LANES() __nvvm_bar_warp_sync(assay::all_lanes)
#define ASSAY_KEEP_ORDER() __asm__ volatile("" ::: "memory")

template <class Op, class V> METAL_FUNC V identity(V present) {
    if constexpr (is_scalar<V>) {
        return Op::identity(present);
    } else {
        for (int i = 0; i < count_of<V>::value; ++i)
            present[i] = Op::identity(typename scalar_of<V>::type(present[i]));
        return present;
    }
}

// The value, or where there is none what stands for it.
template <class V> METAL_FUNC V choose(bool has_it, const V &value) {
    V none;
    put_absent(&none);
    words<V> w(value), missing(none);
    for (int i = 0; i < w.count; ++i)
        w.word[i] = has_it ? w.word[i] : missing.word[i];
    return w.get();
}

// ----------------------------------------------------------------------------- reductions, scans
// The same tree as on the CPU, also where lanes are missing, so that sums are rounded in the same
// places: after a step, lanes that are `step` apart hold the same sum, and whichever of them is there
// gives it. Of which quad a lane is makes no difference to how many exchanges it executes.
template <class Op, int group, class V> METAL_FUNC V reduce_lanes(V value) {
    if (are_all_here()) {
        for (int step = group / 2; step > 0; step /= 2)
            value = apply<Op>(value, shuffle_xor(all_lanes, value, step));
        return value;
    }
    const uint party = find_party();
    const uint lane = lane_index(), first = first_of_group<group>();
    const uint there = party >> first & (all_lanes >> (MSL_LANES - group));
    for (uint step = group / 2; step > 0; step /= 2) {
        const uint every = static_cast<uint>(all_lanes / ((1ul << 2 * step) - 1));
        const uint holders = there & every << ((lane ^ step) % (2 * step));
        const uint holder = holders ? first + static_cast<uint>(__builtin_ctz(holders)) : lane;
        const V next = shuffle(party, value, holder);
        value = apply<Op>(value, holders ? next : identity<Op>(value));
    }
    return value;
}

// Inclusive: up to and with the lane itself. Lane after lane, as on the CPU: the order is part of
// the result.
template <class Op, int group, bool inclusive, class V> METAL_FUNC V scan_lanes(V value) {
    const uint party = active_lanes();
    const uint lane = lane_index(), first = first_of_group<group>();
    V sum = identity<Op>(value), mine = sum;
    if constexpr (!inclusive)
        sum = apply<Op>(sum,
                        V(to<typename scalar_of<V>::type>(metal::is_same_v<Op, op_sum> ? 0 : 1)));
#pragma clang loop unroll(disable)
    for (int i = 0; i < group; ++i) {
        const V next = party == all_lanes ? shuffle(all_lanes, value, first + i)
                                          : shuffle(party, value, first + i);
        const V before = sum;
        if (party >> (first + i) & 1)
            sum = apply<Op>(sum, next);
        if (first + i == lane)
            mine = inclusive ? sum : before;
    }
    return mine;
}

// ---------------------------------------------------------------------------------------- shuffle
template <int group, class V> METAL_FUNC V take_from(V value, uint source, const char *, uint) {
    if (are_all_here()) {
        const V got = shuffle(all_lanes, value, source);
        return choose(source < MSL_LANES, got);
    }
    const uint party = find_party();
    const V got = shuffle(party, value, source);
    return choose(source < MSL_LANES && (party >> source & 1), got);
}

template <int group, class V> METAL_FUNC V take_first(V value) {
    const uint first = first_of_group<group>();
    if (are_all_here())
        return shuffle(all_lanes, value, first);
    const uint party = find_party();
    return shuffle(party, value, first + static_cast<uint>(__builtin_ctz(party >> first)));
}

// ------------------------------------------------------------------------------------------ votes
// The votes of this lane's group, its first lane in bit 0.
template <int group> METAL_FUNC uint ask(bool expression) {
    const uint yes = are_all_here() ? __nvvm_vote_ballot_sync(all_lanes, expression)
                                    : __nvvm_vote_ballot_sync(find_party(), expression);
    return yes >> first_of_group<group>() & (all_lanes >> (MSL_LANES - group));
}

// --------------------------------------------------------------------------------------- barriers
// Threads that have ended are not waited for. Both barriers order all memory of those who meet.
// Lanes that are not here yet may wait for these, which take no part in what they wait for.
METAL_FUNC void wait_for_all() {
#if ASSAY_LANES
    while (__nvvm_vote_ballot_sync(all_lanes, false)) {
    }
#endif
}
METAL_FUNC void wait_for_threadgroup(uint) {
    wait_for_all();
    __syncthreads();
}
METAL_FUNC void meet_for_matrix() {
#if ASSAY_LANES
    if (!are_all_here())
        wait_for_all();
#endif
}
METAL_FUNC void wait_for_simdgroup(uint) {
    if (are_all_here())
        __nvvm_bar_warp_sync(all_lanes);
    else
        __nvvm_bar_warp_sync(find_party());
}

} // namespace assay
