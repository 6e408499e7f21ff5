// arguments: parameters that many kernels have, so that each says only what is its own.
#pragma once

// An instance of a template, a kernel of that name: KERNEL("ffn_silu_f16", ffn_silu<half>)
#define KERNEL(name, ...) template [[host_name(name)]] kernel decltype(__VA_ARGS__) __VA_ARGS__;

// Where a thread is: in its simdgroup, in its threadgroup, and that of how many (teams.h).
#define SIMDGROUP_PLACE                                                                            \
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]
#define THREAD_PLACE uint thread_index [[thread_index_in_threadgroup]], SIMDGROUP_PLACE
#define TEAM_PLACE                                                                                 \
    THREAD_PLACE, uint threads [[threads_per_threadgroup]],                                        \
        uint sg_count [[simdgroups_per_threadgroup]]

// Products: w is of blocks; then what an activation needs.
#define MATVEC_ARGUMENTS(block)                                                                    \
    device const block *w [[buffer(0)]], device const float *x [[buffer(1)]],                      \
        device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],                       \
        constant uint &in_dim [[buffer(4)]]
#define ACTIVATION_ARGUMENTS                                                                       \
    device const float *bias [[buffer(5)]], constant uint &has_bias [[buffer(6)]],                 \
        constant uint &activation [[buffer(7)]]

// Products of a norm: of one matrix, of gate and up, and of queries, keys and values.
#define NORMED_ARGUMENTS                                                                           \
    device const float *x [[buffer(0)]], device const float *norm_w [[buffer(1)]]
#define NORMED_MATVEC_ARGUMENTS(block)                                                             \
    NORMED_ARGUMENTS, device const block *w [[buffer(2)]], device float *y [[buffer(3)]],          \
        constant uint &out_dim [[buffer(4)]], constant uint &in_dim [[buffer(5)]],                 \
        constant float &eps [[buffer(6)]]
#define GATE_UP_ARGUMENTS(block)                                                                   \
    NORMED_ARGUMENTS, device const block *w_gate [[buffer(2)]],                                    \
        device const block *w_up [[buffer(3)]], device float *out [[buffer(4)]],                   \
        constant uint &out_dim [[buffer(5)]], constant uint &in_dim [[buffer(6)]],                 \
        constant float &eps [[buffer(7)]]
#define QKV_ARGUMENTS(block, T)                                                                    \
    NORMED_ARGUMENTS, device const block *wq [[buffer(2)]], device const block *wk [[buffer(3)]],  \
        device const block *wv [[buffer(4)]], device float *q [[buffer(5)]],                       \
        device T *k_cache [[buffer(6)]], device T *v_cache [[buffer(7)]],                          \
        device const float *freqs [[buffer(8)]], constant uint &q_dim [[buffer(9)]],               \
        constant uint &kv_dim [[buffer(10)]], constant uint &in_dim [[buffer(11)]],                \
        constant uint &head_dim [[buffer(12)]], constant float &eps [[buffer(13)]],                \
        constant uint &pos [[buffer(14)]]
