/* registry: THE list of ops. A kernel that is not reached from here does not exist for Assay; an op
 * that is listed and missing does not link. */
#include "kernels.h"

#include <string.h>

const op *const registry[] = {
    &buffer_copy_op,
    &kv_cache_copy_op,
    &kv_cache_copy_tokens_op,
    &concat_buffers_2_op,
    &concat_buffers_3_op,
    &embedding_lookup_op,
    &dequantize_q4_0_op,
    &dequantize_q8_0_op,
    &residual_add_op,
    &residual_add_inplace_op,
    &bias_add_op,
    &ffn_silu_op,
    &rmsnorm_op,
    &rope_apply_op,
    &rope_apply_dual_op,
    &rope_apply_tokens_op,
    &rope_apply_table_op,
    &matvec_q4_0_op,
    &matvec_q4_0_accumulate_op,
    &multi_token_matvec_q4_0_op,
    &multi_token_matvec_q4_0_accumulate_op,
    &matvec_q4_1_op,
    &matvec_q4_1_accumulate_op,
    &multi_token_matvec_q4_1_op,
    &multi_token_matvec_q4_1_accumulate_op,
    &matvec_q5_0_op,
    &matvec_q5_0_accumulate_op,
    &multi_token_matvec_q5_0_op,
    &multi_token_matvec_q5_0_accumulate_op,
    &matvec_q5_1_op,
    &matvec_q5_1_accumulate_op,
    &multi_token_matvec_q5_1_op,
    &multi_token_matvec_q5_1_accumulate_op,
    &matvec_q8_0_op,
    &matvec_q8_0_accumulate_op,
    &multi_token_matvec_q8_0_op,
    &multi_token_matvec_q8_0_accumulate_op,
    &matvec_q4_k_op,
    &matvec_q4_k_accumulate_op,
    &multi_token_matvec_q4_k_op,
    &multi_token_matvec_q4_k_accumulate_op,
    &matvec_q5_k_op,
    &matvec_q5_k_accumulate_op,
    &multi_token_matvec_q5_k_op,
    &multi_token_matvec_q5_k_accumulate_op,
    &matvec_q6_k_op,
    &matvec_q6_k_accumulate_op,
    &multi_token_matvec_q6_k_op,
    &multi_token_matvec_q6_k_accumulate_op,
    &matvec_f16_op,
    &matvec_f16_accumulate_op,
    &multi_token_matvec_f16_op,
    &multi_token_matvec_f16_accumulate_op,
    &matvec_bf16_op,
    &matvec_bf16_accumulate_op,
    &multi_token_matvec_bf16_op,
    &multi_token_matvec_bf16_accumulate_op,
    &matvec_f32_op,
    &matvec_f32_accumulate_op,
    &multi_token_matvec_f32_op,
    &multi_token_matvec_f32_accumulate_op,
    &matvec_q4_0_batched_op,
    &silu_matvec_q4_0_accumulate_op,
    &rmsnorm_matvec_q4_0_op,
    &rmsnorm_matvec_f32_op,
    &decode_attention_op,
    &prefill_attention_op,
    &repetition_penalty_op,
    &argmax_op,
    &decode_advance_op,
    &bandwidth_read_f32_op,
    &bandwidth_read_f16_op,
    &bandwidth_read_q4_0_op,
    &bandwidth_read_high_occupancy_op,
    &bandwidth_copy_op,
    &bandwidth_triad_op,
    &dispatch_overhead_noop_op,
};
const size_t registry_count = sizeof registry / sizeof registry[0];

const op *registry_find_op(const char *name) {
    for (size_t i = 0; i < registry_count; i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}

const kernel *registry_find_kernel(const char *name, const op **owner) {
    for (size_t i = 0; i < registry_count; i++) {
        const kernel *k = op_find_kernel(registry[i], name);
        if (k) {
            if (owner)
                *owner = registry[i];
            return k;
        }
    }
    return NULL;
}
