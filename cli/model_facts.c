/* model_facts: see model_facts.h. Collects; model_info.c and model_json.c print. */
#include "model_facts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "runner/model/model.h"
#include "runner/tokenizer/tokenizer.h"

const char *model_get_type_name(gguf_value_type type) {
    return gguf_get_value_type_name(type);
}

static bool is_number(const gguf_value *v) {
    return v->element != GGUF_STRING;
}

void model_print_number(FILE *out, const gguf_value *v, size_t i) {
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

void model_print_figure(FILE *out, const gguf_value *v) {
    if (!v || !is_number(v)) {
        fputs("null", out);
    } else if (is_uniform(v)) {
        model_print_number(out, v, 0);
    } else {
        for (size_t i = 0; i < v->count; i++) {
            fputs(i ? ", " : "[", out);
            model_print_number(out, v, i);
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

model_facts *model_facts_new(const gguf *g, err *e) {
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

void model_facts_free(model_facts *f) {
    free(f);
}
