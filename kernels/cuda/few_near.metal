// few_near: y = W x and y += W x for a few tokens and a large Q4_0 matrix of at most 4096 columns:
// rows in shared memory by bulk copies (TMA, bulk_rows.h), multiplied by tensor cores as halves
// (mma_halves.h), by clusters of two thread blocks.
//
// Every SM needs all values of x for its rows, more bytes than all weights. So each of the two blocks
// of a cluster takes half of the columns of the rows of both, and in the end they exchange their sums
// through distributed shared memory (DSMEM): half of x, and half of what there is to do with it.
#include <metal_stdlib>
using namespace metal;

#include "../product/few_words.h"
#include "../product/row.h"
#include "bulk_rows.h"
#include "mma_halves.h"

enum : uint { P = cuda::cluster_size };

// The rows of a cluster, of each the columns that are this block's: at most R, of at most `most`
// uint4s. After each there is a uint4, so that the same words of eight rows are in different banks.
// After all of them there is room for sums: of each of 16 warps and 8 tokens, `wide` floats.
struct few_near_rows {
    enum : uint { R = 32 * P, turns = 4 / P, wide = R + 8, sums = 16 * 8 * wide };
    enum : uint { most = 144 / P, stride = most + 1 };
    // Those of a lane, 8 apart.
    struct lane_rows {
        threadgroup const uint *first;
        METAL_FUNC threadgroup const uint *operator[](uint i) const {
            return first + i * (8 * 4 * stride);
        }
    };
    threadgroup uint4 *memory;

    METAL_FUNC few_near_rows() {
        memory = (threadgroup uint4 *)cuda::get_shared_memory<16 * R * stride + 4 * sums>();
    }
    METAL_FUNC void copy(uint i, device const uint4 *row, uint quads) const {
        cuda::copy_bulk(memory + i * stride, row, 16 * quads);
    }
    // From a word of the columns on. Past the last row there is nothing of use, but it may be read.
    METAL_FUNC lane_rows get(uint lane, uint word) const {
        const uint place = few_matrices::get_row(lane);
        const lane_rows found = {(threadgroup const uint *)(memory + place * stride) + word};
        return found;
    }
    METAL_FUNC threadgroup float *get_sums() const {
        return (threadgroup float *)(memory + R * stride);
    }
};

// The values of a lane, turn by turn: of 64 columns, of 64 that are S times 64 further, and so on.
// There are two turns. The second one is on its way from the beginning on, without a register
// (cp.async), to `stage`, where there is room for the 512 floats of a warp. All clusters begin at the
// same time, and memory hands out the same values to one after another: hence `late`, which is 1 for
// half of them, whose first turn is the second one.
template <uint S> struct few_near_values {
    few_values now;

    METAL_FUNC void start(device const float *at, uint turns, uint late,
                          threadgroup float4 *stage) {
        now.load(at + 64 * S * late, 0);
        for (uint i = 0; turns > 1 && i < 4; i++)
            cuda::copy_async(stage + 32 * i, at + 64 * S * (1 - late) + 16 * i);
    }
    METAL_FUNC void begin(uint turn, uint b, threadgroup const float4 *stage) {
        if (turn == 0)
            return;
        if (b == 0)
            cuda::wait_for_own_copies();
        for (uint i = 0; i < 2; i++)
            now.v[b][i] = stage[64 * b + 32 * i];
    }
};

// What a warp of S multiplies. index: of the thread.
template <uint S> struct few_near_work {
    device const float *at;
    uint turns, late;
    few_near_values<S> values;

    // x: the threadgroup's columns of its first token, `chunks` times 64 of them.
    METAL_FUNC few_near_work(device const float *x, uint in_dim, uint tokens, uint chunks,
                             uint is_late, uint index) {
        const uint place = few_matrices::get_row(index % 32);
        const uint token = place / 2 + place % 2 * 4; // the two of its sums are pair and pair + 4
        turns = (chunks + S - 1 - index / 32) / S;
        late = few_near_rows::turns == 2 && turns == 2 ? is_late : 0;
        at = x + size_t(min(token, tokens - 1)) * in_dim + 4 * few_matrices::get_pair(index % 32) +
             (turns > 0 ? index / 32 * 64 : 0);
    }
    // Sums have their place later.
    static METAL_FUNC threadgroup float4 *get_stage(threadgroup float *all, uint index) {
        return (threadgroup float4 *)(all + index / 32 * uint(8 * few_near_rows::wide)) +
               index % 32;
    }
    METAL_FUNC void start(threadgroup float *all, uint index) {
        values.start(at, turns, late, get_stage(all, index));
    }

    // After start().
    template <typename Products, uint N>
    METAL_FUNC void multiply(thread Products &p, few_near_rows near, threadgroup float *all,
                             uint index, thread float (&sums)[N][2]) {
        for (uint i = 0; i < N; i++) {
            sums[i][0] = 0.0f;
            sums[i][1] = 0.0f;
        }
        for (uint turn = 0; turn < few_near_rows::turns; turn++) {
            if (turn >= turns)
                break;
            const uint again = cuda::read_thread_index();
            const uint lane = again % 32;
            const few_near_rows::lane_rows rows =
                near.get(lane, 9 * (again / 32 + S * (turn ^ late)));
            for (uint b = 0; b < 2; b++) {
                values.begin(turn, b, get_stage(all, again));
                p.take(values.now.v[b]);
                // Before the barrier: after it, compilers would put the loads next to what needs
                // them.
                cuda::sync_warp();
                few_add(p, rows, b, few_matrices::get_pair(lane), lane, sums);
                cuda::sync_warp();
            }
        }
    }
};

