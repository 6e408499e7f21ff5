/* variants: which kernel of an op a model uses, by the format of the weights, the device and how
 * many tokens go through together. The only place that prefers one variant to another.
 *
 * Each choice (choice.h) is what the table of the device says (tuned.h), where it was measured
 * there, and otherwise what a rule says that knows the kind of the device. */
#pragma once

#include "choice.h"
#include "harness/device/device.h"
#include "runner/model/model.h"
#include "tuned.h"

/* What choices rest on. */
typedef struct variants_basis {
    const device_facts *facts;
    const tuned *table;        /* NULL: the rules alone */
    const choice_watch *watch; /* NULL, or is told of every choice */
} variants_basis;

/* What the rules say. NULL with e set: no way takes the shape, or there is no rule for this op. */
const kernel *variants_find_rule(const device_facts *d, const choice *c, err *e);
/* What the table says, or else the rules: the way that a model takes. */
const kernel *variants_find(const variants_basis *v, const choice *c, err *e);
/* Is it one of the ops that models have a choice for? */
bool variants_has_rule(const op *o);

/* y = W x, or y += W x, for W (out_dim, in_dim) at this offset of its buffer: a file may be aligned to
 * less than a kernel needs. NULL with e set: no kernel reads this format. */
const kernel *variants_pick_matvec(const variants_basis *v, const weight_format *f,
                                   bool accumulates, size_t offset, uint32_t out_dim,
                                   uint32_t in_dim, uint32_t tokens, err *e);
/* y = activation(W x + bias) */
const kernel *variants_pick_activated(const variants_basis *v, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e);
const kernel *variants_pick_embedding(const weight_format *f, err *e);
const kernel *variants_pick_argmax(const variants_basis *v);
const kernel *variants_pick_silu(const variants_basis *v);
const kernel *variants_pick_rope_table(const variants_basis *v);
const kernel *variants_pick_rmsnorm(const variants_basis *v, uint32_t tokens, uint32_t dim);

/* Sizes of the attention of a model. */
typedef struct {
    uint32_t heads, kv_heads, head_dim;
} variants_heads;

/* What is chosen by the number of keys is chosen by bands of it: the last number of the band. */
uint32_t variants_round_keys(uint32_t keys);
/* Of one token to this many keys: a kernel, or a way with at most most_ranges ranges (choice.h). */
const kernel *variants_pick_decode_attention(const variants_basis *v, const variants_heads *h,
                                             uint32_t keys, size_t most_ranges);
/* Of many tokens, the first at position `start`. */
const kernel *variants_pick_prefill_attention(const variants_basis *v, const variants_heads *h,
                                              uint32_t tokens, uint32_t start);

/* Many products of one token in one launch, and all of a time mix in one: NULL where a launch for
 * each is better. */
const kernel *variants_pick_mixed(const variants_basis *v, model_fusion f, uint32_t tokens);
const kernel *variants_pick_time_mix_token(const variants_basis *v, model_fusion f,
                                           uint32_t tokens);

/* The kernel of an op that has one for a device whose threads run alone, and one for a GPU. The
 * shape is as op.dims says. */
const kernel *variants_pick_alone(const variants_basis *v, const op *o, shape s);
/* The published fusion, in which every row computes the norm; NULL: not for this format. */
const kernel *variants_pick_row_fused(const weight_format *f);
/* y + (x - y) * f */
const kernel *variants_pick_reversed_lerp(void);

/* A norm fused with what follows it: NULL where separate launches are better or the
 * format has no such kernel. */
const kernel *variants_pick_qkv(const variants_basis *v, const weight_format *f,
                                const variants_heads *h, uint32_t in_dim, uint32_t tokens);
const kernel *variants_pick_gate_up(const variants_basis *v, const weight_format *f,
                                    uint32_t out_dim, uint32_t in_dim, uint32_t tokens);
const kernel *variants_pick_normed_matvec(const variants_basis *v, const weight_format *f,
                                          uint32_t out_dim, uint32_t in_dim);

/* Three matrices with one x in one launch, of which the third may have no rows: NULL where three
 * launches are better. */
const kernel *variants_pick_batched(const variants_basis *v, const uint32_t rows[3],
                                    uint32_t in_dim);
