/* places: what is wrong, by file and line, for code scanning (SARIF 2.1.0) and as annotations of a
 * pull request on GitHub. */
#pragma once

#include <stdio.h>

#include "harness/base/remark.h"
#include "outcome.h"

typedef struct {
    char rule[64];    /* "load-outside" */
    bool is_error;    /* else a warning */
    char *path;       /* relative to the repository where possible */
    int line, column; /* from 1; 0: unknown */
    char text[700];
} place;

typedef struct {
    place *items;
    size_t count, room;
} place_list;

/* The file of a kernel, to be freed, and the line on which its function begins, or 0. */
char *places_find_kernel(const kernel *k, int *line);

/* The same finding in several cases becomes one, of the kernel; the caller frees the list. */
finding_list places_fold(const finding_list *found);
/* Findings of validation, folded. */
void places_add_findings(place_list *l, const finding_list *found, bool is_strict);
/* Cases that failed without findings, at their kernels; one place per kernel, of the first case. */
void places_add_outcomes(place_list *l, const outcome_list *outcomes);
void places_add_remarks(place_list *l, const remark_list *remarks);
void places_free(place_list *l);

/* `run` ("lint", "validate/soft") and the project name the run among those of a pull request. */
bool places_write_sarif(const char *path, const char *run, const place_list *l, err *e);
/* Where GITHUB_ACTIONS is set: an annotation per place, which GitHub reads from the log. */
void places_annotate(FILE *out, const place_list *l);
