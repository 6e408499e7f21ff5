// attention_ranges_mma: attention_ranges_shared (kernels/decode_attention.metal) by tensor cores.
//
// With 8 queries per head of the cache attention_ranges_shared takes as long for a cache of halves as for
// one of floats: it multiplies, adds up and converts each value once per query. Here that is about a
// fifth of the instructions that an SM has time for while memory brings the rows.
//
// attention_merge remains a launch of its own. (H200, 1B at 32768 keys, tokens per second: 1062, in F16 1324; 1026
// and 1300 where the last thread block of a set of queries to arrive merges the ranges.)
#include <metal_stdlib>
using namespace metal;

#include "attention_mma.h"

// A thread block computes up to 8 of the queries that share a head of the cache for one range of keys: the
// first axis of the grid counts these sets of queries, the second the ranges. head_dim is 64 or 128: the
// record function refuses anything else.
template <typename T> [[kernel, max_total_threads_per_threadgroup(MMA_THREADS)]] void
attention_ranges_mma(ATTENTION_ARGUMENTS(T, kv_len), device float *log_sums [[buffer(9)]],
                     constant uint &ranges [[buffer(10)]],
                     uint2 group [[threadgroup_position_in_grid]], THREAD_PLACE) {
    const mma_memory memory;
    const uint sharing = n_heads / n_kv_heads;
    const uint sets = (sharing + MMA_QUERIES - 1) / MMA_QUERIES;
    const uint set = group.x % sets * MMA_QUERIES;
    const uint head = group.x / sets * sharing + set;
    attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    const uint each = (kv_len + ranges - 1) / ranges;
    const uint first = group.y * each;
    const uint at = group.y * n_heads + head;
    const mma_results r = {q + head * head_dim, out + size_t(at) * head_dim, log_sums + at,
                           min(sharing - set, uint(MMA_QUERIES))};
    if (first >= kv_len) {
        PREFETCHED(0); // only the scalars
        for (uint i = thread_index; i < r.queries * head_dim; i += MMA_THREADS)
            r.out[i] = 0.0f;
        if (thread_index < r.queries)
            r.log_sums[thread_index] = NO_SCORE;
        return;
    }
    h.keys += size_t(first) * h.stride;
    h.values += size_t(first) * h.stride;
    const uint count = min(each, kv_len - first), fresh = kv_len - 1 - first;
    if (head_dim == 64)
        mma_attend<T, 64>(h, r, count, fresh, memory, thread_index, sg, lane);
    else
        mma_attend<T, 128>(h, r, count, fresh, memory, thread_index, sg, lane);
}

KERNEL("attention_ranges_mma", attention_ranges_mma<float>)
KERNEL("attention_ranges_mma_f16", attention_ranges_mma<half>)
