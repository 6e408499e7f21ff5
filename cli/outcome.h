/* outcome: what became of each case of a run, and what is wrong by file and line, for other programs: JSON,
 * JUnit, SARIF 2.1.0 for code scanning, annotations of a pull request on GitHub. */
#pragma once

#include <stdio.h>

#include "harness/base/remark.h"
#include "harness/check/suite.h"

typedef enum {
    OUTCOME_PASS,
    OUTCOME_FAIL,  /* wrong: outputs, or what validation found */
    OUTCOME_ERROR, /* not checked to the end: it does not compile, crashed or hung */
    OUTCOME_SKIP
} outcome_kind;

typedef struct {
    outcome_kind kind;
    char name[256]; /* of the case */
    const op *op;
    const kernel *kernel;
    char message[512]; /* why it did not pass */
    double seconds;    /* of the device */
    bool is_untried;   /* another case has the message that explains it */
    bool has_findings; /* of validation, which name places of their own */
    bool has_numbers;
    comparison numbers;
} outcome;

typedef struct {
    outcome *items;
    size_t count, room;
} outcome_list;

const outcome *outcome_add(outcome_list *l, const kernel_case *c, const case_report *r);
void outcome_free(outcome_list *l);

/* One object: the device, the cases, the findings (NULL: none were looked for) and the counts. */
void outcome_print_json(FILE *out, const char *name, const device_facts *f, uint64_t seed,
                        const outcome_list *l, const finding_list *found);

/* JUnit XML, one suite with one test per case. */
bool outcome_write_junit(const char *path, const char *name, const device_facts *f,
                         const outcome_list *l, double seconds, err *e);

typedef struct {
    char rule[64];     /* "load-outside" */
    const char *level; /* "error", "warning" or "note" */
    char *path;        /* relative to the repository where possible */
    int line, column;  /* from 1; 0: unknown */
    char text[800];
} place;

typedef struct {
    place *items;
    size_t count, room;
} place_list;

/* One place: the path is copied, and made relative. */
void places_add(place_list *l, const char *path, int line, const char *level, const char *rule,
                const char *text);
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
