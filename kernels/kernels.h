/* kernels: every op, and how to record its launches.
 *
 * An op is a .metal file of kernels that compute the same thing, and a .c file that knows how to
 * launch them. Its record function is the only place that knows their bindings and geometry: the
 * model runner, the experiments and the op's own test cases all go through it. It checks sizes,
 * appends one launch (argmax: two) with bytes, flops and oracle filled in, and says no with an
 * error to what the kernels cannot do. k is the rung to use: op_find_kernel(&matvec_q4_0_op, "...")
 * or &matvec_q4_0_op.kernels[i].
 *
 * A `param` is a value, or a place in device memory that holds it and may change between plays. */
#ifndef ASSAY_KERNELS_H
#define ASSAY_KERNELS_H

#include "harness/op.h"

/* THE list (registry.c). */
extern const op *const registry[];
extern const size_t registry_count;
const op *registry_find_op(const char *name); /* NULL if there is none */
const kernel_row *registry_find_kernel(const char *name, const op **owner); /* owner may be NULL */

extern const op argmax_op, bandwidth_read_f32_op, buffer_copy_op, dispatch_overhead_noop_op,
    ffn_silu_op, kv_cache_copy_op, matvec_q4_0_op, matvec_q4_0_accumulate_op, residual_add_op,
    residual_add_inplace_op, rmsnorm_op, rope_apply_op, rope_apply_dual_op;

/* result (1, u32) = index of the largest of logits (n). pvals (f32) and pidx (u32) are scratch with
 * room for argmax_count_groups(n) each. Two launches. */
uint32_t argmax_count_groups(uint32_t n);
bool argmax_record(tape *t, slice logits, slice pvals, slice pidx, slice result, uint32_t n,
                   err *e);

/* out (groups) = sums of what each threadgroup read of data (n float4). */
bool bandwidth_read_f32_record(tape *t, const kernel_row *k, slice data, slice out, uint32_t n,
                               uint32_t groups, err *e);

/* dst (count) = src (count) */
bool buffer_copy_record(tape *t, const kernel_row *k, slice src, slice dst, uint32_t count, err *e);

/* counter (1, u32) += 1 */
bool dispatch_overhead_noop_record(tape *t, const kernel_row *k, slice counter, err *e);

/* out (n) = silu(gate) * up */
bool ffn_silu_record(tape *t, const kernel_row *k, slice gate, slice up, slice out, uint32_t n,
                     err *e);

/* Row row_idx of k_cache and v_cache (rows, kv_dim) = k_src, v_src (kv_dim). The slices of the
 * caches say how many rows there are. */
bool kv_cache_copy_record(tape *t, const kernel_row *k, slice k_src, slice v_src, slice k_cache,
                          slice v_cache, uint32_t kv_dim, param row_idx, err *e);

/* y (out_dim) = W x, or y += W x; W (out_dim, in_dim) in Q4_0, exactly. in_dim must be a multiple
 * of 32. */
bool matvec_q4_0_record(tape *t, const kernel_row *k, slice w, slice x, slice y, uint32_t out_dim,
                        uint32_t in_dim, err *e);
bool matvec_q4_0_accumulate_record(tape *t, const kernel_row *k, slice w, slice x, slice y,
                                   uint32_t out_dim, uint32_t in_dim, err *e);

/* out (n) = a + b, or a += b */
bool residual_add_record(tape *t, const kernel_row *k, slice a, slice b, slice out, uint32_t n,
                         err *e);
bool residual_add_inplace_record(tape *t, const kernel_row *k, slice a, slice b, uint32_t n,
                                 err *e);

/* y (rows, dim) = x / sqrt(mean(x^2) + eps) * w (dim). Only rmsnorm_rows takes more than one row.
 */
bool rmsnorm_record(tape *t, const kernel_row *k, slice x, slice w, slice y, uint32_t rows,
                    uint32_t dim, float eps, err *e);

/* qk (heads, head_dim), or q (nq, head_dim) and k (nk, head_dim), turned to position pos, in place.
 * head_dim must be even. */
bool rope_apply_record(tape *t, const kernel_row *k, slice qk, uint32_t heads, uint32_t head_dim,
                       param pos, float theta, err *e);
bool rope_apply_dual_record(tape *t, const kernel_row *k, slice q_heads, slice k_heads, uint32_t nq,
                            uint32_t nk, uint32_t head_dim, param pos, float theta, err *e);

#endif
