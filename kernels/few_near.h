// few_near: y = W x and y += W x for a few tokens and a large Q4_0 matrix of at most 4096 columns,
// multiplied as matrices (few.h), of rows that are brought near (near.h). Needs few_stream.h.
#include "halves.h"

#include "near.h"

// What is needed in the end: in registers, it would find no room beside the loop.
struct few_near_kept {
    ulong first; // of y
    uint out_dim, rows, tokens;
};

// A threadgroup of 16 simdgroups computes its share of the rows, at most 32, of 8 tokens, each from
// every sixteenth 64 columns. Two of them, of this launch and of the next, are to find room on a
// core: hence 1024.
//
// Every core needs all values of x. The weights of the next launch are on the same way, and come
// soon enough if they begin later: after a pause, or when there is no launch before this one to
// wait for.
template <bool accumulate> [[max_total_threads_per_threadgroup(1024)]] kernel void matvec_few_near(
    device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
    device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
    constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
    constant uint &rows [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
    uint2 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    enum : uint { S = 16, ROWS = 32, TOKENS = 8, WIDE = 40 }; // WIDE: tokens are in different banks
    typedef near_rows<ROWS, 144, 1> near_type;
    typedef halves_or_floats<HAS_HALVES_16X8X16>::type products;
    threadgroup float shared[S * TOKENS * WIDE];
    threadgroup float scratch[S * products::memory + 1];
    threadgroup few_near_kept kept;
    threadgroup atomic_uint is_under_way;
    const near_share share(rows, out_dim, group.x, groups.x);
    const uint row_quads = in_dim / 256 * 9;
    const uint first = group.y * TOKENS;
    const uint count = min(batch - first, uint(TOKENS));
    const uint last = in_dim / 64 - 1;
    x += size_t(first) * in_dim;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    if (thread_index == 0) {
        near.begin(share.count);
        atomic_store_explicit(&is_under_way, 0u, memory_order_relaxed);
        kept.first = ulong(first) * out_dim + share.first;
        kept.out_dim = out_dim;
        kept.rows = share.count;
        kept.tokens = count;
    }
    near_expect_values(x, count * in_dim, group.x, groups.x, thread_index);
    const uint place = few_matrices::get_row(lane);
    const uint pair = few_matrices::get_pair(lane);
    const uint token = place / 2 + place % 2 * 4; // the two of its sums are pair and pair + 4
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device const float *at = // of a turn
        x + size_t(min(token, count - 1)) * in_dim + 4 * pair + 64 * min(sg, last);
    const uint turns = sg > last ? 0 : (last - sg) / S + 1;
    EARLY_NEXT();
    if (sg == 0) {
        NEAR_PAUSE(3000, &is_under_way);
        near.copy(share.count, lane);
    }
    EARLY_COPIES(1);
    if (thread_index == 32)
        atomic_store_explicit(&is_under_way, 1u, memory_order_relaxed);
    products p(in_dim + lane, scratch + sg * uint(products::memory));
    float sums[4][2];
    few_values now;
    now.load(at, 0);
    near.wait();
    for (;;) {
        typename near_type::row own[4];
        for (uint i = 0; i < 4; i++) {
            own[i] = near.get_row(near_type::get_slot(i, place), share.count) + 9 * sg;
            sums[i][0] = 0.0f;
            sums[i][1] = 0.0f;
        }
        for (uint left = turns; left > 0; left--) {
            for (uint b = 0; b < 2; b++) {
                p.take(now.v[b]);
                if (left > 1)
                    now.load_block(at, S, b);
                // Before the barrier: after it, compilers would put the loads next to what needs
                // them.
                TOGETHER();
                few_add(p, own, b, pair, lane, sums);
                TOGETHER();
            }
            for (uint i = 0; i < 4; i++)
                own[i] += 9 * S;
            at += 64 * S;
        }
        if (!p.is_wrong())
            break;
        at -= 64 * S * turns;
        p.set_power(at, 64 * S, turns);
        now.load(at, 0);
    }
    const uint me = LANE_AGAIN(lane);
    threadgroup float *own_sums =
        shared + (sg * TOKENS + few_matrices::get_pair(me)) * WIDE + few_matrices::get_row(me);
    p.finish(sums, me);
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 2; j++)
            own_sums[4 * j * WIDE + 8 * i] = sums[i][j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg < kept.tokens && me < kept.rows) {
        float sum = 0.0f;
        for (uint team = 0; team < S; team++)
            sum += shared[(team * TOKENS + sg) * WIDE + me];
        put<accumulate>(y + kept.first + size_t(sg) * kept.out_dim + me,
                        sum * products::get_unit());
    }
}

template [[host_name("multi_token_matvec_q4_0_tiled_near")]] kernel decltype(matvec_few_near<false>)
    matvec_few_near<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_near")]] kernel decltype(matvec_few_near<true>)
    matvec_few_near<true>;
