/* cmd_model: `assay model`, and its verbs but bench, which is in model_bench.c. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/progress.h"
#include "harness/base/record.h"
#include "harness/check/fill.h"
#include "open_model.h"
#include "runner/gguf/convert.h"
#include "runner/gguf/synth.h"
#include "runner/model/check.h"
#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"

/* How much of a file is written, in MB; stops at Ctrl-C so that no partial file is left. */
static bool show_progress(void *context, uint64_t done, uint64_t total) {
    progress *line = context;
    const uint64_t mb = 1000000;
    line->total = (size_t)(total / mb);
    progress_update(line, (size_t)(done / mb));
    return !os_stop_signal;
}

/* convert ------------------------------------------------------------------------------------- */

static struct {
    const char *type;
    bool pure;
    option_list kept;
} converting;

static const option convert_option_list[] = {
    TEXT_OPTION("type", &converting.type, "T", "type of the weights, such as q4_0, q8_0 or f16"),
    FLAG_OPTION("pure", &converting.pure, "also convert the head, else Q6_K or Q8_0"),
    LIST_OPTION("keep", &converting.kept, "GLOB",
                "leave matching tensors as they are, e.g. 'blk.*.ffn_down.*' (repeatable)"),
};

static bool convert(const char *in, const char *out, const gguf_type *type, err *e) {
    gguf *g = gguf_open(in, e);
    if (!g)
        return false;
    progress watch = progress_new(stderr, "MB", 0);
    convert_options o = {.type = type,
                         .is_pure = converting.pure,
                         .kept = converting.kept.items,
                         .kept_count = converting.kept.count,
                         .watch = show_progress,
                         .context = &watch};
    os_watch_stop(true);
    bool ok = convert_model(g, out, &o, e);
    progress_hide(&watch);
    os_watch_stop(false);
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
    if (os_is_same_file(names[0], names[1]))
        return err_code(e, EXIT_USAGE, "%.100s is the input file; give another one for the output",
                        names[1]);
    return convert(names[0], names[1], type, e) ? EXIT_OK : e->code;
}

static VERB(
    convert_verb, "convert", run_convert, .names = "IN OUT",
    .about = "rewrite a model with its weights in another type",
    .notes =
        "Matrices get the requested type, with the bytes of ggml's reference quantisation;\n"
        "vectors, norms and metadata stay as they are. With a quantised type the head (the\n"
        "embedding, in a model without a separate head) becomes Q6_K. Rows that are not whole\n"
        "blocks of 256 get q5_0, q5_1 or q8_0 in place of q4_k, q5_k or q6_k. A value that is not\n"
        "finite is refused, and a scale beyond fp16 is kept at 65504 where ggml would write\n"
        "infinity. IN may use any types that kernels read. OUT is written completely or not at\n"
        "all.\n",
    VERB_OPTIONS(convert_option_list));

/* synth --------------------------------------------------------------------------------------- */

static struct {
    const char *type;
    uint64_t seed, layers;
} making = {.type = "q4_0", .seed = 1};

static const option synth_option_list[] = {
    SEED_OPTION(&making.seed, "the weights"),
    TEXT_OPTION("type", &making.type, "T", "type of the weights, as for convert (default q4_0)"),
    {"layers", OPTION_NUMBER, &making.layers, "N", "layers (default: the shape's)", 1, 512},
};

static exit_code run_synth(const char *const *names, size_t count, err *e) {
    if (count != 2)
        return err_code(e, EXIT_USAGE,
                        "model synth takes a shape and a file, SHAPE OUT; got %zu argument%s",
                        count, count == 1 ? "" : "s");
    const synth_shape *sizes = synth_find_shape(names[0], e);
    const gguf_type *type = sizes ? convert_find_type(making.type, e) : NULL;
    if (!type)
        return e->code;
    progress watch = progress_new(stderr, "MB", 0);
    synth_options o = {making.seed, type, (uint32_t)making.layers, show_progress, &watch};
    os_watch_stop(true);
    bool ok = synth_write_model(sizes, names[1], &o, e);
    progress_hide(&watch);
    os_watch_stop(false);
    return ok ? EXIT_OK : e->code;
}

