/* subject: a tape made ready to be timed in one regime and one cache state.
 *
 *   single       each play is one command buffer with the tape once, waited for
 *   chained      one command buffer with the tape many times, each after the one before
 *   independent  one command buffer with the tape many times, none waiting for another
 *
 *   warm         the same buffers again and again
 *   cold         the tape rotates over copies of all its buffers, whose bytes together are more than
 *                twice the last-level cache; where even many copies are too small for that, the
 *                caches are scrubbed before each sample, which then plays each copy once
 *
 * It knows no kernel: a copy is the same launches over buffers with the same contents, so any tape
 * can be timed, and what each copy computes must agree in every bit with what the tape computed
 * when it was checked. A tape must pass subject_check before it is timed: it compares the tape with
 * its oracles, then plays what will be timed and compares that with the tape.
 *
 * Results cannot be kept from play to play: plays work in turn on an input as it is and on the same
 * values at other places (the smallest input of floats that changes the results), and an output
 * always holds the result of the other when a play begins. What the last play of a sample left is
 * compared with what the checked tape left, in a piece at random after each sample, and whole after
 * the last one.
 *
 * With fresh inputs nothing comes twice: each play of a sample has inputs of floats drawn anew, from
 * the values of that input, and an output of its own that is poisoned before the sample, or holds what
 * it is to be added to. All outputs are kept as sums. After the last sample the tape is played alone,
 * poisoned again, on the inputs of every play, and must leave the same bits; as many of these plays as
 * time permits, chosen then, are compared with the oracle. So a kernel that can tell that it is timed,
 * and memory that outlives a launch, are of no use to it.
 *
 * Tapes that work in place (a += b) would run away when played thousands of times: their buffers
 * are restored now and then, between samples. */
#pragma once

#include "harness/check/check.h"
#include "timing.h"

typedef struct subject subject;

typedef struct {
    timing_regime regime;
    timing_cache cache;
    size_t cache_bytes; /* of the last-level cache; 0: not known, and it is warm */
    tape *scrub;        /* cold: reads or writes more than twice that; NULL: not available */
    double sample_s;    /* chained, independent: how long a sample should take, about */
    /* Plays per sample; 0: enough for sample_s. Things to be compared need the same number: a
     * scheduler treats short samples differently from long ones. */
    size_t repeats;
    bool varies;         /* inputs change from play to play, if they can */
    bool unordered;      /* float atomics: bits may differ from play to play */
    uint64_t fresh;      /* seed of fresh inputs; 0: inputs change as `varies` says */
    const subject *like; /* fresh: works on its copies, because other memory has other times */
} subject_options;

/* The tape, its buffers as they are now, must outlive the subject. */
subject *subject_new(tape *t, const subject_options *o, err *e);
void subject_free(subject *s);

/* The tape against its oracles, and what is timed against the tape. EXIT_WRONG if it is wrong. */
bool subject_check(subject *s, err *e);

timing_source subject_get_source(subject *s);
/* After the last sample, if nothing else has written to its buffers since: what it left. */
bool subject_check_last(subject *s, err *e);

typedef struct {
    size_t repeats, copies, set_bytes; /* plays in a sample; sets of buffers, and bytes of one */
    bool varies;                       /* does an input? */
} subject_facts;
subject_facts subject_get_facts(const subject *s);

/* What the tape must move and do, in one play. */
uint64_t tape_sum_bytes(const tape *t);
uint64_t tape_sum_flops(const tape *t);
