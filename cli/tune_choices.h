/* tune_choices: what `assay tune` is asked to decide: the choices of a model, of models of known
 * shapes, or of shapes on the command line. */
#pragma once

#include "axes.h"
#include "options.h"
#include "runner/tune.h"

typedef struct {
    const char *const *filters; /* ops, or parts of "matvec q4_0 += 576x1536x8" */
    size_t filter_count;
    const char *model, *presets, *type, *shapes;
    axes_query axes; /* formats and accumulate */
    option_numbers tokens;
    uint64_t seed;
} tune_query;

/* Only those that have at least two ways, parts before what they are parts of. */
bool tune_choices_find(const tune_query *q, library *lib, choice_list *out, err *e);
