/* check: plays a tape one launch at a time and compares each with its oracle.
 *
 * For every launch: inputs are copied, outputs poisoned, the launch played; then guard zones,
 * read-only inputs and each written binding are checked, and the launch is played again from the
 * same state, except that right values, some at wrong places, are in the outputs: the bits must agree. A
 * kernel that keeps what an earlier run left reads what it may only write, and is refused. */
#pragma once

#include "compare.h"
#include "kernel_case.h"

/* Skipped: the device cannot run the case as written (device_can_play). */
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

/* Marks a case as one that this kernel or this device does not take. A skip is counted and its
 * reason is kept; it is neither a pass nor a failure. Returns true: the check has its result. */
bool check_skip(check_result *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Another kernel in the place of a case's own: rival.h makes its launch. */
typedef struct {
    /* The tape to play for the open case, over its buffers; check_case frees it. NULL if it is not for such
     * a case, which is then skipped with a reason, or with e set. */
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
