/* rope: what the ops that rotate pairs of values by an angle have in common. */
#pragma once

#include "harness/device/tape.h"

/* Fills in the tolerance of `out`, whose values and scales, those of the pairs of x (count), are
 * already set: frequencies are powers of theta, or come from a table (theta is 0). */
void rope_judge(const launch *l, const float *x, size_t count, double theta, expected *out);
