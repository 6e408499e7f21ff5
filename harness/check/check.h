/* check: plays a tape one launch at a time and compares each with its oracle.
 *
 * For every launch: inputs are copied, outputs poisoned, the launch played; then guard zones,
 * read-only inputs and each written binding are checked, and the launch is played again from the
 * same state, except that right values, some at wrong places, are in the outputs: the bits must agree. A
 * kernel that keeps what an earlier run left reads what it may only write, and is refused. */
#pragma once

#include "op.h"

/* Does an output agree with the oracle? The verdict of an element is !(error <= tolerance), which NaN cannot pass: */

enum { COMPARE_SHOWN = 4 };

typedef struct {
    size_t index;
    double want, got, tolerance;
    bool unwritten; /* still holds the poison */
} bad_element;

typedef struct {
    size_t count, bad, nonfinite,
        unwritten; /* nonfinite: NaN or infinity where a finite value was expected */
    double max_abs, max_rel, max_ulp; /* over finite elements */
    double nmse;                      /* sum of squared errors over sum of squares */
    double margin;                    /* largest error / tolerance: above 1 is wrong */
    double together, most_together;   /* root mean square of error / tolerance, and its limit */
    size_t worst;                     /* index of the largest error / tolerance */
    size_t apart;                     /* rows whose elements do not err by one factor, */
    size_t apart_row;                 /* the first of them */
    bad_element first[COMPARE_SHOWN];
    size_t shown;
} comparison;

/* The tolerance of one element; its definition explains how it is derived. */
double compare_get_tolerance(elem type, const expected *want, size_t i, bool flushes_denormals);
/* What comparison.together may be at most; INFINITY where it says nothing. */
double compare_get_most_together(const expected *want);

/* poisoned: the output held POISON_PATTERN before the launch, so an element that still does was
 * never written and is wrong even where NaN is expected. */
void compare_output(elem type, const expected *want, const void *got, bool poisoned,
                    bool flushes_denormals, comparison *out);

/* The verdict of a case. Skipped: the device cannot run the case as written (device_can_play). */
typedef enum { CHECK_PASS, CHECK_FAIL, CHECK_SKIP } check_verdict;

typedef struct {
    check_verdict verdict;
    char message[512]; /* what is wrong (kernel, buffer, element, expected and got), or why the case
                          was skipped */
    char warning[200]; /* of a case that was played: it will not run on some Apple GPUs; "": none */
    comparison worst;  /* of the binding with the largest margin, over all launches */
    char buffer[64];   /* that binding: "'y' (buffer 2)" */
    uint64_t gpu_ns;
} check_result;

/* A launch that was just checked; its outputs are still as it left them. */
typedef struct {
    const launch *launch;
    const char *part;        /* of the tape: "layer 3" */
    size_t index, count;     /* which of how many */
    const comparison *worst; /* of its own outputs: the one with the largest margin */
    bool passed;
} check_step;

typedef struct {
    bool unordered; /* do not require equal bits from run to run */
    void (*observe)(void *context, const check_step *step); /* NULL, or called for every launch */
    void *context;
} check_options;

/* Checks every launch of a tape; stops at the first that is wrong. err is for reasons why the check
 * could not be made. */
bool check_tape(tape *t, const check_options *o, check_result *out, err *e);

/* What the oracle of a launch makes of its buffers as they are now: io->out, to be freed in any case; io->in is
 * empty. Nothing is played. */
bool check_expect(const launch *l, oracle_io *io, err *e);
void check_free_expected(oracle_io *io);

/* Marks a case as one that this kernel or this device does not take. A skip is counted and its
 * reason is kept; it is neither a pass nor a failure. Returns true: the check has its result. */
bool check_skip(check_result *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Another kernel in the place of a case's own: rival.h makes its launch. */
typedef struct {
    /* The tape to play for the open case, over its buffers: its own, or another that check_case frees. NULL if
     * it is not for such a case, which is then skipped with a reason, or with e set. */
    tape *(*record)(void *context, const kernel_case *c, check_result *out, err *e);
    void *context;
} check_stand_in;

/* Opens a case on a device and checks it. A shape that the kernel does not take, or a kernel that
 * the device cannot run, is skipped. If the device's validation is on, its findings also fail the
 * case, and stay in the device's list. other: NULL, or what is played in place of its kernel. */
bool check_case(library *lib, const kernel_case *c, const check_stand_in *other, uint64_t seed,
                check_result *out, err *e);

/* Small ones first, because the first failure often ends it. */
void check_sort_cases(kernel_case *cases, size_t count);

/* What is right here and may not be elsewhere:
 *
 * A threadgroup larger than Mesa's compiler has room for on an M1 (harness/agx/agx.h): there such a launch
 * fails, or computes nothing, while newer Apple GPUs, NVIDIA's and the software device run it. Silent where the compiler is not installed, and for threadgroups of up to 384 threads, which always fit.
 * Only what is in the cache already is looked up, which takes less than a millisecond, unless asked to compile.
 *
 * In fast math, a test for NaN or infinity, which Apple's compiler may leave out where clang has not. */

/* From now on kernels that are not in the cache are compiled: about a second each. */
void warn_agx_compile(bool on);

/* text gets a sentence, or "". */
void warn_launch(const msl_unit *u, const char *name, const constant_value *constants, size_t count,
                 size3 group, math_mode math, char *text, size_t size);
