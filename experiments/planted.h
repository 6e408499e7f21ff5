/* planted: a slowdown of known size, to try the instrument with.
 *
 * The loop of compute_fma with more rounds. What a round costs is measured in the same run, so that
 * the size is that of the slowdown and not of the loop. */
#pragma once

#include "harness/measure/comparison.h"
#include "lab.h"

typedef struct {
    double base_ns; /* of the kernel as it is */
    double round;   /* what one more round costs, as a part of that */
} planted;

/* Times the kernel as it is against one with a quarter more rounds, interleaved. */
bool planted_calibrate(lab *l, planted *out, err *e);

/* How long an ambiguous comparison may be timed again, and what is looked for. */
typedef struct {
    double again_s, min_effect;
} planted_options;

/* The kernel as it is (cases[0]) against one that is slower by about `share` (0.05 is 5 percent), as
 * `bench --baseline FOLDER` compares them. *size is the share that was planted, in whole rounds. The
 * caller closes the cases, also after a failure; of *out the pointers to samples are not valid. */
bool planted_compare(lab *l, const planted *p, double share, const planted_options *o,
                     measurement cases[2], verdict_case *out, double *size, err *e);
