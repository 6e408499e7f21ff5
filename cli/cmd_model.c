/* cmd_model: `assay model`, and those of its verbs that write a file: convert and synth. The others are in
 * files model_<name>.c. */
#include <stdio.h>
#include <sys/stat.h>

#include "harness/base/os.h"
#include "harness/base/progress.h"
#include "model_verbs.h"
#include "runner/gguf/convert.h"
#include "runner/gguf/synth.h"

/* Shows how much of a file is written, and stops at Ctrl-C so that no partial file is left. */
typedef struct {
    progress line;
    bool is_started;
} model_watch;

static void start_watch(model_watch *w) {
    *w = (model_watch){.is_started = false};
    os_watch_stop(true);
}

/* In MB: the total is known only now. */
static bool show_progress(void *watch, uint64_t done, uint64_t total) {
    model_watch *w = watch;
    const uint64_t mb = 1000000;
    if (!w->is_started)
        w->line = progress_new(stderr, "MB", (size_t)(total / mb));
    w->is_started = true;
    progress_update(&w->line, (size_t)(done / mb));
    return !os_stop_signal;
}

static void end_watch(model_watch *w) {
    if (w->is_started)
        progress_hide(&w->line);
    os_watch_stop(false);
}

/* convert ------------------------------------------------------------------------------------- */

static struct {
    const char *type;
    bool pure;
    option_list kept;
} converting;

static const option convert_option_list[] = {
    TEXT_OPTION("type", &converting.type, "T", "type of the weights, such as q4_0, q8_0 or f16"),
    FLAG_OPTION("pure", &converting.pure,
                "also convert the head, which otherwise becomes Q6_K or Q8_0"),
    LIST_OPTION("keep", &converting.kept, "GLOB",
                "leave matching tensors as they are, e.g. 'blk.*.ffn_down.*' (repeatable)"),
};

static bool is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool convert(const char *in, const char *out, const gguf_type *type, err *e) {
    gguf *g = gguf_open(in, e);
    if (!g)
        return false;
    model_watch watch;
    convert_options o = {.type = type,
                         .is_pure = converting.pure,
                         .kept = converting.kept.items,
                         .kept_count = converting.kept.count,
                         .watch = show_progress,
                         .context = &watch};
    start_watch(&watch);
    bool ok = convert_model(g, out, &o, e);
    end_watch(&watch);
    gguf_free(g);
    return ok;
}

static exit_code run_convert(const char *const *names, size_t count, err *e) {
    if (count != 2)
        return err_code(e, EXIT_USAGE, "model convert takes two files, IN and OUT; got %zu", count);
    if (!converting.type) {
        char valid[128];
        convert_list_types(valid, sizeof valid);
        err_set(e, EXIT_USAGE, "model convert needs --type, one of %s", valid);
        return e->code;
    }
    const gguf_type *type = convert_find_type(converting.type, e);
    if (!type)
        return e->code;
    if (is_same_file(names[0], names[1]))
        return err_code(e, EXIT_USAGE, "%.100s is the input file; give another one for the output",
                        names[1]);
    return convert(names[0], names[1], type, e) ? EXIT_OK : e->code;
}

static const verb convert_verb = {
    .name = "convert",
    .run = run_convert,
    .names = "IN OUT",
    .about = "rewrite a model with its weights in another type",
    .notes =
        "Matrices get the requested type, with the bytes of ggml's reference quantisation; "
        "vectors,\n"
        "norms and metadata stay as they are. With a quantised type the head (the embedding, in a\n"
        "model without a separate head) becomes Q6_K. Rows that are not whole blocks of 256 get\n"
        "q5_0, q5_1 or q8_0 in place of q4_k, q5_k or q6_k. A value that is not finite is "
        "refused,\n"
        "and a scale beyond fp16 is kept at 65504 where ggml would write infinity. IN may use any\n"
        "types that kernels read. OUT is written completely or not at all.\n",
    VERB_OPTIONS(convert_option_list)};

/* synth --------------------------------------------------------------------------------------- */

static struct {
    const char *type;
    uint64_t seed, layers;
} making = {.type = "q4_0", .seed = 1};

static const option synth_option_list[] = {
    SEED_OPTION(&making.seed, "the weights"),
    TEXT_OPTION("type", &making.type, "T", "type of the weights, as for convert (default q4_0)"),
    {"layers", OPTION_NUMBER, &making.layers, "N", "number of layers (default: the shape's)", 1,
     512},
};

static exit_code run_synth(const char *const *names, size_t count, err *e) {
    if (count != 2)
        return err_code(e, EXIT_USAGE,
                        "model synth takes a shape and a file, SHAPE OUT; got %zu argument%s",
                        count, count == 1 ? "" : "s");
    const synth_shape *shape = synth_find_shape(names[0], e);
    const gguf_type *type = shape ? convert_find_type(making.type, e) : NULL;
    if (!type)
        return e->code;
    model_watch watch;
    synth_options o = {making.seed, type, (uint32_t)making.layers, show_progress, &watch};
    start_watch(&watch);
    bool ok = synth_write_model(shape, names[1], &o, e);
    end_watch(&watch);
    return ok ? EXIT_OK : e->code;
}

static const verb synth_verb = {
    .name = "synth",
    .run = run_synth,
    .names = "SHAPE OUT",
    .about = "make a model with random weights in the shape of a real one",
    .notes =
        "Shapes: tiny, smollm-135m, smollm2-135m, smollm2-360m, 1b, 7b (4.2 GB in q4_0), and of\n"
        "RWKV-7 rwkv7-tiny, rwkv7-0.1b, rwkv7-0.4b, rwkv7-1.5b, rwkv7-2.9b, rwkv7-7.2b (4.5 GB).\n"
        "Its text is noise, but it runs like the real one and has a tokenizer that accepts any\n"
        "text. The same seed gives the same bytes on every machine.\n",
    VERB_OPTIONS(synth_option_list)};

/* The family ---------------------------------------------------------------------------------- */

static const verb *const verbs[] = {&model_info_verb, &model_check_verb, &model_bench_verb,
                                    &synth_verb, &convert_verb};

const verb verb_model = {
    .name = "model",
    .about = "models: describe, check, time, make and convert GGUF files",
    .verbs = verbs,
    .verb_count = sizeof verbs / sizeof *verbs,
};
