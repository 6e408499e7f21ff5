/* experiment: one question, asked of a device.
 *
 * experiments/<name>.c defines one with EXPERIMENT and plots/<name>.gp draws its rows: no
 * other file mentions it. It measures into the rows of a sheet and draws its conclusions from these
 * rows alone. */
#pragma once

#include "lab.h"
#include "sheet.h"

typedef struct {
    const char *name;
    int order;            /* small ones run first: those that others rest on */
    const char *question; /* one line each */
    const char *claim;    /* what was published, for an Apple M4 */
    const char *how;      /* how each number is made */
    const char
        *finding;   /* the title of its chart, with metrics (plot.h); NULL: the first conclusion */
    bool has_model; /* some of its rows use a model: the head says which */
    const char *family; /* that the model must be of, or NULL: any */
    bool (*run)(lab *l, sheet *s, err *e);
    void (*conclude)(sheet *s); /* metrics and at most three sentences */
} experiment;

/* The experiment of a file, which begins with it and has the functions run and conclude; the other
 * fields follow. It is added to the list before main begins. */
#define EXPERIMENT(name_, ...)                                                                     \
    static bool run(lab *l, sheet *s, err *e);                                                     \
    static void conclude(sheet *s);                                                                \
    static const experiment experiment_##name_;                                                    \
    __attribute__((constructor)) static void add_##name_(void) {                                   \
        experiment_add(&experiment_##name_);                                                       \
    }                                                                                              \
    static const experiment experiment_##name_ = {                                                 \
        .name = #name_, .run = run, .conclude = conclude, __VA_ARGS__}
void experiment_add(const experiment *x);

/* All of them, in their order. */
enum { MOST_EXPERIMENTS = 64 };
extern const experiment *experiments[MOST_EXPERIMENTS];
extern size_t experiment_count;
const experiment *experiment_find(const char *name); /* NULL if there is none */

/* Runs, concludes and writes FOLDER/<name>.csv with its samples. Rows of a run that fails or never
 * ends are left in FOLDER/scratch for experiment_write_failure. If out is not NULL it gets the
 * sheet with its conclusions; the caller frees it. */
bool experiment_run(const experiment *x, lab *l, const char *version, const char *folder,
                    sheet **out, err *e);

/* FOLDER/<name>.failed.csv of an experiment that failed, beside what its last success left: the rows that were measured
 * before it did, and one that has only a `message`. The head says `# failed: why`; the next success removes the file. */
bool experiment_write_failure(const char *name, const results_meta *m, const char *folder,
                              const char *why, err *e);
