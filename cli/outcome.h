/* outcome: what became of each case of a run, kept for the files that other programs read. */
#pragma once

#include <stdio.h>

#include "harness/check/suite.h"

typedef enum {
    OUTCOME_PASS,
    OUTCOME_FAIL,  /* wrong: outputs, or what validation found */
    OUTCOME_ERROR, /* not checked to the end: it does not compile, crashed or hung */
    OUTCOME_SKIP
} outcome_kind;

typedef struct {
    outcome_kind kind;
    char name[160]; /* of the case */
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

void outcome_add(outcome_list *l, const kernel_case *c, const case_report *r);
void outcome_free(outcome_list *l);

/* One object: the device, the cases, the findings (NULL: none were looked for) and the counts. */
void outcome_print_json(FILE *out, const char *name, const device_facts *f, uint64_t seed,
                        const outcome_list *l, const finding_list *found);

/* JUnit XML, one suite with one test per case. */
bool outcome_write_junit(const char *path, const char *name, const device_facts *f,
                         const outcome_list *l, double seconds, err *e);
