/* svg: a chart from a file, made fit to stand inside a page.
 *
 * Only elements that draw are let through, and only attributes that cannot fetch or run anything:
 * whatever else a file holds, scripts, styles, links, is left out. Every id gets the prefix, and so
 * does every use of one: charts of one program all have the same ids, and would draw with each
 * other's marks. The size is left to the page; the shape (viewBox) stays.
 *
 * It reads well-formed XML as plotting programs write it; what is not is refused with its line. */
#ifndef ASSAY_SVG_H
#define ASSAY_SVG_H

#include <stdio.h>

#include "harness/base/err.h"

/* `text` ends with a NUL; `name` stands for the file in messages; `label` is what a reader who
 * cannot see the chart is told. Nothing is printed if it is refused. */
bool svg_print(FILE *out, const char *text, const char *name, const char *prefix, const char *label,
               err *e);

#endif
