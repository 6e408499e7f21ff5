/* model_verbs: the verbs of `assay model`. Each is a file model_<name>.c, listed in cmd_model.c. */
#pragma once

#include "harness/base/progress.h"
#include "verb.h"

extern const verb model_info_verb, model_check_verb, model_bench_verb, model_synth_verb,
    model_convert_verb;

/* Shows how much of a file is written, and stops at Ctrl-C so that no partial file is left. */
typedef struct {
    progress line;
    bool is_started;
} model_watch;

void model_watch_start(model_watch *w);
bool model_watch_tell(void *watch, uint64_t done, uint64_t total); /* a weight_watch */
void model_watch_end(model_watch *w);
