/* choice: an op with a format and a shape, and the ways in which a model can compute it.
 *
 * The ways are the kernels of the op that take the shape. A fused op can also be computed "apart", with
 * one launch per step. The attention of one token can also be "attention_ranges:N", with the cache split
 * into N ranges, or "attention_ranges_shared:N", where in addition one threadgroup computes all query
 * heads that share a head of the cache, or "attention_ranges_mma:N", where it does so by tensor cores
 * ("attention_ranges_f16:N" and so on for a cache in F16).
 * variants.h alone decides which way is taken. */
#pragma once

#include "harness/check/op.h"

typedef struct {
    const op *op;
    const weight_format
        *format; /* NULL: it has no weights; of attention, that of the cache, NULL: F32 */
    bool accumulates;
    shape shape; /* as op.dims says; tokens are 1 or more */
} choice;

/* Called with each choice that a recording model makes. */
typedef struct choice_watch {
    void (*observe)(void *context, const choice *c);
    void *context;
} choice_watch;

enum { CHOICE_WAYS = 64, CHOICE_TEXT = 128 };

/* The ways that take the shape, the kernels first. */
size_t choice_list_ways(const choice *c, const kernel *ways[CHOICE_WAYS]);
/* The way of this name. NULL with e set: the op has no such way, or it does not take the format,
 * the accumulation or the shape. */
const kernel *choice_find_way(const choice *c, const char *name, err *e);
bool choice_takes(const choice *c, const kernel *way, err *e);

/* "apart" for a choice; NULL: its op is not fused. */
const kernel *choice_find_apart(const choice *c);
/* Is this way "apart"? */
bool choice_is_apart(const kernel *way);
/* Into how many ranges a way of decode_attention cuts the cache; 1: it does not. */
uint32_t choice_count_ranges(const kernel *way);
/* The way of the variant, "ranges", "shared" or "mma", that cuts it into at least that many, or into the most. */
const kernel *choice_find_ranges(const weight_format *cache, const char *variant, uint32_t ranges);
/* The kernel of attention_ranges that such a way launches. */
const kernel *choice_find_ranges_kernel(const kernel *way);

/* The .metal file of a way; of "apart", that of the fused kernel which it replaces. */
const char *choice_get_file(const choice *c, const kernel *way);

/* How far a choice is from one that was measured: the ratio of their token counts times the ratio of
 * their cache lengths, 1 if both are equal. Infinite if anything else differs, or if only one of them
 * has a single token, for which there are other kernels. A row with a kv_len of 0 is just near enough to
 * any length. */
#define CHOICE_NEAR 1.25 /* as far as a measurement holds */
double choice_find_distance(const choice *row, const choice *asked);

/* "matvec q4_0 += 576x1536x8" */
void choice_get_text(const choice *c, char *text, size_t size);

/* By op as the registry lists them, format, accumulation and shape: the order of tables. */
int choice_compare(const choice *a, const choice *b);

/* "q4_0"; "" for NULL, and back (NULL: there is none of this name). */
void choice_get_format(const weight_format *f, char *text, size_t size);
const weight_format *choice_find_format(const char *name);
