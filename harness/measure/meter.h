/* meter: tapes in, rows out. The only way to measure: bench and experiments are its two callers.
 *
 * Owns the rules that no caller may forget: what is timed is checked before and after, things to be
 * compared are timed interleaved, the roof is from the same minute, every row says in which state
 * it was taken, every sample is kept. */
#pragma once

#include "harness/check/op.h"
#include "results.h"
#include "roof.h"

typedef struct meter meter;

typedef struct {
    timing_plan plan;
    double sample_s; /* how long a sample of many plays should take */
    /* For each part of the roof; 0: none is measured, and "cold" is only another set of buffers. */
    double roof_s;
    double window_s; /* a roof older than this is measured again */
    uint64_t fresh;  /* seed of inputs that come only once (subject.h); 0: as usual */
} meter_options;

/* The library must outlive the meter. */
meter *meter_new(library *lib, const roof_kernels *k, const meter_options *o);
void meter_free(meter *m);

/* Measured at first use; NULL in *out if the options ask for none. */
bool meter_find_roof(meter *m, roof **out, err *e);
/* Where the last-level cache ends; something small without a roof. */
bool meter_find_cache(meter *m, size_t *bytes, err *e);

/* One of several things that are timed interleaved. */
typedef struct measurement measurement;
struct measurement {
    char key[320]; /* names its row and its samples */
    /* Either a tape in a regime and a cache state, checked against its oracles ... */
    tape *tape;
    timing_regime regime;
    timing_cache cache;
    /* ... or any source, which does its own checking. */
    timing_source source;
    size_t samples;          /* at least this many; 0: as the plan says */
    const measurement *like; /* NULL, or: the same number of plays per sample as this earlier one */
    kernel_case built;       /* of measurement_open; freed with the rest */
    /* filled by meter_time */
    subject *subject;
    timing_result result;
    roof_window window; /* zeros: not measured */
};

/* A case: its inputs and its tape. Filled either way: close it. */
bool measurement_open(measurement *x, library *lib, const kernel_case *c, uint64_t seed,
                      timing_regime regime, timing_cache cache, err *e);
void measurement_close(measurement *x);

/* Checks, times all of them interleaved, checks again. A wrong one is EXIT_WRONG, and none is
 * timed; so is one that would have moved more bytes per second than memory can. */
bool meter_time(meter *m, measurement *items, size_t count, err *e);

/* More samples of the same, added to their results, for at most `seconds` in all. */
bool meter_time_again(meter *m, measurement *items, size_t count, double seconds, err *e);

/* Everything known about it. */
bool meter_fill_row(const meter *m, const measurement *x, result_row *r, err *e);
