// matvec_split: y = W x and y += W x for many tokens and up to three matrices, x in two halves
// (split_halves.metal): tiles of 128 rows and 64 or 128 tokens multiplied by warpgroups (wgmma) with
// sums in floats.
//
// Weights are exact as halves (halves_formats.h), so the sum of a block of 32 columns is as good as one in
// floats.
//
// A warpgroup computes 64 rows. Weights come from shared memory, are decoded and stay in registers; x is
// read from shared memory by the tensor cores.
#include <metal_stdlib>
using namespace metal;

#include "../early.h"
#include "../opaque.h"
#include "../product/row.h"
#include "bulk_rows.h"
#include "halves_formats.h"

enum : uint {
    CHUNK = 256, // columns of a row of W that are copied at a time
    PAIRS = 4,   // of blocks of a chunk
};

// A block of the rows of a warp: rows lane / 4 and 8 after it.
struct group_rows {
    uint at[2][4]; // 16 columns each: both rows of a lane's first and third, and of the others
    float scales[2];

    template <typename F>
    METAL_FUNC void take(threadgroup const uint *w, uint b, uint part, uint thousand) {
        for (uint r = 0; r < 2; r++) {
            threadgroup const uint *row = w + 8 * r * (PAIRS * F::words);
            uint pairs[2][2];
            F::take(row, b, part, thousand, pairs);
            for (uint i = 0; i < 4; i++)
                at[i / 2][i % 2 * 2 + r] = pairs[i / 2][i % 2];
            scales[r] = F::scale(row, b);
        }
    }
};

// The sums of a warp: 16 rows and all tokens, 8 at a time. A lane has rows lane / 4 and 8 after it,
// tokens 2 * (lane % 4) and 1 after it of each. D: blocks that are multiplied at a time.
template <uint TOKENS, uint D> struct group_sums {
    enum : uint { N = TOKENS / 2 };
    float at[N], blocks[D][N];

    METAL_FUNC void clear() {
        for (uint i = 0; i < N; i++)
            at[i] = 0.0f;
    }
    // Block b: of each column both halves.
    METAL_FUNC void start(uint b, thread const group_rows &w, threadgroup const uint4 *x) {
        const ulong rows = cuda::describe_rows(x);
        cuda::begin_products();
        cuda::multiply_group<false>(blocks[b % D], w.at[0], rows);
        for (uint i = 1; i < 4; i++)
            cuda::multiply_group<true>(blocks[b % D], w.at[i % 2], rows + 2 * i);
        cuda::close_products();
    }
    template <uint left> METAL_FUNC void finish(uint b, thread const float (&scales)[2]) {
        cuda::wait_for_products<left>(blocks[b % D]);
        for (uint i = 0; i < N; i++)
            at[i] = fma(scales[i / 2 % 2], blocks[b % D][i], at[i]);
    }

    // Every fourth or eighth threadgroup of a cluster of S has the sum of these four in the end.
    template <uint S> static METAL_FUNC bool is_own(uint i, uint warp, uint rank) {
        return S == 1 || (i / 4 + warp) % S == rank;
    }
    // Sends what is not the threadgroup's own to the one whose it is, and adds what it gets. `received`:
    // of S - 1 others, for a lane four sums of each.
    template <uint S, uint WARPS> METAL_FUNC void exchange(threadgroup float4 *received, uint warp,
                                                           uint rank, uint lane) {
        enum : uint { each = N / 4 * WARPS / S * 32 };
        for (uint i = 0; i < N; i += 4) {
            const uint owner = (i / 4 + warp) % S;
            if (owner != rank)
                cuda::store_to_rank(received + (rank < owner ? rank : rank - 1) * each +
                                        (i / 4 * (WARPS / S) + warp / S) * 32 + lane,
                                    float4(at[i], at[i + 1], at[i + 2], at[i + 3]), owner);
        }
        cuda::wait_for_cluster_bytes();
        for (uint i = 0; i < N; i += 4)
            if (is_own<S>(i, warp, rank))
                for (uint n = 0; n < S - 1; n++) {
                    const float4 more =
                        received[n * each + (i / 4 * (WARPS / S) + warp / S) * 32 + lane];
                    at[i] += more.x;
                    at[i + 1] += more.y;
                    at[i + 2] += more.z;
                    at[i + 3] += more.w;
                }
    }

    // y: of the first row of this warp and the first token; rows and tokens: what there is of them.
    template <bool accumulate, uint S>
    METAL_FUNC void store(device float *y, device const float *powers, uint out_dim, uint rows,
                          uint tokens, uint warp, uint rank, uint lane) const {
        for (uint i = 0; i < N; i++) {
            const uint token = i / 4 * 8 + 2 * (lane % 4) + i % 2;
            const uint row = lane / 4 + i / 2 % 2 * 8;
            if (!is_own<S>(i, warp, rank))
                continue;
            const float power = powers[min(token, tokens - 1)];
            if (token < tokens && row < rows)
                put<accumulate>(y + size_t(token) * out_dim + row, at[i] * power);
        }
    }
};

