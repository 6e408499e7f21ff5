/* mutant_report: the outcome of mutants, counted and printed; and which survivors are known. */
#pragma once

#include <stdio.h>

#include "harness/base/csv.h"
#include "harness/check/mutants.h"

/* The list of mutants that are known to survive, and why:
 *     @ file.metal function
 *     - the original line
 *     + the line with its mutation
 *     = why nothing changes, for reasons that no compiler can know
 *     ! or, in place of that: why nothing catches the mistake; it counts as a survivor
 * Blanks and lines that begin with # are ignored. */
typedef struct {
    char *text;
} mutant_known;
bool mutant_read_known(const char *path, mutant_known *out, err *e);
/* The reason, with its = or ! in front, or NULL. The caller frees it. */
char *mutant_find_known(const mutant_known *k, const mutant *m);

/* The table of operators, what validation found, what survived. Returns the fraction caught of
 * those that could be. */
double mutant_report(FILE *out, const mutant_list *l, const mutant_outcome *outcomes);
/* The same as one JSON object. */
void mutant_print_json(FILE *out, const device_facts *f, uint64_t seed, const mutant_list *l,
                       const mutant_outcome *outcomes);
void mutant_add_csv(csv *c, const mutant_list *l, const mutant_outcome *outcomes);
/* The outcomes that such a file has, *count of them: those of the first mutants of the list. An
 * error if the file is about others. */
bool mutant_read_csv(const csv_file *f, const mutant_list *l, mutant_outcome *outcomes,
                     size_t *count, err *e);
