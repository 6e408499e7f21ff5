/* model_convert: `assay model convert`. */
#include <stdio.h>
#include <sys/stat.h>

#include "model_verbs.h"
#include "runner/gguf/convert.h"

static struct {
    const char *type;
    bool pure;
    option_list kept;
} settings;

static const option options[] = {
    TEXT_OPTION("type", &settings.type, "T",
                "q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, f16 or f32"),
    FLAG_OPTION("pure", &settings.pure,
                "also convert the head, which otherwise becomes Q6_K or Q8_0"),
    LIST_OPTION("keep", &settings.kept, "GLOB",
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
                         .is_pure = settings.pure,
                         .kept = settings.kept.items,
                         .kept_count = settings.kept.count,
                         .watch = model_watch_tell,
                         .context = &watch};
    model_watch_start(&watch);
    bool ok = convert_model(g, out, &o, e);
    model_watch_end(&watch);
    gguf_free(g);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (count != 2)
        return err_code(e, EXIT_USAGE, "model convert takes two files, IN and OUT; got %zu", count);
    if (!settings.type) {
        char valid[128];
        convert_list_types(valid, sizeof valid);
        err_set(e, EXIT_USAGE, "model convert needs --type, one of %s", valid);
        return e->code;
    }
    const gguf_type *type = convert_find_type(settings.type, e);
    if (!type)
        return e->code;
    if (is_same_file(names[0], names[1]))
        return err_code(e, EXIT_USAGE, "%.100s is the input file; give another one for the output",
                        names[1]);
    return convert(names[0], names[1], type, e) ? EXIT_OK : e->code;
}

VERB(
    model_convert_verb, "convert", .names = "IN OUT",
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
    VERB_OPTIONS(options));
