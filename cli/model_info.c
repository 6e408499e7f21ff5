/* model_info: `assay model info`. What a GGUF file holds, for people or as JSON. Every file that
 * can be read at all is described, of whatever architecture, with or without tensors.
 *
 * Text from the file is escaped in both forms, so that it cannot control the terminal. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "model_verbs.h"
#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"

static struct { bool json, tensors, metadata; } settings;

static const option options[] = {
    FLAG_OPTION("json", &settings.json, "print one JSON object"),
    FLAG_OPTION("tensors", &settings.tensors, "list every tensor too"),
    FLAG_OPTION("metadata", &settings.metadata, "list every metadata value too"),
};

enum { SHOWN_TEXT = 100, SHOWN_ELEMENTS = 8 };

/* The facts ----------------------------------------------------------------------------------- */

/* Numbers of the shape, by the suffix of their keys; the prefix is the architecture's name. */
enum {
    MODEL_LAYERS,
    MODEL_HIDDEN,
    MODEL_HEADS,
    MODEL_KV_HEADS,
    MODEL_HEAD_DIM,
    MODEL_FFN,
    MODEL_CONTEXT,
    MODEL_ROPE_BASE,
    MODEL_EPS,
    MODEL_FIGURES
};

typedef struct {
    gguf_text architecture, name, tokenizer, pre; /* data is NULL for those that are missing */
    struct {
        const char *name;
        const gguf_value *value; /* NULL: the file does not say */
    } figures[MODEL_FIGURES];
    uint32_t head_dim; /* given or computed; 0: unknown */
    uint64_t vocab, parameters;
    struct {
        const gguf_type *type;
        size_t tensors;
        uint64_t bytes;
    } types[64]; /* more than exist */
    size_t type_count;
    struct {
        gguf_text name; /* "bos" */
        uint32_t id;
    } specials[16];
    size_t special_count;
    bool runs;
    err why; /* if it does not run */
} model_facts;

static bool is_number(const gguf_value *v) {
    return v->element != GGUF_STRING;
}

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

/* A number, or a list with one per layer; a list of equal numbers is shown as one. */
static void print_figure(FILE *out, const gguf_value *v) {
    if (!v || !is_number(v)) {
        fputs("null", out);
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

static void find_figures(const gguf *g, model_facts *f) {
    static const struct {
        const char *name, *key;
    } keys[MODEL_FIGURES] = {
        [MODEL_LAYERS] = {"layers", "block_count"},
        [MODEL_HIDDEN] = {"hidden", "embedding_length"},
        [MODEL_HEADS] = {"heads", "attention.head_count"},
        [MODEL_KV_HEADS] = {"kv_heads", "attention.head_count_kv"},
        [MODEL_HEAD_DIM] = {"head_dim", "attention.key_length"},
        [MODEL_FFN] = {"ffn", "feed_forward_length"},
        [MODEL_CONTEXT] = {"context", "context_length"},
        [MODEL_ROPE_BASE] = {"rope_base", "rope.freq_base"},
        [MODEL_EPS] = {"eps", "attention.layer_norm_rms_epsilon"},
    };
    char key[160];
    for (size_t i = 0; i < MODEL_FIGURES; i++) {
        f->figures[i].name = keys[i].name;
        if (f->architecture.bytes == 0 || f->architecture.bytes > 64)
            continue;
        snprintf(key, sizeof key, "%.*s.%s", (int)f->architecture.bytes, f->architecture.data,
                 keys[i].key);
        const gguf_value *v = gguf_find_value(g, key);
        f->figures[i].value = v && is_number(v) ? v : NULL;
    }
    const gguf_value *hidden = f->figures[MODEL_HIDDEN].value,
                     *heads = f->figures[MODEL_HEADS].value;
    if (hidden && heads && hidden->type == GGUF_U32 && heads->type == GGUF_U32 &&
        gguf_value_get_integer(heads, 0) > 0)
        f->head_dim =
            (uint32_t)(gguf_value_get_integer(hidden, 0) / gguf_value_get_integer(heads, 0));
}

static void count_types(const gguf *g, model_facts *f) {
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        size_t k = 0;
        while (k < f->type_count && f->types[k].type != t->type)
            k++;
        assert(k < sizeof f->types / sizeof *f->types);
        f->type_count += k == f->type_count;
        f->types[k].type = t->type;
        f->types[k].tensors++;
        f->types[k].bytes += t->bytes;
        f->parameters += t->elements;
    }
}

/* tokenizer.ggml.bos_token_id and the like, as in the file. */
static void find_specials(const gguf *g, model_facts *f) {
    static const char front[] = "tokenizer.ggml.", back[] = "_token_id";
    const size_t front_bytes = sizeof front - 1, back_bytes = sizeof back - 1;
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        gguf_text k = v->key;
        if (v->type != GGUF_U32 || k.bytes <= front_bytes + back_bytes ||
            memcmp(k.data, front, front_bytes) != 0 ||
            memcmp(k.data + k.bytes - back_bytes, back, back_bytes) != 0 ||
            f->special_count == sizeof f->specials / sizeof *f->specials)
            continue;
        f->specials[f->special_count].name =
            (gguf_text){k.data + front_bytes, k.bytes - front_bytes - back_bytes};
        f->specials[f->special_count++].id = (uint32_t)gguf_value_get_integer(v, 0);
    }
}

