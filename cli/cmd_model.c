/* cmd_model: `assay model`. Only a table: each of its verbs is in a file model_<name>.c. */
#include "model_verbs.h"

static const verb *const verbs[] = {&model_info_verb, &model_check_verb, &model_bench_verb,
                                    &model_synth_verb, &model_convert_verb};

const verb verb_model = {
    .name = "model",
    .about = "models: describe, check, time, make and convert GGUF files",
    .verbs = verbs,
    .verb_count = sizeof verbs / sizeof *verbs,
};