static VERB(
    synth_verb, "synth", run_synth, .names = "SHAPE OUT",
    .about = "make a model with random weights in the shape of a real one",
    .notes =
        "Shapes: tiny, smollm-135m, smollm2-135m, smollm2-360m, 1b, 7b (4.2 GB in q4_0), and of\n"
        "RWKV-7 rwkv7-tiny, rwkv7-0.1b, rwkv7-0.4b, rwkv7-1.5b, rwkv7-2.9b, rwkv7-7.2b (4.5 GB).\n"
        "Its text is noise, but it runs like the real one and has a tokenizer that accepts any\n"
        "text. The same seed gives the same bytes on every machine.\n",
    VERB_OPTIONS(synth_option_list));

/* info --------------------------------------------------------------------------------------- */

/* What a GGUF file holds, for people or as JSON. Every file that can be read at all is described, of whatever
 * architecture, with or without tensors. Text from the file is escaped in both forms, so that it cannot
 * control the terminal.  */

static struct {
    bool json, tensors, metadata;
    const char *model;
} info_settings;

static const option info_option_list[] = {
    FLAG_OPTION("json", &info_settings.json, "print one JSON object"),
    FLAG_OPTION("tensors", &info_settings.tensors, "list every tensor too"),
    FLAG_OPTION("metadata", &info_settings.metadata, "list every metadata value too"),
    TEXT_OPTION("m|model", &info_settings.model, "FILE", "the same as FILE"),
};

enum { SHOWN_TEXT = 100, SHOWN_ELEMENTS = 8 };

/* The facts ----------------------------------------------------------------------------------- */

/* Numbers of the shape, by the suffix of their keys; the prefix is the architecture's name. */
static const struct {
    const char *name, *key;
} figures[] = {
    {"layers", "block_count"},
    {"hidden", "embedding_length"},
    {"heads", "attention.head_count"},
    {"kv_heads", "attention.head_count_kv"},
    {"head_dim", "attention.key_length"},
    {"ffn", "feed_forward_length"},
    {"context", "context_length"},
    {"rope_base", "rope.freq_base"},
    {"eps", "attention.layer_norm_rms_epsilon"},
};
enum { HIDDEN = 1, HEADS = 2, HEAD_DIM = 4, FIGURES = sizeof figures / sizeof *figures };

typedef struct {
    const char *name;
    size_t tensors;
    uint64_t bytes;
} type_facts;

typedef struct {
    gguf_text architecture, name, tokenizer, pre; /* data is NULL for those that are missing */
    const gguf_value *figures[FIGURES];           /* NULL: the file does not say */
    uint32_t follows[FIGURES];                    /* from others, where it is not stated; else 0 */
    uint64_t vocab, parameters;
    type_facts types[64]; /* more than exist */
    size_t type_count;
    bool runs;
    err why; /* if it does not run */
} model_facts;

/* Element i of a number or array of numbers, in JSON. */
static void print_number(FILE *out, const gguf_value *v, size_t i) {
    if (v->element == GGUF_F32 || v->element == GGUF_F64)
        json_print_number(out, gguf_value_get_number(v, i), v->element == GGUF_F32);
    else if (v->element == GGUF_BOOL)
        fputs(gguf_value_get_integer(v, i) ? "true" : "false", out);
    else if (v->element == GGUF_U64)
        fprintf(out, "%" PRIu64, (uint64_t)gguf_value_get_integer(v, i));
    else
        fprintf(out, "%" PRId64, gguf_value_get_integer(v, i));
}

static bool is_uniform(const gguf_value *v) {
    size_t bytes = v->count ? v->bytes / v->count : 0;
    for (size_t i = 1; i < v->count; i++)
        if (memcmp(v->data, v->data + i * bytes, bytes) != 0)
            return false;
    return v->count > 0;
}

/* Does the file say it, or does it follow? */
static bool has_figure(const model_facts *f, size_t i) {
    return f->figures[i] || f->follows[i];
}

