/* model_verbs: the verbs of `assay model` that cmd_model.c does not have itself. */
#pragma once

#include <stdio.h>

#include "runner/gguf/gguf.h"
#include "verb.h"

extern const verb model_info_verb, model_check_verb, model_bench_verb;

/* What a file holds, as one object. */
bool model_info_print_json(FILE *out, const gguf *g, bool tensors, bool metadata, err *e);
