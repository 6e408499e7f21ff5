// few_near: y = W x and y += W x for a few tokens and a large Q4_0 matrix of at most 4096 columns,
// multiplied as matrices (few.h), of rows that are brought near (near.h). Needs few_stream.h.
#include "near.h"

// A threadgroup of 8 simdgroups computes its share of the rows, at most 32, of 8 tokens, each from every
// eighth 64 columns. Two of them, of this launch and of the next, are to find room on a core: hence 512.
template <bool accumulate> [[max_total_threads_per_threadgroup(512)]] kernel void matvec_few_near(
    device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
    device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
    constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
    constant uint &rows [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { S = 8 };
    typedef tile_sums<4, 2, 8, 4, S> Sums;
    typedef near_rows<Sums::rows, 144> near_type;
    threadgroup float memory[Sums::memory];
    threadgroup float scratch[S * few_matrices::memory + 1];
    const near_share share(rows, out_dim, group.x, groups.x);
    const uint row_quads = in_dim / 256 * 9;
    const uint first = group.y * Sums::tokens;
    const uint last = in_dim / 64 - 1;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    near.start(share.count, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Sums sums;
    const uint token = few_find_place(sums, memory, sg, lane);
    device const float *mine = x + size_t(min(first + token, batch - 1)) * in_dim + 4 * sums.column;
    typename near_type::row own[Sums::slots];
    EARLY_COPIES(1);
    few_values now, later;
    now.load(mine, min(sg, last));
    near.wait();
    for (uint i = 0; i < Sums::slots; i++)
        own[i] = near.get_row(min(sums.get_slot(i), share.count - 1)) + 9 * sg;
    for (uint chunk = sg; chunk <= last; chunk += S) {
        later.load(mine, min(chunk + S, last));
        // Before the barrier: after it, compilers would put the loads next to what needs them.
        simdgroup_barrier(mem_flags::mem_none);
        few_add(sums, own, now, in_dim, lane, scratch + sg * uint(few_matrices::memory));
        for (uint i = 0; i < Sums::slots; i++)
            own[i] += 9 * S;
        now = later;
    }
    sums.add_up();
    few_store<accumulate>(sums, y, share.first, share.first + share.count, first, batch, out_dim);
}

template [[host_name("multi_token_matvec_q4_0_tiled_near")]] kernel decltype(matvec_few_near<false>)
    matvec_few_near<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_near")]] kernel decltype(matvec_few_near<true>)
    matvec_few_near<true>;
