// few_near: y = W x and y += W x for a few tokens and a large Q4_0 matrix of at most 4096 columns,
// multiplied as matrices (few.h), of rows that are brought near (near.h). Needs few_stream.h.
#include "halves.h"

#include "near.h"

// A threadgroup of 16 simdgroups computes its share of the rows, at most 32, of 8 tokens, each from every
// sixteenth 64 columns. Two of them, of this launch and of the next, are to find room on a core: hence
// 1024.
template <bool accumulate> [[max_total_threads_per_threadgroup(1024)]] kernel void matvec_few_near(
    device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
    device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
    constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
    constant uint &rows [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { S = 16, ROWS = 32, TOKENS = 8, WIDE = 40 }; // WIDE: tokens are in different banks
    typedef near_rows<ROWS, 144, 1> near_type;
    typedef half_products<> products;
    threadgroup float shared[S * TOKENS * WIDE];
    threadgroup float scratch[S * products::memory + 1];
    const near_share share(rows, out_dim, group.x, groups.x);
    const uint row_quads = in_dim / 256 * 9;
    const uint first = group.y * TOKENS;
    const uint last = in_dim / 64 - 1;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    near.start(share.count, thread_index, 3000);
    near_expect_values(x + size_t(first) * in_dim, min(batch - first, uint(TOKENS)) * in_dim,
                       group.x, groups.x, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint place = few_matrices::get_row(lane);
    const uint pair = few_matrices::get_pair(lane);
    const uint token =
        place / 2 + place % 2 * 4; // so that the two of its sums are pair and pair + 4
    device const float *mine = x + size_t(min(first + token, batch - 1)) * in_dim + 4 * pair;
    EARLY_NEXT();
    EARLY_COPIES(1);
    products p(in_dim + lane, scratch + sg * uint(products::memory));
    float sums[4][2];
    few_values now;
    now.load(mine, min(sg, last));
    near.wait();
    for (;;) {
        typename near_type::row own[4];
        for (uint i = 0; i < 4; i++) {
            own[i] = near.get_row(place + 8 * i, share.count) + 9 * sg;
            sums[i][0] = 0.0f;
            sums[i][1] = 0.0f;
        }
        for (uint chunk = sg; chunk <= last; chunk += S) {
            for (uint b = 0; b < 2; b++) {
                p.take(now.v[b][0], now.v[b][1]);
                if (chunk + S <= last)
                    now.load_block(mine, chunk + S, b);
                // Before the barrier: after it, compilers would put the loads next to what needs them.
                TOGETHER();
                for (uint i = 0; i < 4; i += 2) {
                    float turn[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
                    p.add(q4_0_get_word(own[i], b, pair), q4_0_get_word(own[i + 1], b, pair), turn,
                          lane);
                    for (uint r = 0; r < 2; r++) {
                        const float scale = near_half(own[i + r], 9 * b);
                        sums[i + r][0] = fma(scale, turn[r][0], sums[i + r][0]);
                        sums[i + r][1] = fma(scale, turn[r][1], sums[i + r][1]);
                    }
                }
                TOGETHER();
            }
            for (uint i = 0; i < 4; i++)
                own[i] += 9 * S;
        }
        if (!p.is_to_repeat(mine, sg, S, last))
            break;
        now.load(mine, min(sg, last));
    }
    p.finish(sums, lane);
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 2; j++)
            shared[(sg * TOKENS + pair + 4 * j) * WIDE + place + 8 * i] = sums[i][j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint row = thread_index % ROWS;
    const uint t = thread_index / ROWS;
    if (t < TOKENS && first + t < batch && row < share.count) {
        float sum = 0.0f;
        for (uint team = 0; team < S; team++)
            sum += shared[(team * TOKENS + t) * WIDE + row];
        put<accumulate>(y + size_t(first + t) * out_dim + share.first + row,
                        sum * products::get_unit());
    }
}

template [[host_name("multi_token_matvec_q4_0_tiled_near")]] kernel decltype(matvec_few_near<false>)
    matvec_few_near<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_near")]] kernel decltype(matvec_few_near<true>)
    matvec_few_near<true>;