/* A number, or a list with one per layer; a list of equal numbers is shown as one. */
static void print_figure(FILE *out, const model_facts *f, size_t at) {
    const gguf_value *v = f->figures[at];
    if (!has_figure(f, at)) {
        fputs("null", out);
    } else if (!v) {
        fprintf(out, "%" PRIu32, f->follows[at]);
    } else if (is_uniform(v)) {
        print_number(out, v, 0);
    } else {
        for (size_t i = 0; i < v->count; i++) {
            fputs(i ? ", " : "[", out);
            print_number(out, v, i);
        }
        fputs(v->count ? "]" : "[]", out);
    }
}

static void find_text(const gguf *g, const char *key, gguf_text *out) {
    const gguf_value *v = gguf_find_value(g, key);
    if (v && v->type == GGUF_STRING)
        *out = v->texts[0];
}

/* Of the architecture's own keys. */
static const gguf_value *find_figure(const gguf *g, const model_facts *f, const char *name) {
    char key[160];
    const size_t bytes = f->architecture.bytes;
    if (bytes == 0 || bytes > 64)
        return NULL;
    snprintf(key, sizeof key, "%.*s.%s", (int)bytes, f->architecture.data, name);
    const gguf_value *v = gguf_find_value(g, key);
    return v && v->element != GGUF_STRING ? v : NULL;
}

static uint32_t get_size(const gguf_value *v) {
    return v && v->type == GGUF_U32 ? (uint32_t)gguf_value_get_integer(v, 0) : 0;
}

/* A file of RWKV-7 has no heads of attention, but states their size. */
static void find_figures(const gguf *g, model_facts *f) {
    for (size_t i = 0; i < FIGURES; i++)
        f->figures[i] = find_figure(g, f, figures[i].key);
    const uint32_t hidden = get_size(f->figures[HIDDEN]), heads = get_size(f->figures[HEADS]);
    const uint32_t size = heads ? hidden / heads : get_size(find_figure(g, f, "wkv.head_size"));
    f->follows[HEAD_DIM] = size;
    if (heads == 0 && size > 0) {
        f->figures[HEADS] = NULL;
        f->follows[HEADS] = hidden / size;
    }
}

static void count_types(const gguf *g, model_facts *f) {
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        size_t k = 0;
        while (k < f->type_count && strcmp(f->types[k].name, t->type->name) != 0)
            k++;
        assert(k < sizeof f->types / sizeof *f->types);
        f->type_count += k == f->type_count;
        f->types[k].name = t->type->name;
        f->types[k].tensors++;
        f->types[k].bytes += t->bytes;
        f->parameters += t->elements;
    }
}

/* tokenizer.ggml.bos_token_id and the like; its name is "bos". */
static bool is_special(const gguf_value *v, gguf_text *name) {
    static const char front[] = "tokenizer.ggml.", back[] = "_token_id";
    const size_t before = sizeof front - 1, after = sizeof back - 1;
    const gguf_text k = v->key;
    if (v->type != GGUF_U32 || k.bytes <= before + after || memcmp(k.data, front, before) != 0 ||
        memcmp(k.data + k.bytes - after, back, after) != 0)
        return false;
    *name = (gguf_text){k.data + before, k.bytes - before - after};
    return true;
}

static bool find_whether_it_runs(const gguf *g, err *e) {
    if (!model_check_file(g, e))
        return false;
    tokenizer *t = tokenizer_new(g, e);
    tokenizer_free(t);
    return t != NULL;
}

static model_facts collect_facts(const gguf *g) {
    model_facts f = {.vocab = 0};
    find_text(g, "general.architecture", &f.architecture);
    find_text(g, "general.name", &f.name);
    find_text(g, "tokenizer.ggml.model", &f.tokenizer);
    find_text(g, "tokenizer.ggml.pre", &f.pre);
    find_figures(g, &f);
    count_types(g, &f);
    const gguf_value *tokens = gguf_find_value(g, "tokenizer.ggml.tokens");
    const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
    f.vocab = tokens && tokens->type == GGUF_ARRAY ? tokens->count
              : embedding                          ? embedding->dim[1]
                                                   : 0;
    f.runs = find_whether_it_runs(g, &f.why);
    return f;
}

/* For people ---------------------------------------------------------------------------------- */

static void print_key(const char *key) {
    printf("%-12s ", key);
}

