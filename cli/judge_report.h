/* judge_report: the verdicts of `assay judge` for people and as JSON. */
#pragma once

#include <stdio.h>

#include "harness/check/judge.h"
#include "judge_time.h"

typedef struct {
    judge_candidate given;
    judge_answer answer;
    judge_time time; /* of one that is right, unless it was not asked for */
} judgement;

typedef struct {
    const device_facts *facts;
    uint64_t seed;
    const op *op;
    char again[512]; /* the command that gives the same verdict */
} judge_heading;

/* The exit status of one candidate. */
exit_code judge_get_code(const judgement *j);

void judge_print_one(FILE *out, const judge_heading *h, const judgement *j);
/* A ranking: the right ones by speed, then the others with their reasons. Sorts them. */
void judge_print_all(FILE *out, const judge_heading *h, judgement *list, size_t count);
void judge_print_json(FILE *out, const judge_heading *h, const judgement *list, size_t count);
