// kv_cache_copy: appends one position, or those of many tokens, to the key and value caches of a layer.
#include <metal_stdlib>
using namespace metal;

// A thread copies one float of k and one of v to row row_idx of the caches (rows, kv_dim);
// threadgroups have no role of their own. Moves 8 bytes in and 8 out per thread. One launch for
// both caches, because a launch costs more than the copy. Caches of halves are rounded to. row_idx is usually bound to device
// memory, so that a recorded token can be played at any position.
template <typename T>
kernel void kv_cache_copy(device const float *k_src [[buffer(0)]],
                          device const float *v_src [[buffer(1)]],
                          device T *k_dst [[buffer(2)]],
                          device T *v_dst [[buffer(3)]],
                          constant uint &kv_dim [[buffer(4)]],
                          constant uint &row_idx [[buffer(5)]],
                          uint i [[thread_position_in_grid]]) {
    if (i >= kv_dim)
        return;
    const size_t at = size_t(row_idx) * kv_dim + i;
    k_dst[at] = T(k_src[i]);
    v_dst[at] = T(v_src[i]);
}

template [[host_name("kv_cache_copy")]] kernel decltype(kv_cache_copy<float>) kv_cache_copy<float>;
template [[host_name("kv_cache_copy_f16")]] kernel decltype(kv_cache_copy<half>) kv_cache_copy<half>;

// A thread copies one float of k and one of v from sources (n_tokens, kv_dim) to the rows of the
// caches (rows, kv_dim) from row_idx on; threadgroups have no role of their own. Moves 8 bytes in
// and 8 out per thread. It exists for prefill: consecutive rows are contiguous, so this is
// kv_cache_copy with a longer row.
template <typename T>
kernel void kv_cache_copy_tokens(device const float *k_src [[buffer(0)]],
                                 device const float *v_src [[buffer(1)]],
                                 device T *k_dst [[buffer(2)]],
                                 device T *v_dst [[buffer(3)]],
                                 constant uint &kv_dim [[buffer(4)]],
                                 constant uint &row_idx [[buffer(5)]],
                                 constant uint &n_tokens [[buffer(6)]],
                                 uint i [[thread_position_in_grid]]) {
    if (i >= n_tokens * kv_dim)
        return;
    const size_t at = size_t(row_idx) * kv_dim + i;
    k_dst[at] = T(k_src[i]);
    v_dst[at] = T(v_src[i]);
}

template [[host_name("kv_cache_copy_tokens")]] kernel decltype(kv_cache_copy_tokens<float>) kv_cache_copy_tokens<float>;
template [[host_name("kv_cache_copy_tokens_f16")]] kernel decltype(kv_cache_copy_tokens<half>) kv_cache_copy_tokens<half>;
