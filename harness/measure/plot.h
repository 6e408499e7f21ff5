/* plot: charts by gnuplot: CSV files in, SVG and PNG out.
 *
 * plots/<name>.gp says what a chart looks like. It is given `csv` (the files, one a device),
 * `titles` (their devices), `footer`, `out`, `format`, `style` and, of the first file, every metric
 * as a variable m_<name>. All else is gnuplot's.
 *
 * The one surprise: without gnuplot nothing is drawn and nothing fails: the data is in the CSV. */
#ifndef ASSAY_PLOT_H
#define ASSAY_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { PLOT_FILES = 5 }; /* as many as there are dashes that can be told apart */

bool plot_is_available(void); /* gnuplot is on the path */

/* The names of the charts that there are scripts for: i counts from 0, NULL past the last. A chart
 * takes files of plot_get_source; both are the same but for charts of other verbs' files. */
const char *plot_get_name(size_t i);
const char *plot_get_source(size_t i); /* "bandwidth.csv" */

/* Draws FOLDER/<name>.svg and .png from up to PLOT_FILES files. EXIT_CANNOT without gnuplot. */
bool plot_draw(const char *name, const char *const *csv, size_t count, const char *folder, err *e);

#endif
