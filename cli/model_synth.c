/* model_synth: `assay model synth`. */
#include <stdio.h>

#include "model_verbs.h"
#include "runner/gguf/synth.h"

static struct {
    const char *type;
    uint64_t seed, layers;
} settings = {.type = "q4_0", .seed = 1};

static const option options[] = {
    SEED_OPTION(&settings.seed, "the weights"),
    TEXT_OPTION("type", &settings.type, "T", "type of the weights, as for convert (default q4_0)"),
    {"layers", OPTION_NUMBER, &settings.layers, "N", "number of layers (default: the shape's)", 1,
     512},
};

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (count != 2)
        return err_code(e, EXIT_USAGE,
                        "model synth takes a shape and a file, SHAPE OUT; got %zu argument%s",
                        count, count == 1 ? "" : "s");
    const synth_shape *shape = synth_find_shape(names[0], e);
    const gguf_type *type = shape ? convert_find_type(settings.type, e) : NULL;
    if (!type)
        return e->code;
    model_watch watch;
    synth_options o = {settings.seed, type, (uint32_t)settings.layers, model_watch_tell, &watch};
    model_watch_start(&watch);
    bool ok = synth_write_model(shape, names[1], &o, e);
    model_watch_end(&watch);
    return ok ? EXIT_OK : e->code;
}

VERB(model_synth_verb, "synth", .names = "SHAPE OUT",
     .about = "make a model with random weights in the shape of a real one",
     .notes =
         "Shapes: tiny, smollm-135m, smollm2-135m, smollm2-360m, 1b, 7b (4.2 GB in q4_0), and of\n"
         "RWKV-7 rwkv7-tiny, rwkv7-0.1b, rwkv7-0.4b, rwkv7-1.5b, rwkv7-2.9b, rwkv7-7.2b (4.5 GB).\n"
         "Its text is noise, but it runs like the real one and has a tokenizer that accepts any\n"
         "text. The same seed gives the same bytes on every machine.\n",
     VERB_OPTIONS(options));
