/* tune: which ways make a whole model faster on a device than those of the rules.
 *
 * A way replaces another only after the whole model was timed with and without it, interleaved,
 * in every test (runner/model/bench.h: prompts and generation at several depths) whose tapes it
 * changes: one of them must be significantly faster (comparison.h), and none slower. A kernel chained
 * to itself is not a kernel among others: times of kernels alone only say what is worth a try. */
#pragma once

#include "runner/model/bench.h"
#include "tuned.h"

typedef struct {
    uint64_t seed;
    double budget_s;   /* of samples of one test */
    double min_effect; /* percent: a smaller change of a test is none */
} tune_settings;

typedef struct {
    choice *items;
    size_t count, capacity;
} choice_list;

enum { TUNE_TESTS = 64 };

typedef struct {
    library *lib;
    const gguf *file;
    tune_settings settings;
    struct {
        bench_test test;
        choice_list choices; /* of its tapes */
    } tests[TUNE_TESTS];
    size_t test_count;
    choice_list choices; /* of all tests */
    tuned *table;        /* what is accepted so far */
    model *model;        /* with that table; NULL: not opened yet */
} tuner;

/* How the model with one table compares to that with another, in the tests that it changes. */
typedef struct {
    struct {
        char test[32];
        double gain, low, high; /* times as fast */
    } items[TUNE_TESTS];
    size_t count, best; /* best: where it gains most */
    bool is_faster;     /* somewhere */
    bool is_slower;     /* somewhere, or may be: then the tests after it are left out */
} tune_comparison;

/* Takes over the table, which may be empty. Tests that the model's context has no room for are left
 * out. tuner_close is needed after a failure too. */
bool tuner_open(tuner *t, library *lib, const gguf *g, const bench_test *tests, size_t count,
                tuned *table, const tune_settings *s, err *e);
void tuner_close(tuner *t);

/* Tries a row on top of what is accepted; keeps it if it makes the model faster and nothing slower.
 * The row in the table then says where it gained most. */
bool tuner_try(tuner *t, const tuned_row *r, tune_comparison *out, bool *is_kept, err *e);
