/* model/nonfinite: where NaN and infinity come from: the weights of a file, or the first launch of a forward
 * pass that wrote one. */
#pragma once

#include "model.h"

/* The first of `count` values that is not finite; count: none. */
size_t nonfinite_find(const float *values, size_t count);

/* Looks for them in the weights, where they make every token nonsense. Fast: of a quantised block only the
 * scales can be non-finite, and only their exponents are looked at. The whole file is read once. False with
 * EXIT_WRONG: names the tensor, the row and the block. Tensors in types that no kernel reads are left out. */
bool nonfinite_scan(const gguf *g, err *e);

/* The values of a buffer of a launch. */
typedef struct {
    size_t elements, bad;  /* bad: NaN and infinities */
    size_t first;          /* of those */
    double min, max, mean; /* of the others */
} value_summary;
bool nonfinite_count(const binding *b, value_summary *out, err *e);

typedef struct {
    bool found;
    char part[32];        /* "layer 3" */
    char kernel[96];      /* "matvec_q4_0" */
    char output[48];      /* "gate" */
    char weight[48];      /* "blk.3.ffn_gate.weight"; "": it reads none */
    size_t index, count;  /* which launch of how many */
    size_t bad, elements; /* values of the output that are not finite, and all */
    size_t first;         /* of those that are not */
} nonfinite;

/* Looks at everything that a launch wrote except the cache, most of which was never written; fills
 * out where a value is not finite. */
bool nonfinite_look(const model *m, const launch *l, nonfinite *out, err *e);

/* "layer 3, launch 17 of 302 (matvec_q4_0 with blk.3.ffn_gate.weight): 1536 of 1536 values ..." */
void nonfinite_print(const nonfinite *n, char *text, size_t size);

/* Rewinds the model and plays the tokens as a prompt, launch by launch, up to the first launch that
 * writes something that is not finite. Needs room for all tokens. */
bool model_trace(model *m, const uint32_t *tokens, size_t count, nonfinite *out, err *e);
