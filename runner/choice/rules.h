/* rules: which kernel of an op a model uses, by the format of the weights, the device, the shape and how
 * many tokens go through together. The only place that prefers one kernel to another.
 *
 * A choice is an op with a format and a shape. Its ways are the kernels of the op that take the shape. A fused
 * op can also be computed "apart", with one launch per step. The attention of one token can also be
 * "attention_ranges:N", with the cache split into N ranges, or "attention_ranges_shared:N", where in addition
 * one threadgroup computes all query heads that share a head of the cache, or "attention_ranges_mma:N", where
 * it does so by tensor cores ("attention_ranges_f16:N" and so on for a cache in F16).
 *
 * The way that is taken is the one that the table of the device says (tuned.h), where it was measured there,
 * and otherwise the one of the rules, which follow from what was measured on devices of its kind. */
#pragma once

#include "harness/check/op.h"
#include "harness/device/device.h"
#include "kernels/product/product.h"
#include "runner/model/model.h"

typedef struct {
    const op *op;
    const weight_format *format; /* NULL: no weights; of attention, that of the cache, NULL: F32 */
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

/* The rules alone --------------------------------------------------------------------------- */

/* Is it one of the ops that models have a choice for? */
bool rules_has(const op *o);
/* NULL with e set: no way takes the shape, or there is no rule for this op. */
const kernel *rules_find(const device_facts *d, const choice *c, err *e);

/* What models ask for ------------------------------------------------------------------------ */

/* What choices rest on. */
typedef struct variants_basis {
    const device_facts *facts;
    const struct tuned *table; /* NULL: the rules alone */
    const choice_watch *watch; /* NULL, or it observes every choice */
} variants_basis;

/* What the table says, or else the rules: the way that a model takes. */
const kernel *variants_find(const variants_basis *v, const choice *c, err *e);

/* For up to three products with the same x in two halves; NULL: one by one, x as it is. */
const kernel *variants_pick_split(const variants_basis *v, const weight_format *f, bool accumulates,
                                  shape s);

/* The kernel of an op for weights of a format (NULL: it has none) and a shape as op.dims says.
 * NULL without e set: separate launches are better than the fused op, or the format has no such
 * kernel. */
const kernel *variants_pick(const variants_basis *v, const op *o, const weight_format *f, shape s,
                            err *e);
/* y = W x, or y += W x, for W (out_dim, in_dim) at this offset of its buffer: a file may be aligned
 * to less than a kernel needs. NULL with e set: no kernel reads this format. */
const kernel *variants_pick_matvec(const variants_basis *v, const weight_format *f,
                                   bool accumulates, size_t offset, uint32_t out_dim,
                                   uint32_t in_dim, uint32_t tokens, err *e);
/* y = activation(W x + bias) */
const kernel *variants_pick_activated(const variants_basis *v, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e);
/* Of one token to dim[0] keys in a cache of this format (NULL: F32): a kernel, or a way with at most most_ranges ranges. */
const kernel *variants_pick_decode_attention(const variants_basis *v, const weight_format *cache,
                                             shape s, size_t most_ranges);
/* What is chosen by the number of keys is chosen by bands of it: the last number of the band. */
uint32_t variants_round_keys(uint32_t keys);

/* What the kind of the device decides alone, whatever the shape. */
const kernel *variants_pick_fixed(const variants_basis *v, const op *o);
const kernel *variants_pick_embedding(const weight_format *f, err *e);
/* The kernel of matvec_mixed for adapters of several tokens: floats, with few rows or few columns. NULL: a
 * launch for each. */
const kernel *variants_pick_adapters(const variants_basis *v, const weight_format *f, uint32_t rows,
                                     uint32_t columns, uint32_t tokens);
/* The kernel of matvec_mixed for the products of one token. */
const kernel *variants_pick_mixed(const variants_basis *v, const product *p);
/* Are a layer norm and its token shifts one launch? */
bool variants_fuses_shift(const variants_basis *v, uint32_t dim, uint32_t tokens);
/* Are all products of one token one launch, and all of a time mix? */
bool variants_fuses_token(const variants_basis *v, model_fusion f, uint32_t tokens);