/* Its beginning. */
static void print_cut(gguf_text t, void (*print)(FILE *out, const char *data, size_t bytes)) {
    print(stdout, t.data, t.bytes < SHOWN_TEXT ? t.bytes : SHOWN_TEXT);
    if (t.bytes > SHOWN_TEXT)
        printf("... (%zu bytes)", t.bytes);
}

static void print_text(const char *key, gguf_text t) {
    if (!t.data)
        return;
    print_key(key);
    print_cut(t, json_print_escaped);
    putchar('\n');
}

static void print_shape(const model_facts *f) {
    for (size_t i = 0; i < FIGURES; i++)
        if (has_figure(f, i)) {
            print_key(figures[i].name);
            print_figure(stdout, f, i);
            putchar('\n');
        }
    if (f->vocab)
        printf("%-12s %" PRIu64 "\n", "vocab", f->vocab);
}

static void print_types(const gguf *g, const model_facts *f) {
    printf("%-12s %" PRIu64 " (%.2f M)\n", "parameters", f->parameters,
           (double)f->parameters * 1e-6);
    printf("%-12s %zu bytes (%.1f MB)\n", "file", g->bytes, (double)g->bytes * 1e-6);
    for (size_t i = 0; i < f->type_count; i++)
        printf("%-12s %-8s %5zu tensors %14" PRIu64 " bytes\n", i ? "" : "types", f->types[i].name,
               f->types[i].tensors, f->types[i].bytes);
}

static void print_tokenizer(const gguf *g, const model_facts *f) {
    const char *key = "special ids";
    gguf_text name;
    print_text("tokenizer", f->tokenizer);
    print_text("pre", f->pre);
    for (size_t i = 0; i < g->value_count; i++)
        if (is_special(&g->values[i], &name)) {
            print_key(key);
            json_print_escaped(stdout, name.data, name.bytes);
            printf(" %" PRIu32 "\n", (uint32_t)gguf_value_get_integer(&g->values[i], 0));
            key = "";
        }
}

static void print_tensors(const gguf *g) {
    puts("\ntensors, rows last:");
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        char sizes[96];
        size_t used = 0;
        for (uint32_t d = 0; d < t->dims; d++)
            used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%s%" PRIu64,
                                     d ? " x " : "", t->dim[d]);
        printf("%-8s %16s %14zu bytes at %12zu  ", t->type->name, sizes, t->bytes, t->offset);
        json_print_escaped(stdout, t->name, strlen(t->name));
        putchar('\n');
    }
}

static void print_metadata(const gguf *g) {
    puts("\nmetadata:");
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        json_print_escaped(stdout, v->key.data, v->key.bytes);
        printf(" (%s", gguf_get_value_type_name(v->element));
        if (v->type == GGUF_ARRAY)
            printf(" x %zu", v->count);
        fputs(") = ", stdout);
        for (size_t k = 0; k < v->count && k < SHOWN_ELEMENTS; k++) {
            fputs(k ? ", " : "", stdout);
            if (v->element == GGUF_STRING)
                print_cut(v->texts[k], json_print_text);
            else
                print_number(stdout, v, k);
        }
        puts(v->count > SHOWN_ELEMENTS ? ", ..." : "");
    }
}

/* Both forms return whether it runs. */
static bool print_all(const gguf *g) {
    const model_facts facts = collect_facts(g), *f = &facts;
    print_text("architecture", f->architecture);
    print_text("name", f->name);
    printf("%-12s GGUF version %" PRIu32 ", %zu values, %zu tensors\n", "format", g->version,
           g->value_count, g->tensor_count);
    print_shape(f);
    print_types(g, f);
    print_tokenizer(g, f);
    print_key("runs");
    fputs(f->runs ? "yes" : "no: ", stdout);
    json_print_escaped(stdout, f->why.text, f->runs ? 0 : strlen(f->why.text));
    putchar('\n');
    if (info_settings.tensors)
        print_tensors(g);
    if (info_settings.metadata)
        print_metadata(g);
    return f->runs;
}

/* For programs -------------------------------------------------------------------------------- */

static void add_text(json *j, const char *key, gguf_text t) {
    json_add_bytes(j, key, t.data, t.bytes);
}