// Rows of three matrices, the last of which may have none, and columns of all.
struct split_shape {
    uint rows[3];
    uint columns;
};

// The rows of a tile: of one matrix, the first of which is `first`.
struct split_tile {
    uint which, first, rows;

    METAL_FUNC split_tile(constant split_shape &shape, uint tile, uint size) {
        const uint a = (shape.rows[0] + size - 1) / size;
        const uint b = (shape.rows[1] + size - 1) / size;
        which = tile < a ? 0 : tile < a + b ? 1 : 2;
        first = (tile - (which > 0 ? a : 0) - (which > 1 ? b : 0)) * size;
        rows = shape.rows[which];
    }
    template <typename T> METAL_FUNC T choose(thread const T (&all)[3]) const {
        return which == 0 ? all[0] : which == 1 ? all[1] : all[2];
    }
};

// ROWS and TOKENS: of a tile. B: blocks of a step of x. D: blocks that are multiplied at a time, 1 or 2. W:
// chunks of weights in shared memory.
//
// A step of x has for each block 128 bytes of every token, as cuda::describe_rows wants them and split_halves
// stores them: bulk copies by one thread. (What threads copy must be shown to tensor cores by a fence that waits
// for all copies, also of later steps.) Of tokens past the end there is nothing, and their sums mean nothing.
template <typename F, uint ROWS, uint TOKENS, uint B, uint D, uint W> struct split_work {
    enum : uint {
        WARPS = ROWS / 16,
        EACH = 2 * PAIRS / B, // steps of a chunk
        AHEAD = 2,            // steps of x that are on their way
        STEPS = AHEAD + 1,    // of x in shared memory
        row_words = PAIRS * F::words,
        row_quads = row_words / 4,
        w_quads = ROWS * row_quads,
        block_quads = 8 * TOKENS,
        x_quads = B * block_quads,
        quads = STEPS * x_quads + W * w_quads
    };
    static_assert(B % 2 == 0, "blocks are stored in pairs");
    static_assert(EACH * (W - 1) > AHEAD, "a chunk is there when its first block is decoded");

    threadgroup uint4 *all_x, *all_w;
    device const uint4 *w, *x; // from the first chunk and token on
    uint first_row, last_row, in_dim, chunks, steps, count, stride, index;

    // Rows past the end are replaced by the last one.
    METAL_FUNC void copy_rows(uint chunk) const {
        threadgroup uint4 *to = all_w + chunk % W * w_quads;
        for (uint i = index; i < w_quads; i += 32 * WARPS) {
            const uint row = min(first_row + i / row_quads, last_row);
            cuda::copy_async(to + i,
                             w + (row * (in_dim / CHUNK) + chunk) * row_quads + i % row_quads);
        }
    }
    METAL_FUNC void copy_x(uint step, uint at) const {
        const uint bytes = 128 * min(count, TOKENS);
        cuda::expect_bytes(B * bytes, at);
        for (uint i = 0; i < B; i++)
            cuda::copy_bulk(all_x + at * x_quads + i * block_quads,
                            x + size_t(B * step + i) * stride, bytes, at);
    }
    METAL_FUNC void start_rows() const {
        for (uint i = 0; i < W - 1; i++)
            if (i < chunks)
                copy_rows(i);
        for (uint i = 0; index == 0 && i < STEPS; i++)
            cuda::init_mbarrier(i);
    }
    METAL_FUNC void start_x() const {
        for (uint step = 0; index == 0 && step < AHEAD; step++)
            if (step < steps)
                copy_x(step, step);
        for (uint i = 0; i < AHEAD; i++)
            cuda::close_copies(); // those of rows are all in the first group
    }
    // Where the words of a lane's first row are.
    METAL_FUNC threadgroup const uint *find(uint step) const {
        return (threadgroup const uint *)(all_w + step / EACH % W * w_quads) +
               (index / 32 * 16 + index % 32 / 4) * row_words + step % EACH * (B / 2) * F::words;
    }

    METAL_FUNC void add(thread group_sums<TOKENS, D> &sums) const {
        const uint thousand = opaque(0x64006400u, in_dim);
        const uint part = index % 4;
        group_rows own[2];
        uint at = 0; // of the steps in shared memory
        uint parity = 0;
        for (uint step = 0; step < steps; step++) {
            cuda::wait_for_all_but<AHEAD - 1>();
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (index == 0 && step + AHEAD < steps)
                copy_x(step + AHEAD, at == 0 ? STEPS - 1 : at - 1);
            if (step % EACH == 0 && step / EACH + W - 1 < chunks)
                copy_rows(step / EACH + W - 1);
            cuda::close_copies();
            // Of the next step, too: they came before the barrier.
            threadgroup const uint *here = find(step);
            threadgroup const uint *there = find(min(step + 1, steps - 1));
            if (step == 0)
                own[0].template take<F>(here, 0, part, thousand);
            cuda::wait_for_copies(at, parity);
            cuda::sync_warp(); // products are of whole warps
            for (uint b = 0; b < B; b += 2) {
                threadgroup const uint4 *two = all_x + at * x_quads + b * block_quads;
                threadgroup const uint *pair = here + b / 2 * F::words;
                sums.start(0, own[0], two);
                own[1].template take<F>(pair, 1, part, thousand);
                if (D == 1)
                    sums.template finish<0>(0, own[0].scales);
                sums.start(1, own[1], two + block_quads);
                if (D == 2)
                    sums.template finish<1>(0, own[0].scales);
                own[0].template take<F>(b + 2 < B ? pair + F::words : there, 0, part, thousand);
                sums.template finish<0>(1, own[1].scales);
            }
            parity ^= at == STEPS - 1 ? 1 : 0;
            at = at == STEPS - 1 ? 0 : at + 1;
        }
    }
};

