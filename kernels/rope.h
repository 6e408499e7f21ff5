/* rope: what the ops that turn pairs of values by an angle have in common. */
#ifndef ASSAY_ROPE_H
#define ASSAY_ROPE_H

#include "harness/device/tape.h"

/* Fills in how far `out` may be off after its values and scales, which are those of the pairs of x
 * (count): frequencies are powers of theta, or come from a table (theta is 0). */
void rope_judge(const launch *l, const float *x, size_t count, double theta, expected *out);

#endif