static void add_shape(json *j, const model_facts *f) {
    json_open(j, "shape", '{');
    for (size_t i = 0; i < FIGURES; i++)
        print_figure(json_add_key(j, figures[i].name), f, i);
    json_add_count(j, "vocab", f->vocab);
    json_close(j);
}

static const field type_fields[] = {
    FIELD(type_facts, name, FIELD_TEXT, "type"),
    FIELD(type_facts, tensors, FIELD_COUNT, "tensors"),
    FIELD(type_facts, bytes, FIELD_COUNT, "bytes"),
};

static void add_specials(json *j, const gguf *g) {
    gguf_text name;
    json_open(j, "special_ids", '{');
    for (size_t i = 0; i < g->value_count; i++)
        if (is_special(&g->values[i], &name)) {
            json_print_text(json_add_key(j, NULL), name.data, name.bytes);
            fprintf(j->out, ": %" PRIu32, (uint32_t)gguf_value_get_integer(&g->values[i], 0));
        }
    json_close(j);
}

static void add_tensor(json *j, const gguf_tensor *t) {
    json_open(j, NULL, '{');
    json_add_text(j, "name", t->name);
    json_add_text(j, "type", t->type->name);
    json_open(j, "dims", '[');
    for (uint32_t d = 0; d < t->dims; d++)
        json_add_count(j, NULL, t->dim[d]);
    json_close(j);
    json_add_count(j, "offset", t->offset);
    json_add_count(j, "bytes", t->bytes);
    json_close(j);
}

/* An object in a list: keys of any bytes may look the same once they are made UTF-8. */
static void add_value(json *j, const gguf_value *v) {
    bool is_array = v->type == GGUF_ARRAY;
    json_open(j, NULL, '{');
    add_text(j, "key", v->key);
    json_add_text(j, "type", gguf_get_value_type_name(v->element));
    if (is_array)
        json_open(j, "value", '[');
    for (size_t i = 0; i < v->count; i++) {
        const char *key = is_array ? NULL : "value";
        if (v->element == GGUF_STRING)
            add_text(j, key, v->texts[i]);
        else
            print_number(json_add_key(j, key), v, i);
    }
    if (is_array)
        json_close(j);
    json_close(j);
}

bool model_info_print_json(FILE *out, const gguf *g, bool tensors, bool metadata) {
    const model_facts facts = collect_facts(g), *f = &facts;
    json j = json_start(out, '{');
    json_add_text(&j, "path", g->path);
    json_add_count(&j, "bytes", g->bytes);
    json_add_count(&j, "version", g->version);
    json_add_count(&j, "alignment", g->alignment);
    add_text(&j, "architecture", f->architecture);
    add_text(&j, "name", f->name);
    add_shape(&j, f);
    json_add_count(&j, "parameters", f->parameters);
    record_list_json(&(record)RECORD(type_fields), f->types, f->type_count, sizeof *f->types,
                     "types", &j);
    add_specials(&j, g);
    add_text(&j, "tokenizer", f->tokenizer);
    add_text(&j, "pre", f->pre);
    json_add_flag(&j, "runs", f->runs);
    json_add_text(&j, "why", f->runs ? NULL : f->why.text);
    if (tensors) {
        json_open(&j, "tensors", '[');
        for (size_t i = 0; i < g->tensor_count; i++)
            add_tensor(&j, &g->tensors[i]);
        json_close(&j);
    }
    if (metadata) {
        json_open(&j, "metadata", '[');
        for (size_t i = 0; i < g->value_count; i++)
            add_value(&j, &g->values[i]);
        json_close(&j);
    }
    json_close(&j);
    return f->runs;
}

static exit_code run_info(const char *const *names, size_t count, err *e) {
    const size_t given = count + (info_settings.model != NULL);
    if (given != 1)
        return err_code(e, EXIT_USAGE, "model info takes one FILE; got %zu", given);
    gguf *g = gguf_open(count ? names[0] : info_settings.model, e);
    if (!g)
        return e->code;
    const bool runs = info_settings.json ? model_info_print_json(stdout, g, info_settings.tensors,
                                                                 info_settings.metadata)
                                         : print_all(g);
    gguf_free(g);
    return runs ? EXIT_OK : EXIT_CANNOT;
}

