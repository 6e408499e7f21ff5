/* experiment: one question, asked of a device.
 *
 * experiments/<name>.c defines one, experiments/list.c lists them, plots/<name>.gp draws what it
 * found. It measures into the rows of a sheet; what it concludes it reads from these rows alone. */
#ifndef ASSAY_EXPERIMENT_H
#define ASSAY_EXPERIMENT_H

#include "lab.h"
#include "sheet.h"

typedef struct {
    const char *name;
    const char *question; /* one line each */
    const char *claim;    /* what was published */
    const char *how;      /* how each number is made */
    bool has_model;       /* some of its rows are of a model: the head says which */
    bool (*run)(lab *l, sheet *s, err *e);
    void (*conclude)(sheet *s); /* metrics and at most two sentences */
} experiment;

extern const experiment *const experiments[];
extern const size_t experiment_count;
const experiment *experiment_find(const char *name); /* NULL if there is none */

/* Runs, concludes and writes FOLDER/<name>.csv with its samples. The sheet is given back for its
 * conclusions where out is not NULL; the caller frees it. */
bool experiment_run(const experiment *x, lab *l, const char *version, const char *folder,
                    sheet **out, err *e);

#endif
