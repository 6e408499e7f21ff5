/* cmd_model: `assay model`. Only a table: each of its verbs is a file model_<name>.c. */
#include "model_verbs.h"

static const verb *const verbs[] = {&model_info_verb, &model_check_verb, &model_bench_verb,
                                    &model_synth_verb, &model_convert_verb};

const verb verb_model = {
    .name = "model",
    .about = "models: what a GGUF file holds, whether it runs right, how fast, and making one",
    .verbs = verbs,
    .verb_count = sizeof verbs / sizeof *verbs,
};
