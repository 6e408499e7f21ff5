/* ops: THE list of ops. Assay does not know an op that is not in it; one that is in it but has no
 * description (<name>_op in kernels/<name>.c) does not link. */
#pragma once

#include "harness/check/op.h"
#include "harness/measure/freshness.h"

#define OPS(X)                                                                                     \
    X(buffer_copy)                                                                                 \
    X(kv_cache_copy)                                                                               \
    X(kv_cache_copy_tokens)                                                                        \
    X(concat_buffers_2)                                                                            \
    X(concat_buffers_3)                                                                            \
    X(embedding_lookup)                                                                            \
    X(dequantize)                                                                                  \
    X(residual_add)                                                                                \
    X(residual_add_inplace)                                                                        \
    X(bias_add)                                                                                    \
    X(ffn_silu)                                                                                    \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(add_activate)                                                                                \
    X(affine)                                                                                      \
    X(lerp)                                                                                        \
    X(control_k_v7)                                                                                \
    X(layer_norm)                                                                                  \
    X(group_norm)                                                                                  \
    X(l2_norm)                                                                                     \
    X(token_shift)                                                                                 \
    X(layer_norm_shift)                                                                            \
    X(blit)                                                                                        \
    X(pack_kvakk)                                                                                  \
    X(time_mix_v7)                                                                                 \
    X(time_first_v7)                                                                               \
    X(time_mix_v7_prepare)                                                                         \
    X(time_mix_v7_finish)                                                                          \
    X(time_mix_v7_token)                                                                           \
    X(channel_mix_v7)                                                                              \
    X(softmax)                                                                                     \
    X(rmsnorm)                                                                                     \
    X(rope_apply)                                                                                  \
    X(rope_apply_dual)                                                                             \
    X(rope_apply_table)                                                                            \
    X(matvec)                                                                                      \
    X(matvec_activate)                                                                             \
    X(matvec_mixed)                                                                                \
    X(matvec_batched)                                                                              \
    X(split_halves)                                                                                \
    X(matvec_split)                                                                                \
    X(silu_matvec)                                                                                 \
    X(rmsnorm_matvec)                                                                              \
    X(qkv_rope_append)                                                                             \
    X(qkv_rope_append_f16)                                                                         \
    X(gate_up_silu)                                                                                \
    X(decode_attention)                                                                            \
    X(attention_ranges)                                                                            \
    X(attention_merge)                                                                             \
    X(prefill_attention)                                                                           \
    X(repetition_penalty)                                                                          \
    X(argmax)                                                                                      \
    X(decode_advance)                                                                              \
    X(bandwidth_read)                                                                              \
    X(bandwidth_copy)                                                                              \
    X(bandwidth_triad)                                                                             \
    X(compute_fma)                                                                                 \
    X(dispatch_overhead_noop)

#define DECLARE_OP(name) extern const op name##_op;
OPS(DECLARE_OP)
#undef DECLARE_OP

/* The ops that verbs work on, as an array (registry.c): these, or those of a user's project. */
extern const op *const *registry;
extern size_t registry_count;
void registry_use(const op *const *ops, size_t count); /* kept, not copied */
/* Adds to a made_of the descriptions of Assay's own ops with a kernel in one of these files. */
bool registry_add_made_of(char text[MADE_OF], const library *lib, const char *const *files,
                          size_t count, err *e);
/* Adds the files of all kernels that the library has handed out, their descriptions and the device. */
bool registry_add_used(char text[MADE_OF], const library *lib, err *e);
/* Those of the registry come first, but Assay's own are always found. NULL if there is none. */
const op *registry_find_op(const char *name);
const kernel *registry_find_kernel(const char *name, const op **owner); /* owner may be NULL */
