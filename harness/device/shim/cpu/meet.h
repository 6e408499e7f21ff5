// meet: where the lanes of a simdgroup stop and wait for each other. See soft/abi.h for the protocol.
//
// meet<R>(value, serve) posts this lane's value; when every lane that takes part has posted, the
// last one calls serve(in, out, party) once for all of them, and each lane goes on with out[lane].
#pragma once

#include "../../soft/abi.h"

#if defined(ASSAY_CHECKED)
#define ASSAY_SET_SITE(g, lane) SOFT_SITE((g)->site[lane])
#define ASSAY_CHECK_MEETING(w, party, width, site)                                                 \
    if constexpr (width > 1)                                                                       \
    (w)->checks->meet(w, party, width, (site) + 1)
#define ASSAY_CHECK_PARKING(w) assay::check_parking(w)
#define ASSAY_CHECK_FENCE(flags, whole)                                                            \
    soft_here()->checks->fence(soft_here(), static_cast<soft_u32>(flags), whole)
#else
#define ASSAY_SET_SITE(g, lane) ((void)0)
#define ASSAY_CHECK_MEETING(w, party, width, site) ((void)0)
#define ASSAY_CHECK_PARKING(w) ((void)0)
#define ASSAY_CHECK_FENCE(flags, whole) ((void)(flags))
#endif

// nodebug: its instructions belong to the line of the .metal file that called for them. Nothing of
// this is the kernel's, so the compiler need not check it.
#define ASSAY_INLINE inline __attribute__((always_inline, nodebug, no_sanitize("undefined")))
#define ASSAY_UNLIKELY(c) __builtin_expect(!!(c), 0)
#define ASSAY_LIKELY(c) __builtin_expect(!!(c), 1)

// Counting sees a meeting as one call: none of its instructions is the kernel's (soft/count_ir.c).
#if defined(ASSAY_COUNTED)
#define ASSAY_MEETING inline __attribute__((noinline, nodebug))
#else
#define ASSAY_MEETING ASSAY_INLINE
#endif

// converge.c makes kernels call these: `used`, or there would be nothing to call.
#if defined(ASSAY_COUNTED) || defined(ASSAY_CHECKED)
#define ASSAY_PATH inline __attribute__((noinline, nodebug, used, no_sanitize("thread", "undefined")))
#else
#define ASSAY_PATH inline __attribute__((always_inline, nodebug, used))
#endif