// S: the threadgroups of a cluster, which share the columns, and in the end send each other their sums.
template <typename F, uint ROWS, uint TOKENS, uint S, uint B, uint D, uint W, bool accumulate>
METAL_FUNC void matvec_split(device const uint4 *const (&all)[3], device const uint4 *x,
                             device const float *powers, device float *const (&all_y)[3],
                             constant split_shape &shape, uint tokens, uint2 group,
                             uint thread_index) {
    typedef split_work<F, ROWS, TOKENS, B, D, W> work_of;
    enum : uint { received = S == 1 ? 0 : (S - 1) * (TOKENS / 8) * work_of::WARPS / S * 32 };
    static_assert(received <= work_of::quads, "sums need no more room");
    const uint rank = group.x % S;
    const split_tile tile(shape, group.x / S, ROWS);
    const near_share share(shape.columns / CHUNK, rank, S);
    const uint first = group.y * TOKENS;
    work_of work;
    work.all_x = (threadgroup uint4 *)cuda::get_shared_memory<1024 + 16 * work_of::quads>();
    work.all_x += (0u - uint(cuda::get_shared_address(work.all_x))) % 1024 / 16;
    work.all_w = work.all_x + work_of::STEPS * work_of::x_quads;
    work.w = tile.choose(all) + share.first * work_of::row_quads;
    work.x = x + size_t(share.first) * (CHUNK / 32 * 8) * tokens + 8 * first;
    work.first_row = tile.first;
    work.last_row = tile.rows - 1;
    work.in_dim = shape.columns;
    work.chunks = share.count;
    work.steps = share.count * work_of::EACH;
    work.count = tokens - first;
    work.stride = 8 * tokens;
    work.index = thread_index;
    if (S > 1 && thread_index == 0)
        cuda::expect_cluster_bytes<S>(16 * received);
    work.start_rows();
    EARLY_LOADS(7);
    work.start_x();
    group_sums<TOKENS, D> sums;
    sums.clear();
    work.add(sums);
    const uint lane = thread_index % 32;
    const uint warp = thread_index / 32;
    if (S > 1) { // after all of the cluster have read what the sums replace
        cuda::release_to_cluster();
        cuda::wait_for_cluster();
        sums.template exchange<S, work_of::WARPS>((threadgroup float4 *)work.all_x, warp, rank,
                                                  lane);
    }
    const uint row = tile.first + 16 * warp;
    if (row < tile.rows)
        sums.template store<accumulate, S>(tile.choose(all_y) + size_t(first) * tile.rows + row,
                                           powers + first, tile.rows, tile.rows - row, work.count,
                                           warp, rank, lane);
}