// What is needed after the loop: in registers, it would find no room beside it.
struct few_near_kept {
    device const float *x; // of its columns of the first token
    ulong first;           // of y
    uint chunks, out_dim, rows, tokens;
    uint rank; // in the cluster
};

// A cluster of two blocks of 16 warps computes its share of the rows, at most 64, of 8 tokens. A warp
// takes every sixteenth 64 columns of its block's half of them. Two blocks, of this launch and of the
// next, are to find room on an SM: hence 1024.
//
// The weights of the next launch come the same way as x, and come soon enough if they begin later:
// after a pause, or when there is no launch before this one to wait for. All warps but the first copy
// some of the rows: a copy takes a while to begin.
template <bool accumulate> [[max_total_threads_per_threadgroup(1024)]] kernel void matvec_few_near(
    device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
    device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
    constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    static_assert(P == 2, "half of the warps add what is the other block's");
    enum : uint { S = 16, TOKENS = 8, COPIERS = S - 1 };
    enum : uint { N = few_near_rows::R / 8 };
    enum : uint { WIDE = few_near_rows::wide }; // tokens in different banks
    threadgroup float received[32 * TOKENS];
    threadgroup few_near_kept kept;
    threadgroup atomic_uint is_under_way;
    const uint sharers = groups.x / P;
    const near_share share(out_dim, group.x / P, sharers);
    const near_share columns(in_dim / 256, group.x % P, P); // 256 each
    const uint row_quads = in_dim / 256 * 9;
    const uint first = group.y * TOKENS;
    const uint count = min(batch - first, uint(TOKENS));
    x += size_t(first) * in_dim;
    device const uint4 *from =
        (device const uint4 *)w + size_t(share.first) * row_quads + columns.first * 9;
    const uint chunks = 4 * columns.count;
    device const float *part = x + (chunks > 0 ? 256 * columns.first : 0);
    const few_near_rows near;
    if (thread_index == 0) {
        cuda::init_mbarrier();
        cuda::expect_bytes(columns.count * (9 * 16) * share.count);
        cuda::expect_cluster_bytes(sizeof received);
        atomic_store_explicit(&is_under_way, 0u, memory_order_relaxed);
        kept.x = part;
        kept.first = ulong(first) * out_dim + share.first;
        kept.chunks = chunks;
        kept.out_dim = out_dim;
        kept.rows = share.count;
        kept.tokens = count;
        kept.rank = group.x % P;
    }
    near_expect_values(x, count * in_dim, group.x, groups.x, thread_index);
    cuda::arrive_at_cluster();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    cuda::launch_dependents();
    if (sg > 0) {
        const uint i = sg - 1 + COPIERS * lane;
        device const uint4 *row = from + size_t(i) * row_quads;
        cuda::pause(600, &is_under_way);
        if (i < share.count && columns.count > 0)
            near.copy(i, row, 9 * columns.count);
    }
    cuda::wait_for_cluster();
    cuda::wait_for_launch<1>();
    if (thread_index == 0)
        atomic_store_explicit(&is_under_way, 1u, memory_order_relaxed);
    threadgroup float *all = near.get_sums();
    few_near_work<S> work(part, in_dim, count, chunks, group.x / P % 2, thread_index);
    work.start(all, thread_index);
    cuda::wait_for_copies();
    float sums[N][2];
    few_halves<true> p;
    work.multiply(p, near, all, thread_index, sums);
    const uint again = cuda::read_thread_index();
    const uint me = again % 32;
    const uint team = again / 32;
    if (p.is_wrong()) {
        few_near_work<S> same(kept.x, in_dim, kept.tokens, kept.chunks, 0, again);
        few_halves<false> q;
        q.set_power(same.at, 64 * S, same.turns);
        same.start(all, again);
        same.multiply(q, near, all, again, sums);
        q.finish(sums, me);
    }
    threadgroup float *own_sums =
        all + (team * TOKENS + few_matrices::get_pair(me)) * WIDE + few_matrices::get_row(me);
    for (uint i = 0; i < N; i++)
        for (uint j = 0; j < 2; j++)
            own_sums[4 * j * WIDE + 8 * i] = sums[i][j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint rank = kept.rank;
    const uint owner = team < TOKENS ? rank : P - 1 - rank;
    const uint row = 32 * owner + me;
    const bool is_there = team < kept.tokens && row < kept.rows;
    device float *to = y + kept.first + size_t(team) * kept.out_dim + row;
    float sum = 0.0f;
    for (uint i = 0; i < S; i++)
        sum += all[(i * TOKENS + team % TOKENS) * WIDE + row];
    if (owner != rank)
        cuda::store_to_rank(received + team % TOKENS * 32 + me, sum, owner);
    else if (team < TOKENS) {
        cuda::wait_for_cluster_bytes();
        sum += received[team * 32 + me];
        if (is_there)
            put<accumulate>(to, sum * few_halves<true>::get_unit());
    }
}

template [[host_name("multi_token_matvec_q4_0_tiled_near")]] kernel decltype(matvec_few_near<false>)
    matvec_few_near<false>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_near")]] kernel decltype(matvec_few_near<true>)
    matvec_few_near<true>;
