/* result_row: what results.c and its readers share: the columns of a row by number. */
#ifndef ASSAY_RESULT_ROW_H
#define ASSAY_RESULT_ROW_H

#include "harness/base/csv_read.h"
#include "results.h"

bool result_read_row(const csv_file *f, size_t row, result_row *out, err *e);

#endif