static bool find_whether_it_runs(const gguf *g, err *e) {
    if (!model_check_file(g, e))
        return false;
    tokenizer *t = tokenizer_new(g, e);
    tokenizer_free(t);
    return t != NULL;
}

static model_facts *collect_facts(const gguf *g, err *e) {
    model_facts *f = calloc(1, sizeof *f);
    if (!f)
        return err_null(e, EXIT_CANNOT, "no memory to describe %.160s", g->path);
    find_text(g, "general.architecture", &f->architecture);
    find_text(g, "general.name", &f->name);
    find_text(g, "tokenizer.ggml.model", &f->tokenizer);
    find_text(g, "tokenizer.ggml.pre", &f->pre);
    find_figures(g, f);
    count_types(g, f);
    find_specials(g, f);
    const gguf_value *tokens = gguf_find_value(g, "tokenizer.ggml.tokens");
    const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
    f->vocab = tokens && tokens->type == GGUF_ARRAY ? tokens->count
               : embedding                          ? embedding->dim[1]
                                                    : 0;
    f->runs = find_whether_it_runs(g, &f->why);
    return f;
}

/* For people ---------------------------------------------------------------------------------- */

static void print_key(const char *key) {
    printf("%-12s ", key);
}

static void print_text(const char *key, gguf_text t) {
    size_t shown = t.bytes < SHOWN_TEXT ? t.bytes : SHOWN_TEXT;
    print_key(key);
    json_print_escaped(stdout, t.data, shown);
    if (shown < t.bytes)
        printf("... (%zu bytes)", t.bytes);
    putchar('\n');
}

static void print_element(const gguf_value *v, size_t i) {
    if (v->element == GGUF_STRING) {
        size_t shown = v->texts[i].bytes < SHOWN_TEXT ? v->texts[i].bytes : SHOWN_TEXT;
        json_print_text(stdout, v->texts[i].data, shown);
        if (shown < v->texts[i].bytes)
            printf("... (%zu bytes)", v->texts[i].bytes);
        return;
    }
    print_number(stdout, v, i);
}

static void print_shape(const model_facts *f) {
    for (size_t i = 0; i < MODEL_FIGURES; i++) {
        bool is_worked_out = i == MODEL_HEAD_DIM && !f->figures[i].value && f->head_dim;
        if (!f->figures[i].value && !is_worked_out)
            continue;
        print_key(f->figures[i].name);
        if (is_worked_out)
            printf("%" PRIu32, f->head_dim);
        else
            print_figure(stdout, f->figures[i].value);
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
        printf("%-12s %-8s %5zu tensors %14" PRIu64 " bytes\n", i ? "" : "types",
               f->types[i].type->name, f->types[i].tensors, f->types[i].bytes);
}

static void print_tokenizer(const model_facts *f) {
    if (f->tokenizer.data)
        print_text("tokenizer", f->tokenizer);
    if (f->pre.data)
        print_text("pre", f->pre);
    for (size_t i = 0; i < f->special_count; i++) {
        print_key(i ? "" : "special ids");
        json_print_escaped(stdout, f->specials[i].name.data, f->specials[i].name.bytes);
        printf(" %" PRIu32 "\n", f->specials[i].id);
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
            print_element(v, k);
        }
        puts(v->count > SHOWN_ELEMENTS ? ", ..." : "");
    }
}

