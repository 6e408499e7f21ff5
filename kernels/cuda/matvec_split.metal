// matvec_split: y = W x, y += W x and y = max(W x, 0)^2 for many tokens and up to three matrices, x in two
// halves (split_halves.metal): tiles of 128 rows and 64 or 128 tokens multiplied by warpgroups (wgmma) with
// sums in floats.
//
// Weights are exact as halves (halves_formats.h), so the sum of the columns with the same scale, 32 of them or 16,
// is as good as one in floats. Where they have minima, those of 256 columns, 8 of them, are one more
// product, with the means of x in two halves.
//
// A warpgroup computes 64 rows. Weights come from shared memory, are decoded and stay in registers; x is
// read from shared memory by the tensor cores.
#include <metal_stdlib>
using namespace metal;

#include "../activations.h"
#include "../prefetch.h"
#include "../opaque.h"
#include "../product/row.h"
#include "bulk_rows.h"
#include "halves_formats.h"

// The chunks of a lane's rows, lane / 4 and 8 after it of a warp's.
template <typename F> struct group_rows {
    halves_row at;
    uint2 numbers; // of both in their matrix
    uint part;     // of the lane

    METAL_FUNC typename F::row find(uint r) const {
        return F::find(at + 8 * r * (4 * F::stride), numbers[r]);
    }
    // 32 columns, 16 each: both rows of a lane's first and third, and of the others.
    METAL_FUNC void take(uint pair, uint b, uint thousand, thread uint (&w)[2][4]) const {
        for (uint r = 0; r < 2; r++) {
            uint pairs[2][2];
            F::take(find(r), pair, b, part, thousand, pairs);
            for (uint i = 0; i < 4; i++)
                w[i / 2][i % 2 * 2 + r] = pairs[i / 2][i % 2];
        }
    }
    METAL_FUNC float2 get_scales(uint pair, uint b, uint s) const {
        return float2(F::scale(find(0), pair, b, s) * F::unit(find(0)),
                      F::scale(find(1), pair, b, s) * F::unit(find(1)));
    }
    // Those of the chunk, for the first halves of the means, and for the second ones.
    METAL_FUNC void take_minima(uint thousand, thread uint (&w)[4]) const {
        for (uint r = 0; r < 2; r++)
            w[r] = w[2 + r] = F::minima(find(r), part, thousand);
    }
    METAL_FUNC float2 get_least() const {
        return -32.0f * float2(F::least(find(0)), F::least(find(1)));
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
    // Product u, of part u % S of the S of a block: of each column both halves.
    template <uint u, uint S>
    METAL_FUNC void start(thread const uint (&w)[2][4], threadgroup const uint4 *x) {
        const ulong rows = cuda::describe_rows(x) + 2 * (u % S);
        cuda::begin_products();
        cuda::multiply_group<false>(blocks[u % D], w[u % S], rows);
        for (uint i = S; i < 4; i += S)
            cuda::multiply_group<true>(blocks[u % D], w[(u % S + i) % 2], rows + 2 * i);
        cuda::close_products();
    }
    METAL_FUNC void start_minima(thread const uint (&w)[4], threadgroup const uint4 *means) {
        cuda::begin_products();
        cuda::multiply_group<false>(blocks[0], w, cuda::describe_short_rows(means));
        cuda::close_products();
    }
    template <uint u, uint left> METAL_FUNC void finish(float2 scales) {
        cuda::wait_for_products<left>(blocks[u % D]);
        for (uint i = 0; i < N; i++)
            at[i] = fma(scales[i / 2 % 2], blocks[u % D][i], at[i]);
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
                          uint tokens, bool is_squared, uint warp, uint rank, uint lane) const {
        for (uint i = 0; i < N; i++) {
            const uint token = i / 4 * 8 + 2 * (lane % 4) + i % 2;
            const uint row = lane / 4 + i / 2 % 2 * 8;
            if (!is_own<S>(i, warp, rank))
                continue;
            const float power = powers[min(token, tokens - 1)];
            const float sum = at[i] * power;
            const float value = is_squared ? activate(ACTIVATION_SQUARED_RELU, sum) : sum;
            if (token < tokens && row < rows)
                put<accumulate>(y + size_t(token) * out_dim + row, accumulate ? sum : value);
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

// ROWS and TOKENS: of a tile. D: products at a time, 1 or 2.
//
// A step of x, a pair of blocks, has for each of them 128 bytes of every token, as cuda::describe_rows wants them and split_halves
// stores them: bulk copies by one thread. (What threads copy must be shown to tensor cores by a fence that waits
// for all copies, also of later steps.) The last step of a chunk has the means, too. Of tokens past the end there is
// nothing, and their sums mean nothing.
template <typename F, uint ROWS, uint TOKENS, uint D> struct split_work {
    enum : uint {
        WARPS = ROWS / 16,
        EACH = F::pairs,   // steps of a chunk
        W = F::chunks,     // of weights in shared memory
        AHEAD = 2,         // steps of x that are on their way
        STEPS = AHEAD + 1, // of x in shared memory
        w_quads = ROWS * F::stride,
        block_quads = 8 * TOKENS,
        x_quads = 2 * block_quads + F::has_minima * 2 * TOKENS,
        quads = STEPS * x_quads + W * w_quads
    };
    static_assert(EACH * (W - 1) > AHEAD, "a chunk is there when its first block is decoded");

    threadgroup uint4 *all_x, *all_w;
    device const uint4 *w, *x;
    uint first_row, last_row, in_dim, first_chunk, chunks, steps, first_token, tokens, index;

    // Of a chunk in its matrix. Rows past the end are replaced by the last one.
    METAL_FUNC uint get_number(uint row, uint chunk) const {
        return min(first_row + row, last_row) * (in_dim / (64 * EACH)) + first_chunk + chunk;
    }
    METAL_FUNC void copy_rows(uint chunk) const {
        threadgroup uint4 *to = all_w + chunk % W * w_quads;
        const uint bytes = (last_row + 1) * (in_dim / (64 * EACH)) * F::block_bytes;
        for (uint i = index; i < ROWS * F::quads; i += 32 * WARPS) {
            const uint row = i / F::quads;
            const uint quad = i % F::quads;
            const uint number = get_number(row, chunk);
            threadgroup uint4 *place = to + row * F::stride + quad;
            if (F::block_bytes % 16 == 0) {
                cuda::copy_async(place, w + number * F::quads + quad);
            } else { // the last uint4 may end after the matrix: then threads copy what there is of it
                const uint at = number * (F::block_bytes / 2) / 8 + quad;
                if (16 * at + 16 <= bytes)
                    cuda::copy_async(place, w + at);
                else
                    for (uint j = 0; 16 * at + 2 * j < bytes; j++)
                        ((threadgroup ushort *)place)[j] = ((device const ushort *)(w + at))[j];
            }
        }
    }
    METAL_FUNC void copy_x(uint step, uint at) const {
        const uint present = min(tokens - first_token, TOKENS);
        const bool has_means = F::has_minima && step % EACH == EACH - 1;
        threadgroup uint4 *to = all_x + at * x_quads;
        cuda::expect_bytes((2 * 128 + (has_means ? 32 : 0)) * present, at);
        const uint block = 2 * (first_chunk * EACH + step);
        for (uint i = 0; i < 2; i++)
            cuda::copy_bulk(to + i * block_quads,
                            x + 8 * (size_t(block + i) * tokens + first_token), 128 * present, at);
        if (has_means) // after all blocks
            cuda::copy_bulk(to + 2 * block_quads,
                            x + 2 * (size_t(in_dim / 8 + block / 8) * tokens + first_token),
                            32 * present, at);
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
    METAL_FUNC group_rows<F> find(uint step) const {
        const uint row = index / 32 * 16 + index % 32 / 4;
        return {(halves_row)(all_w + step / EACH % W * w_quads + row * F::stride),
                uint2(get_number(row, step / EACH), get_number(row + 8, step / EACH)), index % 4};
    }

    // A pair of blocks, and the one that is multiplied after it.
    struct turn {
        group_rows<F> rows, next_rows;
        uint pair, next_pair, thousand;
        threadgroup const uint4 *x;
    };
    // Product u of the F::parts of each block of a pair. The block after is decoded while tensor cores multiply.
    template <uint u> METAL_FUNC void multiply(thread group_sums<TOKENS, D> &sums,
                                               thread uint (&own)[2][2][4],
                                               thread const turn &now) const {
        enum : uint { S = F::parts, b = u / S % 2, before = u > 0 ? u - 1 : 0 };
        sums.template start<u, S>(own[b], now.x + b * block_quads);
        if (u == 0)
            now.rows.take(now.pair, 1, now.thousand, own[1]);
        if (D == 2 && u > 0)
            sums.template finish<before, 1>(
                now.rows.get_scales(now.pair, before / S % 2, before % S));
        if (u == S)
            now.next_rows.take(now.next_pair, 0, now.thousand, own[0]);
        if (D == 1 || u == 2 * S - 1)
            sums.template finish<u, 0>(now.rows.get_scales(now.pair, b, u % S));
    }

    METAL_FUNC void add(thread group_sums<TOKENS, D> &sums) const {
        const uint thousand = opaque(0x64006400u, in_dim);
        uint own[2][2][4];
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
            const uint next = min(step + 1, steps - 1);
            turn now = {find(step),   find(next), step % EACH, next % EACH, thousand,
                        all_x + at * x_quads};
            if (step == 0)
                now.rows.take(0, 0, thousand, own[0]);
            cuda::wait_for_copies(at, parity);
            cuda::sync_warp(); // products are of whole warps
            multiply<0>(sums, own, now);
            multiply<1>(sums, own, now);
            if (F::parts == 2) {
                multiply<2>(sums, own, now);
                multiply<3>(sums, own, now);
            }
            if (F::has_minima && step % EACH == EACH - 1) {
                uint minima[4];
                now.rows.take_minima(thousand, minima);
                sums.start_minima(minima, now.x + 2 * block_quads);
                sums.template finish<0, 0>(now.rows.get_least());
            }
            parity ^= at == STEPS - 1 ? 1 : 0;
            at = at == STEPS - 1 ? 0 : at + 1;
        }
    }
};

// S: the threadgroups of a cluster, which share the columns, and in the end send each other their sums.
template <typename F, uint ROWS, uint TOKENS, uint S, uint D, bool accumulate>
METAL_FUNC void matvec_split(device const uint4 *const (&all)[3], device const uint4 *x,
                             device const float *powers, device float *const (&all_y)[3],
                             constant split_shape &shape, uint tokens, uint activation, uint2 group,
                             uint thread_index) {
    typedef split_work<F, ROWS, TOKENS, D> work_of;
    enum : uint { received = S == 1 ? 0 : (S - 1) * (TOKENS / 8) * work_of::WARPS / S * 32 };
    static_assert(received <= work_of::quads, "sums need no more room");
    const uint rank = group.x % S;
    const split_tile tile(shape, group.x / S, ROWS);
    const block_share share(shape.columns / (64 * work_of::EACH), rank, S);
    const uint first = group.y * TOKENS;
    work_of work;
    work.all_x = (threadgroup uint4 *)cuda::get_shared_memory<1024 + 16 * work_of::quads>();
    work.all_x += (0u - uint(cuda::get_shared_address(work.all_x))) % 1024 / 16;
    work.all_w = work.all_x + work_of::STEPS * work_of::x_quads;
    work.w = tile.choose(all);
    work.x = x;
    work.first_row = tile.first;
    work.last_row = tile.rows - 1;
    work.in_dim = shape.columns;
    work.first_chunk = share.first;
    work.chunks = share.count;
    work.steps = share.count * work_of::EACH;
    work.first_token = first;
    work.tokens = tokens;
    work.index = thread_index;
    if (S > 1 && thread_index == 0)
        cuda::expect_cluster_bytes<S>(16 * received);
    work.start_rows();
    PREFETCHED(7);
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
                                           powers + first, tile.rows, tile.rows - row, tokens - first,
                                           activation != ACTIVATION_NONE, warp, rank, lane);
}

#define SPLIT_KERNEL(name, rows_of, tokens_of, S, D, threads)                                      \
    template <typename F, bool accumulate>                                                         \
    [[kernel, max_total_threads_per_threadgroup(threads)]] void name(                              \
        device const typename F::block *wa [[buffer(0)]],                                          \
        device const typename F::block *wb [[buffer(1)]],                                          \
        device const typename F::block *wc [[buffer(2)]], device const uint4 *x [[buffer(3)]],     \
        device const float *powers [[buffer(4)]], device float *ya [[buffer(5)]],                  \
        device float *yb [[buffer(6)]], device float *yc [[buffer(7)]],                            \
        constant split_shape &shape [[buffer(8)]], constant uint &tokens [[buffer(9)]],            \
        constant uint &activation [[buffer(10)]], uint2 group [[threadgroup_position_in_grid]],    \
        uint thread_index [[thread_index_in_threadgroup]]) {                                       \
        device const uint4 *const w[3] = {(device const uint4 *)wa, (device const uint4 *)wb,      \
                                          (device const uint4 *)wc};                               \
        device float *const y[3] = {ya, yb, yc};                                                   \
        matvec_split<F, rows_of, tokens_of, S, D, accumulate>(w, x, powers, y, shape, tokens,      \
                                                              activation, group, thread_index);    \
    }

#define SPLIT_FORMAT(name, function, format)                                                       \
    MATVEC_KERNEL("matvec_split_" #format "_" name, function, halves_##format, false)               \
    MATVEC_KERNEL("matvec_split_" #format "_accumulate_" name, function, halves_##format, true)
#define SPLIT_GROUPS(name, function)                                                               \
    SPLIT_FORMAT(name, function, q4_0)                                                             \
    SPLIT_FORMAT(name, function, q8_0)                                                             \
    SPLIT_FORMAT(name, function, q4_k)                                                             \
    SPLIT_FORMAT(name, function, q5_k)                                                             \
    SPLIT_FORMAT(name, function, q6_k)

// Two threadgroups are to find room on a core where it says 512 threads instead of 256.
//                            rows tokens S  D  threads
SPLIT_KERNEL(split_64,         128,    64, 1, 1, 512)
SPLIT_KERNEL(split_128,        128,   128, 1, 2, 256)
SPLIT_KERNEL(split_64_4,       128,    64, 4, 1, 512)
SPLIT_KERNEL(split_64_8,       128,    64, 8, 1, 512)
SPLIT_KERNEL(split_64_one_per_sm,   128,    64, 1, 2, 256)
SPLIT_KERNEL(split_64_4_one_per_sm, 128,    64, 4, 2, 256)
SPLIT_KERNEL(split_64_8_one_per_sm, 128,    64, 8, 2, 256)

SPLIT_GROUPS("groups", split_64)
SPLIT_GROUPS("wide_groups", split_128)
SPLIT_GROUPS("quarters", split_64_4)
SPLIT_GROUPS("eighths", split_64_8)
SPLIT_FORMAT("groups", split_64_one_per_sm, f16)
SPLIT_FORMAT("wide_groups", split_128, f16)
SPLIT_FORMAT("quarters", split_64_4_one_per_sm, f16)
SPLIT_FORMAT("eighths", split_64_8_one_per_sm, f16)
