/* plot_finding: the title of a chart, which says what its numbers show.
 *
 * Computed from the metrics and rows of a results file; the charts' scripts compute no numbers that they
 * state. A file without a sentence of its own is titled with its first conclusion, or its question. */
#pragma once

#include <stddef.h>

#include "harness/base/csv_read.h"

/* "One command buffer per token is 3.21 times as fast as one per launch ..."; never "". */
void plot_find(const char *name, const csv_file *f, char *text, size_t size);
