// split_groups: y = W x and y += W x for many tokens and up to three matrices, x in two halves
// (split_halves.metal): tiles of 128 rows and 64 or 128 tokens multiplied by warpgroups (wgmma) with
// sums in floats.
//
// Weights of at most 8 bits are whole numbers times a scale per 32 columns, a block: as halves they
// are exact. So the sum of a block is as good as one in floats.
//
// Two warpgroups compute 64 rows each. Weights come from shared memory, are decoded and stay in
// registers; x is read from shared memory by the tensor cores. Of four neighbours split_halves stores both
// halves of all of them, 16 bytes: 8 of the 16 halves that a product takes of a token. Which columns
// meet in a product does not matter as long as both matrices agree: a lane takes the first and third
// of four neighbours, or the others, twice, for the first halves and for the second ones.
#include <metal_stdlib>
using namespace metal;

#include "../early.h"
#include "../formats/q4_0.h"
#include "../formats/q8_0.h"
#include "../opaque.h"
#include "../product/row.h"

enum : uint {
    ROWS = 128,
    THREADS = 256,
    CHUNK = 256, // columns of a row of W that are copied at a time
    STEP = 64,   // of x: two blocks
    STEPS = 3,   // of x in shared memory: one is multiplied, the others are on their way
};

// A format F:
//   F::words  of two blocks of a row. Chunks of them are whole uint4s, and the same words of 8 rows that
//             follow each other are in different banks
//   F::take   weights of block b as halves: pairs[i] of columns 4 * i, the first and third of four
//             or, if odd is 1, the others
//   F::scale  of block b
// Below the exponent of 1024, whose bits are `thousand`, a whole number is added to it.
struct group_q4_0 {
    typedef block_q4_0 block;
    enum : uint { words = 9 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint odd, uint thousand,
                                thread uint *pairs) {
        for (uint i = 0; i < 4; i++) {
            const uint bits = b ? row[5 + i] >> (8 * odd)
                                : cuda::permute(row[i], row[i + 1], 0x0402u + 0x0101u * odd);
            pairs[i] = cuda::subtract_halves((bits & 0x000F000Fu) | thousand, 0x64086408u); // 1032
            pairs[4 + i] = cuda::fma_halves((bits & 0x00F000F0u) | thousand, // 1024 + 16 n
                                            0x2C002C00u, 0xD480D480u);      // / 16 - 72
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[9 * b]);
    }
};

struct group_q8_0 {
    typedef block_q8_0 block;
    enum : uint { words = 17 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint odd, uint thousand,
                                thread uint *pairs) {
        for (uint i = 0; i < 8; i++) {
            const uint bits = b ? row[9 + i] >> (8 * odd)
                                : cuda::permute(row[i], row[i + 1], 0x0402u + 0x0101u * odd);
            pairs[i] = cuda::subtract_halves((bits & 0x00FF00FFu) ^ (thousand | 0x00800080u), // 128 more
                                             0x64806480u); // 1152
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[17 * b]);
    }
};

// Brings a chunk of the rows of a tile to shared memory. Rows past the end are replaced by the last
// one.
template <typename F>
METAL_FUNC void group_copy_rows(device const uint4 *w, threadgroup uint4 *to, uint first_row,
                                uint rows, uint in_dim, uint chunk, uint thread_index) {
    enum : uint { quads = CHUNK / STEP * F::words / 4, all = ROWS * quads };
    for (uint i = thread_index; i < all; i += THREADS) {
        const uint row = min(first_row + i / quads, rows - 1);
        cuda::copy_async(to + i, w + (row * (in_dim / CHUNK) + chunk) * quads + i % quads);
    }
}

