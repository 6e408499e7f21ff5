/* model/check: is a model right on this device?
 *
 * Every launch of a prompt and of the next token is compared with its oracle, on the real activations.
 * Then the whole: the forward pass against one in double precision, the prompt against the same
 * tokens one by one, and the ways to play the tapes against each other. Far from the start only a few
 * positions are looked at: those around powers of two, after a long prompt that is not. */
#pragma once

#include "nonfinite.h"

/* What one launch left in its smallest output. */
typedef struct {
    const char *part;   /* "layer 3" */
    const char *kernel; /* "rmsnorm_rows" */
    const char *output; /* "normed" */
    size_t index, count;
    value_summary values;
    double margin; /* largest error / allowed error: above 1 is wrong */
    bool passed;
} launch_report;

typedef struct {
    char what[64];   /* "prefill, launch by launch" */
    char found[160]; /* "361 launches, largest error 0.21 of the allowed (matvec_q4_0)" */
    bool passed;
} check_row;

enum { MODEL_CHECK_ROWS = 8 };

typedef struct {
    check_row rows[MODEL_CHECK_ROWS];
    size_t count;
    bool passed; /* all of them */
} model_report;

typedef struct {
    const uint32_t *prompt; /* (prompt_tokens, or depth + 1 if that is more) */
    size_t prompt_tokens;
    size_t tokens;           /* to decode after it */
    size_t reference_tokens; /* of the prompt, that go through the reference too */
    size_t depth;            /* the last position of a few around powers of two; 0: none of them */
    void (*observe)(void *context, const launch_report *l); /* NULL, or called after every launch */
    void *context;
} model_check_options;

/* The model is rewound first. Its context must have room for the prompt and the tokens, and
 * for depth + 1. */
bool model_check(model *m, const model_check_options *o, model_report *out, err *e);
