/* plot: charts by gnuplot: CSV files in, SVG and PNG out.
 *
 * plots/NAME.gp says what the chart of NAME.csv looks like; rows that have no script of their own
 * are drawn by plots/common/rows.gp. A script is given `csv` (the files, one per device), `titles`
 * (their devices), `samples` (the files of samples beside them, or ""), `files` (how many),
 * `finding` (the title) with its `finding_lines`, `footer` with its `footer_lines`, `out`, `format`, `common` (the folder of shared scripts) and every metric of the first
 * file as a variable m_<name>.
 *
 * Without gnuplot nothing is drawn and nothing fails: the data is in the CSV. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/csv.h"
#include "harness/base/err.h"

enum { PLOT_FILES = 5 }; /* the number of dash styles that can be told apart */
#define PLOT_SAME_PCT                                                                              \
    3.0 /* quartiles that overlap: narrower is "no difference", wider "too noisy" */

bool plot_is_available(void); /* gnuplot is on the path */

/* Is there a script for files of this name (without .csv), or does the file have timed rows? */
bool plot_has_chart(const char *name, const char *path);

/* Draws FOLDER/<name>.svg and .png from up to PLOT_FILES files. `sentence` is the title that plot_find fills, or
 * NULL. EXIT_CANNOT without gnuplot. */
bool plot_draw(const char *name, const char *sentence, const char *const *tables, size_t count,
               const char *folder, err *e);

/* The title of a chart, which says what its numbers show; the charts' scripts compute no numbers that they state.
 * In the sentence {name} is a metric with three digits, {name|more} is "12 % more" or "12 % less", {name|change} is
 * "+12 %", or where its spread is on both sides of 0 "no clear difference" or, if it is wide, "too noisy to tell a
 * difference"; {name|overlap}, of what is missing of a whole in percent, adds the sum of its parts if that is more than
 * the whole; and {max:column} is the largest number of a column. A smoke run has no finding. Without a sentence, or without its numbers, it is the first conclusion, the question, or what the rows
 * show; never "". */
void plot_find(const char *name, const char *sentence, const csv_file *f, char *text, size_t size);