// A step of x: two blocks, of each 128 bytes for a token, as cuda::describe_rows wants them.
template <uint TOKENS> struct group_step {
    enum : uint { block = 8 * TOKENS, all = 2 * block }; // uint4s

    // Tokens past the end are replaced by the last one.
    static METAL_FUNC void copy(device const uint4 *x, threadgroup uint4 *to, uint in_dim,
                                uint count, uint step, uint thread_index) {
        for (uint i = thread_index; i < all; i += THREADS) {
            const uint token = i / 16;
            const uint part = i % 16;
            cuda::copy_async(to + part / 8 * block + 8 * token + (part % 8 ^ token % 8),
                             x + min(token, count - 1) * (in_dim / 4) + 16 * step + part);
        }
    }
};

// A block of the rows of a warp: rows lane / 4 and 8 after it.
struct group_rows {
    uint at[4][4]; // 8 columns each: both rows of the first four, and of the others
    float scales[2];

    template <typename F>
    METAL_FUNC void take(threadgroup const uint *w, uint b, uint odd, uint thousand) {
        for (uint r = 0; r < 2; r++) {
            threadgroup const uint *row = w + 8 * r * (CHUNK / STEP * F::words);
            uint pairs[8];
            F::take(row, b, odd, thousand, pairs);
            for (uint i = 0; i < 8; i++)
                at[i / 2][i % 2 * 2 + r] = pairs[i];
            scales[r] = F::scale(row, b);
        }
    }
};

