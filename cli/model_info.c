/* model_info: `assay model info`. What a GGUF file holds, for people or as JSON. Every file that
 * can be read at all is described, of whatever architecture, with or without tensors.
 *
 * Text from the file is escaped in both forms, so that it cannot control the terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "model_facts.h"
#include "model_verbs.h"

static struct { bool json, tensors, metadata; } settings;

static const option options[] = {
    FLAG_OPTION("json", &settings.json, "print one JSON object"),
    FLAG_OPTION("tensors", &settings.tensors, "list every tensor too"),
    FLAG_OPTION("metadata", &settings.metadata, "list every metadata value too"),
};

enum { SHOWN_TEXT = 100, SHOWN_ELEMENTS = 8 };

/* --- for people --- */

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
    model_print_number(stdout, v, i);
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
            model_print_figure(stdout, f->figures[i].value);
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
        char shape[96];
        size_t used = 0;
        for (uint32_t d = 0; d < t->dims; d++)
            used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64,
                                     d ? " x " : "", t->dim[d]);
        printf("%-8s %16s %14zu bytes at %12zu  ", t->type->name, shape, t->bytes, t->offset);
        json_print_escaped(stdout, t->name, strlen(t->name));
        putchar('\n');
    }
}

static void print_metadata(const gguf *g) {
    puts("\nmetadata:");
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        json_print_escaped(stdout, v->key.data, v->key.bytes);
        printf(" (%s", model_get_type_name(v->element));
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

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (count != 1)
        return err_code(e, EXIT_USAGE, "model info takes one FILE; got %zu", count);
    gguf *g = gguf_open(names[0], e);
    if (!g)
        return e->code;
    model_facts *f = model_facts_new(g, e);
    if (f && settings.json)
        model_print_json(stdout, g, f, settings.tensors, settings.metadata);
    else if (f)
        print_all(g, f);
    model_facts_free(f);
    gguf_free(g);
    return f ? EXIT_OK : e->code;
}

VERB(model_info_verb, "info", .names = "FILE",
     .about = "describe a GGUF file: architecture, shape, types, tokenizer, and whether it runs",
     VERB_OPTIONS(options));
