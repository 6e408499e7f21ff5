/* plot: charts by gnuplot: CSV files in, SVG and PNG out.
 *
 * plots/NAME.gp says what the chart of NAME.csv looks like; rows that have no script of their own
 * are drawn by plots/common/rows.gp. A script is given `csv` (the files, one per device), `titles`
 * (their devices), `samples` (the files of samples beside them, or ""), `files` (how many),
 * `finding` (the title, see plot_finding.h) with its `finding_lines`, `footer` with its `footer_lines`, `out`, `format`, `common` (the folder of shared scripts) and every metric of the first
 * file as a variable m_<name>.
 *
 * Without gnuplot nothing is drawn and nothing fails: the data is in the CSV. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum { PLOT_FILES = 5 }; /* the number of dash styles that can be told apart */

bool plot_is_available(void); /* gnuplot is on the path */

/* Is there a script for files of this name (without .csv), or does the file have timed rows? */
bool plot_has_chart(const char *name, const char *csv);

/* Draws FOLDER/<name>.svg and .png from up to PLOT_FILES files. EXIT_CANNOT without gnuplot. */
bool plot_draw(const char *name, const char *const *csv, size_t count, const char *folder, err *e);