static void print_all(const gguf *g, const model_facts *f) {
    if (f->architecture.data)
        print_text("architecture", f->architecture);
    if (f->name.data)
        print_text("name", f->name);
    printf("%-12s GGUF version %" PRIu32 ", %zu values, %zu tensors\n", "format", g->version,
           g->value_count, g->tensor_count);
    print_shape(f);
    print_types(g, f);
    print_tokenizer(f);
    print_key("runs");
    fputs(f->runs ? "yes" : "no: ", stdout);
    json_print_escaped(stdout, f->why.text, f->runs ? 0 : strlen(f->why.text));
    putchar('\n');
    if (settings.tensors)
        print_tensors(g);
    if (settings.metadata)
        print_metadata(g);
}

/* For programs -------------------------------------------------------------------------------- */

static void add_text(json *j, const char *key, gguf_text t) {
    json_add_bytes(j, key, t.data, t.bytes);
}

static void add_shape(json *j, const model_facts *f) {
    json_open(j, "shape", '{');
    for (size_t i = 0; i < MODEL_FIGURES; i++)
        if (i == MODEL_HEAD_DIM && !f->figures[i].value && f->head_dim)
            json_add_count(j, f->figures[i].name, f->head_dim);
        else
            print_figure(json_add_key(j, f->figures[i].name), f->figures[i].value);
    json_add_count(j, "vocab", f->vocab);
    json_close(j);
}

static void add_types(json *j, const model_facts *f) {
    json_open(j, "types", '[');
    for (size_t i = 0; i < f->type_count; i++) {
        json_open(j, NULL, '{');
        json_add_text(j, "type", f->types[i].type->name);
        json_add_count(j, "tensors", f->types[i].tensors);
        json_add_count(j, "bytes", f->types[i].bytes);
        json_close(j);
    }
    json_close(j);
    json_open(j, "special_ids", '{');
    for (size_t i = 0; i < f->special_count; i++) {
        gguf_text name = f->specials[i].name;
        json_print_text(json_add_key(j, NULL), name.data, name.bytes);
        fprintf(j->out, ": %" PRIu32, f->specials[i].id);
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

static void print_json(FILE *out, const gguf *g, const model_facts *f, bool tensors,
                       bool metadata) {
    json j = json_start(out, '{');
    json_add_text(&j, "path", g->path);
    json_add_count(&j, "bytes", g->bytes);
    json_add_count(&j, "version", g->version);
    json_add_count(&j, "alignment", g->alignment);
    add_text(&j, "architecture", f->architecture);
    add_text(&j, "name", f->name);
    add_shape(&j, f);
    json_add_count(&j, "parameters", f->parameters);
    add_types(&j, f);
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
}

bool model_info_print_json(FILE *out, const gguf *g, bool tensors, bool metadata, err *e) {
    model_facts *f = collect_facts(g, e);
    if (f)
        print_json(out, g, f, tensors, metadata);
    free(f);
    return f != NULL;
}

static bool print_facts(const gguf *g, err *e) {
    model_facts *f = collect_facts(g, e);
    if (f)
        print_all(g, f);
    free(f);
    return f != NULL;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (count != 1)
        return err_code(e, EXIT_USAGE, "model info takes one FILE; got %zu", count);
    gguf *g = gguf_open(names[0], e);
    bool ok = g && (settings.json
                        ? model_info_print_json(stdout, g, settings.tensors, settings.metadata, e)
                        : print_facts(g, e));
    gguf_free(g);
    return ok ? EXIT_OK : e->code;
}

VERB(model_info_verb, "info", .names = "FILE",
     .about = "describe a GGUF file: architecture, shape, types, tokenizer, and whether it runs",
     VERB_OPTIONS(options));
