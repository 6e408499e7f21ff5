/* variants: which kernel of an op a model uses, by the format of the weights, the device and how
 * many tokens go through together. The only place that prefers one variant to another.
 *
 * Each choice (choice.h) is what the table of the device says (tuned.h), where it was measured
 * there, and otherwise what the rules say (rules.h). */
#pragma once

#include "choice.h"
#include "harness/device/device.h"
#include "kernels/product/product.h"
#include "runner/model/model.h"
#include "tuned.h"

/* What choices rest on. */
typedef struct variants_basis {
    const device_facts *facts;
    const tuned *table;        /* NULL: the rules alone */
    const choice_watch *watch; /* NULL, or is told of every choice */
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
/* Of one token to dim[0] keys in a cache of this format (NULL: F32): a kernel, or a way with at most most_ranges ranges (choice.h). */
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
