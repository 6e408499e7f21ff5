/* model_json: the facts of a model's file as one JSON object; see model_facts.h. */
#include <inttypes.h>
#include <string.h>

#include "harness/base/json.h"
#include "model_facts.h"

static void print_text_or_null(FILE *out, const char *key, gguf_text t) {
    fprintf(out, "  \"%s\": ", key);
    if (t.data)
        json_print_text(out, t.data, t.bytes);
    else
        fputs("null", out);
    fputs(",\n", out);
}

static void print_shape(FILE *out, const model_facts *f) {
    fputs("  \"shape\": {", out);
    for (size_t i = 0; i < MODEL_FIGURES; i++) {
        fprintf(out, "%s\"%s\": ", i ? ", " : "", f->figures[i].name);
        if (i == MODEL_HEAD_DIM && !f->figures[i].value && f->head_dim)
            fprintf(out, "%" PRIu32, f->head_dim);
        else
            model_print_figure(out, f->figures[i].value);
    }
    fprintf(out, ", \"vocab\": %" PRIu64 "},\n", f->vocab);
}

static void print_types(FILE *out, const model_facts *f) {
    fputs("  \"types\": [", out);
    for (size_t i = 0; i < f->type_count; i++)
        fprintf(out, "%s{\"type\": \"%s\", \"tensors\": %zu, \"bytes\": %" PRIu64 "}",
                i ? ", " : "", f->types[i].type->name, f->types[i].tensors, f->types[i].bytes);
    fputs("],\n  \"special_ids\": {", out);
    for (size_t i = 0; i < f->special_count; i++) {
        fputs(i ? ", " : "", out);
        json_print_text(out, f->specials[i].name.data, f->specials[i].name.bytes);
        fprintf(out, ": %" PRIu32, f->specials[i].id);
    }
    fputs("},\n", out);
}

static void print_tensors(FILE *out, const gguf *g) {
    fputs(",\n  \"tensors\": [", out);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", out);
        json_print_text(out, t->name, strlen(t->name));
        fprintf(out, ", \"type\": \"%s\", \"dims\": [", t->type->name);
        for (uint32_t d = 0; d < t->dims; d++)
            fprintf(out, "%s%" PRIu64, d ? ", " : "", t->dim[d]);
        fprintf(out, "], \"offset\": %zu, \"bytes\": %zu}", t->offset, t->bytes);
    }
    fputs("]", out);
}

static void print_value(FILE *out, const gguf_value *v) {
    bool is_array = v->type == GGUF_ARRAY;
    fputs(is_array ? "[" : "", out);
    for (size_t i = 0; i < v->count; i++) {
        fputs(i ? ", " : "", out);
        if (v->element == GGUF_STRING)
            json_print_text(out, v->texts[i].data, v->texts[i].bytes);
        else
            model_print_number(out, v, i);
    }
    fputs(is_array ? "]" : "", out);
}

/* A list and not an object: keys of any bytes may look the same once they are made UTF-8. */
static void print_metadata(FILE *out, const gguf *g) {
    fputs(",\n  \"metadata\": [", out);
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        fputs(i ? ",\n    {\"key\": " : "\n    {\"key\": ", out);
        json_print_text(out, v->key.data, v->key.bytes);
        fprintf(out, ", \"type\": \"%s\", \"value\": ", model_get_type_name(v->element));
        print_value(out, v);
        fputs("}", out);
    }
    fputs("]", out);
}

void model_print_json(FILE *out, const gguf *g, const model_facts *f, bool tensors, bool metadata) {
    fputs("{\n  \"path\": ", out);
    json_print_text(out, g->path, strlen(g->path));
    fprintf(out,
            ",\n  \"bytes\": %zu,\n  \"version\": %" PRIu32 ",\n  \"alignment\": %" PRIu32 ",\n",
            g->bytes, g->version, g->alignment);
    print_text_or_null(out, "architecture", f->architecture);
    print_text_or_null(out, "name", f->name);
    print_shape(out, f);
    fprintf(out, "  \"parameters\": %" PRIu64 ",\n", f->parameters);
    print_types(out, f);
    print_text_or_null(out, "tokenizer", f->tokenizer);
    print_text_or_null(out, "pre", f->pre);
    fprintf(out, "  \"runs\": %s,\n  \"why\": ", f->runs ? "true" : "false");
    if (f->runs)
        fputs("null", out);
    else
        json_print_text(out, f->why.text, strlen(f->why.text));
    if (tensors)
        print_tensors(out, g);
    if (metadata)
        print_metadata(out, g);
    fputs("\n}\n", out);
}