VERB(model_info_verb, "info", run_info, .names = "FILE",
     .about = "describe a GGUF file: architecture, shape, types, tokenizer, and whether it runs",
     .notes = "The exit status is 3 if it does not run, which the last line explains.\n",
     VERB_OPTIONS(info_option_list));

/* check ------------------------------------------------------------------------------------------ */

static struct {
    const char *model, *device, *kv;
    uint64_t prompt, tokens, reference, depth, seed;
    bool launches;
} check_settings = {.prompt = 20, .tokens = 8, .reference = 4, .depth = 257, .seed = 1};

static const option check_option_list[] = {
    MODEL_OPTION(&check_settings.model),
    {"p|prompt", OPTION_NUMBER, &check_settings.prompt, "N", "prompt length in tokens (default 20)",
     1, 1u << 20},
    {"n|tokens", OPTION_NUMBER, &check_settings.tokens, "N", "tokens to decode (default 8)", 1,
     1u << 20},
    {"reference", OPTION_NUMBER, &check_settings.reference, "N",
     "tokens also run through the double-precision pass (default 4)", 0, 1u << 20},
    {"depth", OPTION_NUMBER, &check_settings.depth, "N",
     "last of the positions around powers of two (default 257; 0: none)", 0, 1u << 20},
    FLAG_OPTION("launches", &check_settings.launches,
                "print one row per launch: smallest, largest and mean value, NaNs, error"),
    SEED_OPTION(&check_settings.seed, "the token ids, for files whose vocabulary cannot be read"),
    KV_OPTION(&check_settings.kv),
    DEVICE_OPTION(&check_settings.device),
};

/* --- the prompt --- */

/* English where the vocabulary can be read, else random ids. */
static const char passage[] =
    "The assayer weighed a little of the ore, wrapped it in a sheet of lead and set it in the "
    "furnace. When the lead had gone into the bone ash, a bright bead of silver was left. He "
    "weighed the bead and wrote the number down: 3.25 parts in 100. \"Is it enough?\" asked the "
    "miner, who had come a long way. \"That depends on how much of it there is,\" he said. ";