namespace assay {

ASSAY_INLINE soft_u32 lane_index() {
    return soft_here()->running->current;
}

// Lets the next lane of the round run; comes back when this lane may go on.
ASSAY_INLINE void yield_to(soft_simdgroup *g, soft_u32 lane, soft_u32 next) {
    g->current = next;
    SOFT_SWITCH(&g->lane[lane], &g->lane[next]);
}

// This lane's path, as a number.
ASSAY_PATH soft_u64 find_path() {
    const soft_simdgroup *g = soft_here()->running;
    return reinterpret_cast<soft_u64>(&g->path[0][g->current]);
}
ASSAY_INLINE soft_u64 &get_word(soft_u64 path, soft_u32 n) {
    return reinterpret_cast<soft_u64 *>(path)[n * SOFT_LANES];
}
// Where a function's own words begin, and the sum of those before them.
ASSAY_PATH soft_u64 find_words(soft_u64 path) {
    const soft_u64 words = get_word(path, SOFT_PATH_END);
    if (ASSAY_UNLIKELY(words > reinterpret_cast<soft_u64>(&get_word(path, SOFT_PATH - SOFT_PATH_STEP))))
        __builtin_trap();
    return words;
}
ASSAY_PATH soft_u64 find_sum(soft_u64 path) {
    return get_word(path, SOFT_PATH_SUM) * SOFT_PATH_FACTOR;
}
ASSAY_PATH void set_word(soft_u64 words, soft_u32 n, soft_u64 word) {
    get_word(words, n) = word;
}
ASSAY_PATH void set_sum(soft_u64 path, soft_u64 sum) {
    get_word(path, SOFT_PATH_SUM) = sum;
}
// A function that adds words of its own begins after these n.
ASSAY_PATH void set_end(soft_u64 path, soft_u64 words, soft_u32 n) {
    get_word(path, SOFT_PATH_END) = reinterpret_cast<soft_u64>(&get_word(words, n));
}

// Lanes that a meeting is meant for: those that come, all 32, all 32 for a product of matrices, or
// all that there are.
enum {
    meeting_of_any = SOFT_MEET_ANY,
    meeting_of_simd = SOFT_MEET_ALL,
    meeting_for_product = SOFT_MEET_PRODUCT,
    meeting_at_barrier = SOFT_MEET_BARRIER,
};

#if defined(ASSAY_CHECKED)
// Not to be duplicated: each barrier of the text has one address in each function that calls it.
__attribute__((noinline, noduplicate, nodebug, no_sanitize("thread", "undefined"))) static void
check_parking(soft_worker *w) {
    w->checks->park(w, __builtin_return_address(0));
}
#endif

// The last lane of a round has stopped: computes the results if all are at one meeting, or lets the
// scheduler choose who posts again. Returns the lane that goes on. Called, not inlined: a kernel then
// has one switch per meeting.
template <class R, soft_u32 Width, class T, class Serve>
__attribute__((noinline, nodebug, no_sanitize("thread", "undefined"))) static soft_u32
finish_round(soft_worker *w, Serve serve) {
    soft_simdgroup *g = w->running;
    if (ASSAY_UNLIKELY(g->differs && !g->party))
        return w->choose(w);
    const soft_u32 party = g->party ? g->party : g->live;
    ASSAY_CHECK_MEETING(w, party, Width, g->site[g->current]);
    serve(reinterpret_cast<const T *>(w->in), reinterpret_cast<R *>(w->out), party);
    g->todo = party;
    g->party = 0;
    g->first = 0;
    g->differs = g->live & ~party;
    return static_cast<soft_u32>(__builtin_ctz(party));
}

// T and R are trivially copyable and at most SOFT_EXCHANGE_BYTES. serve is
// void(const T *in, R *out, soft_u32 party): bit i of party says that lane i takes part.
template <class R, soft_u32 Width = meeting_of_any, class T, class Serve>
ASSAY_MEETING R meet(T value, Serve serve) {
    static_assert(sizeof(T) <= SOFT_EXCHANGE_BYTES && sizeof(R) <= SOFT_EXCHANGE_BYTES,
                  "too large to exchange");
    soft_worker *w = soft_here();
    soft_simdgroup *g = w->running;
    const soft_u32 lane = g->current;
    ASSAY_SET_SITE(g, lane);
    do {
        reinterpret_cast<T *>(w->in)[lane] = value;
        const soft_u64 sum = g->path[SOFT_PATH_SUM][lane], first = g->first ? g->first : sum;
        g->first = first;
        g->differs |= first ^ sum;
        const soft_u32 todo = g->todo &= ~(1u << lane);
        soft_u32 next = static_cast<soft_u32>(__builtin_ctz(todo | 1u << 31));
        if (ASSAY_UNLIKELY(!todo))
            next = finish_round<R, Width, T>(w, serve);
        if (ASSAY_LIKELY(todo || next != lane))
            yield_to(g, lane, next);
    } while (ASSAY_UNLIKELY(g->party));
    return reinterpret_cast<const R *>(w->out)[lane];
}

// threadgroup_barrier: the lane is parked until every simdgroup of the threadgroup has come.
ASSAY_MEETING void park() {
    soft_worker *w = soft_here();
    soft_simdgroup *g = w->running;
    const soft_u32 lane = g->current;
    const soft_u32 bit = 1u << lane;
    ASSAY_SET_SITE(g, lane);
    ASSAY_CHECK_PARKING(w);
    g->parked |= bit;
    g->live &= ~bit;
    const soft_u32 todo = g->todo &= ~bit;
    if (todo)
        yield_to(g, lane, static_cast<soft_u32>(__builtin_ctz(todo)));
    else
        w->settle(w);
}

template <class T> struct element_of { using type = T; };
template <class T, decltype(sizeof 0) n> struct element_of<T[n]> : element_of<T> {};

// A threadgroup variable of the running threadgroup. `slot` numbers the declaration in the file.
template <class T, soft_u32 slot> ASSAY_INLINE T &threadgroup_variable(const char *name) {
    static_assert(sizeof(T) <= MSL_THREADGROUP_BYTES,
                  "a threadgroup has 32768 bytes of threadgroup memory");
    soft_worker *w = soft_here();
    void *at = w->slot[slot];
    if (ASSAY_UNLIKELY(!at))
        at = w->place(w, slot, sizeof(T), alignof(T), name, sizeof(typename element_of<T>::type));
#if ASSAY_COUNTED // as a compiler for GPUs, which places it, knows
    at = __builtin_assume_aligned(at, alignof(T));
#endif
    return *static_cast<T *>(at);
}

} // namespace assay
