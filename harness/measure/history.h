/* history: what each case took in every run so far. NAME.history.csv beside NAME.csv only grows: a
 * line per timed case and run, with date, commit, build, sum of the kernel, the median on the GPU's clock
 * and its 95 percent interval. */
#pragma once

#include "results.h"

/* Adds a row with its samples to the history beside `path`, the file of the rows. A row without a
 * time is left out. */
bool history_add(const char *path, const results_meta *m, const result_row *row,
                 const timing_sample *samples, err *e);