static uint32_t *make_prompt(const gguf *g, const model_shape *s, size_t count) {
    token_list words = {0};
    err why;
    tokenizer *t = tokenizer_new(g, &why);
    if (t)
        tokenizer_encode(t, passage, strlen(passage), TOKENIZE_ADD_SPECIAL, &words);
    else
        fprintf(stderr, "random token ids, and `assay run` refuses the file: %s\n", why.text);
    rng random = rng_new(check_settings.seed, "model check");
    uint32_t *ids = array_new(count, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = words.count ? words.items[i % words.count] : rng_below(&random, s->vocab);
    token_list_free(&words);
    tokenizer_free(t);
    return ids;
}

/* --- what is shown --- */

typedef struct {
    sink launches;
    progress progress;
    size_t done;
} view;

static const field launch_fields[] = {
    FIELD(launch_report, part, FIELD_TEXT, NULL, "part", .width = 10),
    FIELD(launch_report, kernel, FIELD_TEXT, NULL, "kernel", .width = 40),
    FIELD(launch_report, output, FIELD_TEXT, NULL, "output", .width = 14, .rank = 1),
    FIELD(launch_report, values.min, FIELD_REAL, NULL, "smallest", .width = 12, .rank = 3,
          .format = "%.5g"),
    FIELD(launch_report, values.max, FIELD_REAL, NULL, "largest", .width = 12, .rank = 2,
          .format = "%.5g"),
    FIELD(launch_report, values.mean, FIELD_REAL, NULL, "mean", .width = 12, .rank = 4,
          .format = "%.5g"),
    FIELD(launch_report, values.bad, FIELD_COUNT, NULL, "NaN", .width = 6),
    FIELD(launch_report, margin, FIELD_REAL, NULL, "error", .width = 6, .format = "%.2f",
          .is_painted = true),
};

static void show_launch(void *context, const launch_report *l) {
    view *v = context;
    v->done++;
    if (check_settings.launches)
        sink_add(&v->launches, l, l->passed ? PAINT_GOOD : PAINT_BAD);
    else
        progress_update(&v->progress, v->done);
}

typedef struct {
    const char *what, *verdict, *found;
} check_view;

static const field check_fields[] = {
    FIELD(check_view, what, FIELD_TEXT, NULL, "check"),
    FIELD(check_view, verdict, FIELD_TEXT, NULL, "verdict", .is_painted = true),
    FIELD(check_view, found, FIELD_TEXT, NULL, "found"),
};

static void print_report(const model_report *r) {
    sink s = {.record = RECORD(check_fields), .out = stdout};
    for (size_t i = 0; i < r->count; i++) {
        const check_row *row = &r->rows[i];
        const check_view v = {row->what, row->passed ? "ok" : "wrong", row->found};
        sink_add(&s, &v, row->passed ? PAINT_GOOD : PAINT_BAD);
    }
    sink_end(&s);
}

/* A prompt takes as many launches as a token if it fits one tile. */
static size_t count_launches(model *m) {
    err ignored;
    const tape *t = model_get_token_tape(m, false, &ignored);
    return t ? 2 * t->count : 0;
}

static bool check(open_model *s, const uint32_t *prompt, bool *passed, err *e) {
    view v = {.launches = {.record = RECORD(launch_fields), .out = stdout, .streams = true}};
    v.progress = progress_new(stderr, "launches", count_launches(s->model));
    model_check_options how = {.prompt = prompt,
                               .prompt_tokens = (size_t)check_settings.prompt,
                               .tokens = (size_t)check_settings.tokens,
                               .reference_tokens = (size_t)check_settings.reference,
                               .depth = (size_t)check_settings.depth,
                               .observe = show_launch,
                               .context = &v};
    model_report report;
    bool ok = model_check(s->model, &how, &report, e);
    progress_hide(&v.progress);
    if (!ok)
        return false;
    if (check_settings.launches)
        putchar('\n');
    print_report(&report);
    *passed = open_model_print_findings(s, stdout) && report.passed;
    return true;
}

/* Tokens of the longest prompt: a model that was made for less is checked as far as it goes. */
static uint64_t limit_depth(const model_shape *s) {
    if (s->context > 0 && check_settings.depth >= s->context)
        check_settings.depth = s->context - 1;
    return check_settings.depth + 1 > check_settings.prompt ? check_settings.depth + 1
                                                            : check_settings.prompt;
}

static exit_code run_check(err *e) {
    open_model s;
    model_shape about;
    bool passed = false;
    uint64_t context = check_settings.prompt + check_settings.tokens + 1, longest = 0;
    bool ok = open_model_file(&s, check_settings.model, e) && model_read_shape(s.file, &about, e);
    if (ok)
        longest = limit_depth(&about);
    model_options how = {.context = (uint32_t)(longest > context ? longest : context)};
    ok = ok && open_model_find_cache(check_settings.kv, &how.cache, e) &&
         open_model_on(&s, check_settings.device, &how, e);
    if (ok) {
        uint32_t *prompt = make_prompt(s.file, &about, (size_t)longest);
        ok = check(&s, prompt, &passed, e);
        free(prompt);
    }
    open_model_close(&s);
    if (!ok)
        return e->code;
    return passed ? EXIT_OK : EXIT_WRONG;
}

VERB_ALONE(
    model_check_verb, "check", run_check,
    .about = "check a model on this device: every launch against its oracle, and the whole pass",
    .notes =
        "Each launch of a prompt and of the next token is compared with its oracle on real\n"
        "activations. Then the whole: against a forward pass in double precision, the prompt\n"
        "against the same tokens one by one, and the ways to play a tape against each other; and\n"
        "positions around 64, 128 and 256 after a long prompt: one by one, launch by launch and\n"
        "as a prompt. `error` is the largest error divided by the allowed error: above 1 is\n"
        "wrong.\n",
    VERB_OPTIONS(check_option_list), .math = "safe", .reads_tuned = true);

static const verb *const verbs[] = {&model_info_verb, &model_check_verb, &model_bench_verb,
                                    &synth_verb, &convert_verb};

const verb verb_model = {
    .name = "model",
    .about = "models: describe, check, time, make and convert GGUF files",
    .verbs = verbs,
    .verb_count = sizeof verbs / sizeof *verbs,
};
