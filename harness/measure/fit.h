/* fit: which parts a time is made of.
 *
 * Least squares with parameters that cannot be negative, as no part of a time is. Errors are
 * weighed relative to the time, because times span decades and noise is proportional to them. For
 * T(B) = submit + launch + stream + B * compute each measured time is a row with what it contains:
 * {1, 1, 1, B} when it was submitted alone and cold, {0, 1, 1, B} in a chain, {0, 1, 0, B} warm.
 *
 * Parts that no row tells apart (two equal columns) are reported as such, with NaN for their
 * errors, and not silently shared out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { FIT_PARTS = 8 };

typedef struct {
    size_t parts;
    double value[FIT_PARTS];
    double error[FIT_PARTS]; /* standard error; NaN for a part at 0, where no curve is symmetric */
    bool known[FIT_PARTS];   /* false: the rows do not tell it apart from the others */
    double relative_rms;     /* of what is left over: 0.02 is 2 percent of a time, typically */
    double r2;               /* of the times themselves: 1 is perfect */
} fit;

/* rows (count, parts), times (count) above 0. False with EXIT_INCONCLUSIVE when there are fewer
 * rows than parts, or a time that is not a positive number. */
bool fit_parts(const double *rows, const double *times, size_t count, size_t parts, fit *out,
               err *e);

double fit_predict(const fit *f, const double *row);
