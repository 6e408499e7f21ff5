/* tune_print: what `assay tune` decided, as a table and as JSON. */
#pragma once

#include "harness/base/table.h"
#include "runner/tune.h"

enum { TUNE_COLUMNS = 9 };

typedef struct {
    table rows;
    table_column columns[TUNE_COLUMNS];
} tune_table;

/* Widths are those of the choices. */
void tune_table_start(tune_table *t, FILE *out, const choice_list *choices);
/* explain: also every way with its time. */
void tune_table_add(const tune_table *t, const choice *c, const tune_outcome *o, bool explain);

/* An object of a list; `first` has no comma before it. */
void tune_print_json(FILE *out, const tune_outcome *o, bool first);

/* The choices and their ways, without times. */
void tune_print_list(FILE *out, const choice_list *choices);