#define SPLIT_KERNEL(name, rows_of, tokens_of, S, B, D, W, threads)                                \
    template <typename F, bool accumulate>                                                         \
    [[kernel, max_total_threads_per_threadgroup(threads)]] void name(                              \
        device const typename F::block *wa [[buffer(0)]],                                          \
        device const typename F::block *wb [[buffer(1)]],                                          \
        device const typename F::block *wc [[buffer(2)]], device const uint4 *x [[buffer(3)]],     \
        device const float *powers [[buffer(4)]], device float *ya [[buffer(5)]],                  \
        device float *yb [[buffer(6)]], device float *yc [[buffer(7)]],                            \
        constant split_shape &shape [[buffer(8)]], constant uint &tokens [[buffer(9)]],            \
        uint2 group [[threadgroup_position_in_grid]],                                              \
        uint thread_index [[thread_index_in_threadgroup]]) {                                       \
        device const uint4 *const w[3] = {(device const uint4 *)wa, (device const uint4 *)wb,      \
                                          (device const uint4 *)wc};                               \
        device float *const y[3] = {ya, yb, yc};                                                   \
        matvec_split<F, rows_of, tokens_of, S, B, D, W, accumulate>(w, x, powers, y, shape,        \
                                                                    tokens, group, thread_index);  \
    }

#define SPLIT_FORMAT(name, function, format)                                                       \
    MATVEC_KERNEL("matvec_split_" #format "_" name, function, halves_##format, false)               \
    MATVEC_KERNEL("matvec_split_" #format "_accumulate_" name, function, halves_##format, true)
#define SPLIT_GROUPS(name, function)                                                               \
    SPLIT_FORMAT(name, function, q4_0)                                                             \
    SPLIT_FORMAT(name, function, q8_0)

// Two threadgroups are to find room on a core where it says 512 threads and not 256.
//                       rows tokens S  B  D  W  threads
SPLIT_KERNEL(split_64,    128,    64, 1, 2, 1, 2, 512)
SPLIT_KERNEL(split_128,   128,   128, 1, 2, 2, 2, 256)
SPLIT_KERNEL(split_64_4,  128,    64, 4, 2, 1, 2, 512)
SPLIT_KERNEL(split_64_8,  128,    64, 8, 2, 1, 2, 512)

SPLIT_GROUPS("groups", split_64)
SPLIT_GROUPS("wide_groups", split_128)
SPLIT_GROUPS("quarters", split_64_4)
SPLIT_GROUPS("eighths", split_64_8)
