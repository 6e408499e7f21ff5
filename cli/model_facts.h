/* model_facts: the facts that `assay model info` shows, collected once, printed as text or JSON. */
#pragma once

#include <stdio.h>

#include "runner/gguf/gguf.h"

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

model_facts *model_facts_new(const gguf *g, err *e);
void model_facts_free(model_facts *f);

const char *model_get_type_name(gguf_value_type type);
/* Element i of a number or array of numbers, in JSON. */
void model_print_number(FILE *out, const gguf_value *v, size_t i);
/* A number, or a list with one per layer; a list of equal numbers is shown as one. */
void model_print_figure(FILE *out, const gguf_value *v);

void model_print_json(FILE *out, const gguf *g, const model_facts *f, bool tensors, bool metadata);
