/* experiment_files: what the files of earlier runs say of experiments: which need not be run again,
 * and how long each takes. */
#pragma once

#include "experiments/lab.h"

/* What a run would be. */
typedef struct {
    const char *folder;
    const device_facts *facts;
    lab_level level;
    uint64_t seed;
    const char *model; /* as given; NULL: the default */
} experiment_plan;

/* Takes those out of `names` whose files are still true: of this program, device, seed, level, math
 * mode and model, and of code that has not changed since. *kept counts them. */
bool experiment_files_drop_finished(const experiment_plan *p, const char **names, size_t *count,
                                    size_t *kept, err *e);

/* The seconds that `name` took at this level last time, or a guess. */
double experiment_files_expect(const experiment_plan *p, const char *name);
