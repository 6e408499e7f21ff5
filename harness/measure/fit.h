/* fit: which parts a time is made of.
 *
 * Least squares with parameters that cannot be negative, as no part of a time is. Errors are
 * weighed relative to the time, because times span decades and noise is proportional to them. For
 * T(B) = submit + launch + stream + B * compute each measured time is a row with what it contains:
 * {1, 1, 1, B} when it was submitted alone and cold, {0, 1, 1, B} in a chain, {0, 1, 0, B} warm.
 * Of parts that no row tells apart (two equal columns) one has the time of all, the others 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { FIT_PARTS = 8 };

typedef struct {
    size_t parts;
    double value[FIT_PARTS];
    double relative_rms; /* of what is left over: 0.02 is 2 percent of a time, typically */
} fit;

/* rows (count, parts), times (count) above 0. False with EXIT_INCONCLUSIVE when there are fewer
 * rows than parts, or a time that is not a positive number. */
bool fit_parts(const double *rows, const double *times, size_t count, size_t parts, fit *out,
               err *e);

double fit_predict(const fit *f, const double *row);
