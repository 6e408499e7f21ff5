/* variants: which kernel of an op a model uses, by the format of the weights, the device and how many
 * tokens go through together. The only place that prefers one variant to another. */
#pragma once

#include "harness/check/op.h"
#include "harness/device/device.h"
#include "model.h"
#include "reference/quant.h"

/* y = W x, or y += W x, for W (out_dim, in_dim). NULL with e set: no kernel reads this format. */
const kernel *variants_pick_matvec(const device_facts *d, const weight_format *f, bool accumulates,
                                   uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e);
const kernel *variants_pick_embedding(const weight_format *f, err *e);
const kernel *variants_pick_rmsnorm(const device_facts *d, uint32_t tokens);
const kernel *variants_pick_decode_attention(const device_facts *d, uint32_t head_dim);
/* Into how many ranges of keys the attention of one token is cut, by the rows of the cache; 1: it is
 * one launch. */
uint32_t variants_pick_attention_ranges(const device_facts *d, uint32_t head_dim, size_t rows);
const kernel *variants_pick_prefill_attention(const device_facts *d, uint32_t head_dim,
                                              uint32_t tokens);

/* y = activation(W x + bias) */
const kernel *variants_pick_activated(const device_facts *d, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e);

/* Many products of one token in one launch, and all of a time mix in one: NULL where a launch for
 * each is better. */
const kernel *variants_pick_mixed(const device_facts *d, model_fusion f, uint32_t tokens);
const kernel *variants_pick_time_mix_token(const device_facts *d, model_fusion f, uint32_t tokens);

/* The kernel of an op that has one for a device whose threads run alone, and one for a GPU. */
const kernel *variants_pick_alone(const device_facts *d, const op *o);
/* The published fusion, in which every row computes the norm; NULL: not for this format. */
const kernel *variants_pick_row_fused(const weight_format *f);
/* y + (x - y) * f */
const kernel *variants_pick_reversed_lerp(void);

/* A norm fused with what follows it: NULL where separate launches are better or the
 * format has no such kernel. */
const kernel *variants_pick_qkv(const device_facts *d, const weight_format *f, uint32_t tokens);
const kernel *variants_pick_gate_up(const device_facts *d, const weight_format *f, uint32_t tokens);
const kernel *variants_pick_normed_matvec(const device_facts *d, const weight_format *f);

/* Three matrices with one x in one launch, instead of three launches. */
const kernel *variants_pick_batched(const device_facts *d);