// The sums of a warp: 16 rows and all tokens, 8 at a time. A lane has rows lane / 4 and 8 after it,
// tokens 2 * (lane % 4) and 1 after it of each.
template <uint TOKENS> struct group_sums {
    enum : uint { N = TOKENS / 2 };
    float at[N], block[N];

    METAL_FUNC void clear() {
        for (uint i = 0; i < N; i++)
            at[i] = 0.0f;
    }
    METAL_FUNC void start(thread const group_rows &w, threadgroup const uint4 *x) {
        const ulong rows = cuda::describe_rows(x);
        cuda::begin_products();
        cuda::multiply_group<false>(block, w.at[0], rows);
        for (uint i = 1; i < 4; i++)
            cuda::multiply_group<true>(block, w.at[i], rows + 2 * i);
        cuda::close_products();
    }
    METAL_FUNC void finish(thread const float (&scales)[2]) {
        cuda::wait_for_products(block);
        for (uint i = 0; i < N; i++)
            at[i] = fma(scales[i / 2 % 2], block[i], at[i]);
    }

    // y: of the first row of this warp and the first token; rows and tokens: what there is of them.
    template <bool accumulate> METAL_FUNC void store(device float *y, device const float *powers,
                                                     uint out_dim, uint rows, uint tokens,
                                                     uint lane) const {
        for (uint i = 0; i < N; i++) {
            const uint token = i / 4 * 8 + 2 * (lane % 4) + i % 2;
            const uint row = lane / 4 + i / 2 % 2 * 8;
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

template <typename F, uint TOKENS, bool accumulate> METAL_FUNC void
split_groups(device const uint4 *const (&all)[3], device const uint4 *x, device const float *powers,
             device float *const (&all_y)[3], constant split_shape &shape, uint tokens, uint2 group,
             uint thread_index) {
    typedef group_step<TOKENS> step_of;
    enum : uint { row_words = CHUNK / STEP * F::words, w_quads = ROWS * row_words / 4 };
    const uint a_tiles = (shape.rows[0] + ROWS - 1) / ROWS;
    const uint b_tiles = (shape.rows[1] + ROWS - 1) / ROWS;
    const uint which = group.x < a_tiles ? 0 : group.x < a_tiles + b_tiles ? 1 : 2;
    const uint rows = shape.rows[which];
    const uint first_row =
        (group.x - (which > 0 ? a_tiles : 0) - (which > 1 ? b_tiles : 0)) * ROWS;
    device const uint4 *w = which == 0 ? all[0] : which == 1 ? all[1] : all[2];
    device float *y = which == 0 ? all_y[0] : which == 1 ? all_y[1] : all_y[2];
    threadgroup uint4 *all_x = (threadgroup uint4 *)cuda::get_shared_memory<
        1024 + 16 * (STEPS * step_of::all + 2 * w_quads)>();
    all_x += (0u - uint(cuda::get_shared_address(all_x))) % 1024 / 16;
    threadgroup uint4 *all_w = all_x + STEPS * step_of::all;
    const uint in_dim = shape.columns;
    const uint steps = in_dim / STEP;
    const uint first = group.y * TOKENS;
    const uint count = tokens - first;
    group_copy_rows<F>(w, all_w, first_row, rows, in_dim, 0, thread_index);
    EARLY_LOADS(7);
    x += size_t(first) * (in_dim / 4);
    for (uint step = 0; step < STEPS - 1; step++) {
        step_of::copy(x, all_x + step * step_of::all, in_dim, count, min(step, steps - 1),
                      thread_index);
        cuda::close_copies();
    }
    const uint lane = thread_index % 32;
    const uint my_row = thread_index / 32 * 16;
    const uint odd = lane % 2;
    const uint thousand = opaque(0x64006400u, in_dim);
    threadgroup const uint *my_w =
        (threadgroup const uint *)all_w + (my_row + lane / 4) * row_words;
    group_sums<TOKENS> sums;
    group_rows own[2];
    sums.clear();
    uint at = 0; // of the steps in shared memory
    for (uint step = 0; step < steps; step++) {
        const uint chunk = step / (CHUNK / STEP);
        cuda::wait_for_all_but<STEPS - 2>();
        cuda::show_to_products();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint later = at == 0 ? STEPS - 1 : at - 1;
        if (step + STEPS - 1 < steps)
            step_of::copy(x, all_x + later * step_of::all, in_dim, count, step + STEPS - 1,
                          thread_index);
        if (step % (CHUNK / STEP) == 0 && (chunk + 1) * CHUNK < in_dim)
            group_copy_rows<F>(w, all_w + (chunk + 1) % 2 * w_quads, first_row, rows, in_dim,
                               chunk + 1, thread_index);
        cuda::close_copies();
        threadgroup const uint *w_step =
            my_w + chunk % 2 * (4 * w_quads) + step % (CHUNK / STEP) * F::words;
        if (step == 0)
            own[0].template take<F>(w_step, 0, odd, thousand);
        threadgroup const uint4 *block = all_x + at * step_of::all;
        sums.start(own[0], block);
        own[1].template take<F>(w_step, 1, odd, thousand);
        sums.finish(own[0].scales);
        sums.start(own[1], block + step_of::block);
        // Those of the next chunk came before the barrier: they were copied three steps ago.
        const uint next = min(step + 1, steps - 1);
        own[0].template take<F>(my_w + next / (CHUNK / STEP) % 2 * (4 * w_quads) +
                                    next % (CHUNK / STEP) * F::words,
                                0, odd, thousand);
        sums.finish(own[1].scales);
        at = at == STEPS - 1 ? 0 : at + 1;
    }
    if (first_row + my_row < rows)
        sums.template store<accumulate>(y + size_t(first) * rows + first_row + my_row,
                                        powers + first, rows, rows - first_row - my_row, count,
                                        lane);
}

#define SPLIT_KERNEL(name, tokens_of, threads)                                                      \
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
        split_groups<F, tokens_of, accumulate>(w, x, powers, y, shape, tokens, group,              \
                                               thread_index);                                      \
    }

// Two threadgroups with 64 tokens are to find room on a core: hence 512.
SPLIT_KERNEL(split_64, 64, 512)
SPLIT_KERNEL(split_128, 128, 256)

#define SPLIT_GROUPS(format)                                                                       \
    MATVEC_KERNEL("matvec_split_" #format "_groups", split_64, group_##format, false)              \
    MATVEC_KERNEL("matvec_split_" #format "_accumulate_groups", split_64, group_##format, true)    \
    MATVEC_KERNEL("matvec_split_" #format "_wide_groups", split_128, group_##format, false)        \
    MATVEC_KERNEL("matvec_split_" #format "_accumulate_wide_groups", split_128, group_##format,    \
                  true)

SPLIT_GROUPS(q4_0)
SPLIT_GROUPS(q8_0)
