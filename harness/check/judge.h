/* judge: is a candidate kernel right, whatever it tries?
 *
 * A candidate is the text of a kernel that claims to compute what a kernel of ours, its base, does.
 * It must compile, have no errors of lint, and give what the oracle expects on the listed shapes and
 * on held-out ones, with inputs from a seed that its author cannot know; then it runs in the checked
 * mode of the software device, whatever device it is for. Each candidate has a worker of its own, so
 * that one that crashes or hangs is refused alone. Its time is not measured here. */
#pragma once

#include "check.h"

typedef enum {
    JUDGE_TEXT, /* there is no such kernel, or it cannot be launched as asked */
    JUDGE_COMPILE,
    JUDGE_LINT,
    JUDGE_CHECK,
    JUDGE_VALIDATE,
    JUDGE_RUN, /* it crashed, hung or used up its time */
    JUDGE_TIME,
    JUDGE_STAGES
} judge_stage;

const char *judge_get_stage_name(judge_stage s); /* "check" */

/* What one candidate was found to be. */
typedef struct {
    bool is_right;       /* nothing below refused it */
    bool is_our_failure; /* it could not be judged: error says why */
    judge_stage stage;   /* that refused it */
    char kernel[128];    /* of its file */
    char reason[512];    /* one sentence */
    char detail[1024];   /* what a compiler said */
    char case_name[256]; /* that it failed, or "" */
    bool is_held_out;    /* that case has a shape that the op does not list */
    char file[128];      /* where: of the finding or lint message, else of the kernel */
    int line;            /* 0: unknown */
    char class[32];      /* of the finding or lint rule, or "" */
    char buffer[64];     /* whose elements differ: */
    bad_element first[COMPARE_SHOWN];
    size_t shown;
    size_t checked, held_out, validated; /* cases that it passed; held_out: of those checked */
    size_t untried;                      /* cases that there was no time to validate */
    size_t warnings;                     /* of lint */
    err error;
} judge_answer;

typedef struct {
    const char *path;   /* of the candidate */
    const char *kernel; /* of its file; NULL: the only one, or the one called as its base */
    const char *base;   /* the kernel of ours whose place it takes */
} judge_candidate;

/* The cases of a kernel of ours, with `random` held-out ones at the end and then those with the shapes
 * that are timed; the caller frees them. */
typedef struct {
    size_t listed, kinds, timed; /* the first held-out one; the first with a shape that is timed and
                                    other inputs; the first of those that are timed */
} judge_parts;
typedef bool judge_finder(const char *kernel, size_t random, uint64_t seed, case_list *out,
                          judge_parts *parts, err *e);

/* Each answer as soon as it is known. False with e set ends the run. */
typedef bool judge_listener(void *context, size_t candidate, const judge_answer *a, err *e);

typedef struct {
    const char *const *arguments; /* that workers are started with */
    judge_finder *find;
    const char *launch; /* a description of its launch (rival.h); NULL: as the base */
    const char *device; /* that it is checked on */
    uint64_t seed, random, jobs;
    uint64_t validate_most; /* values of the largest case that is validated */
    double timeout_s;       /* of a candidate */
    double compile_s;       /* CPU time that all its compiles together may take */
} judge_settings;

/* The worker's side. */
exit_code judge_serve(const judge_settings *s, err *e);

/* Judges them. False if the run had to end. */
bool judge_run(const judge_settings *s, const judge_candidate *candidates, size_t count,
               judge_listener *hear, void *context, err *e);
