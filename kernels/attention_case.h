/* attention_case: what the record functions, oracles and cases of decode_attention and
 * prefill_attention share. Both bind q, the caches, out and the three sizes to buffers 0 to 6, and
 * the scale to buffer 8. */
#pragma once

#include "harness/check/kernel_case.h"

enum { ATTENTION_MAX_HEAD_DIM = 256 };

typedef struct {
    uint32_t n_tokens, n_heads, n_kv_heads, head_dim;
    uint64_t rows_seen; /* rows the last token sees, as far as known at recording */
    size_t rows;        /* rows the caches have; set by attention_check, and so is */
    elem cache;         /* what they hold */
} attention_plan;

/* Kernels with a format, which is F16, have caches of it; the others have floats. */
elem cache_get_elem(const kernel *k);

/* For op.accepts. */
bool attention_accepts_heads(uint32_t heads, uint32_t kv_heads, err *e);

/* Are the buffers those of the plan? Cuts q and out down to what the launch uses. */
bool attention_check(const kernel *k, attention_plan *plan, slice *q, slice k_cache, slice v_cache,
                     slice *out, err *e);

/* Buffers 0 to 6. */
void attention_bind(launch *l, slice q, slice k_cache, slice v_cache, slice out,
                    const attention_plan *plan);

/* Bytes of n rows of both caches. */
uint64_t attention_count_bytes(const attention_plan *plan, uint64_t rows);

/* Asks the oracle, with caches of halves as the floats that they are equal to. */
void attention_widen(const launch *l, oracle_io *io, oracle_fn judge);

/* The oracle of a launch of n_tokens queries of which the first stands at `start`. */
void attention_judge(oracle_io *io, uint32_t n_tokens, uint32_t start);

/* 1 / sqrt(head_dim), as in models. */
float attention_get_scale(uint32_t head_dim);

/* A cache of `rows` rows drawn from the case's distribution, followed by one of NaN: a kernel that
 * merely multiplies it by zero is caught. From negative numbers, those in "k_cache" are positive and
 * larger: every score is below -1e30. Halves are drawn likewise, and scaled to what they can hold. */
bool case_input_cache(kernel_case *c, const char *label, uint32_t rows, uint32_t row_dim,
                      slice *out, err *e);
