// matvec_split: y = W x and y += W x for many tokens and up to three matrices, x in two halves
// (split_halves.metal): tiles of 128 rows and 64 tokens multiplied by tensor cores with sums in floats
// (mma.m16n8k16).
//
// Weights of at most 8 bits are whole numbers times a scale per 32 columns, a block: as halves they
// are exact. So the sum of a block is as good as one in floats.
//
// Eight warps compute 32 rows and 32 tokens each: 2 x 4 matrices of sums in registers. A lane is at
// place (row, part) = (lane / 4, lane % 4) of a matrix. Which columns meet in a matrix does not
// matter, so that a lane takes neighbours: columns 4 * part to 3 after it, and 16 after those.
#include <metal_stdlib>
using namespace metal;

#include "../early.h"
#include "../formats/q4_0.h"
#include "../formats/q8_0.h"
#include "../opaque.h"
#include "../product/row.h"

enum : uint {
    ROWS = 128,
    TOKENS = 64,
    THREADS = 256,
    CHUNK = 256, // columns of a row of W that are copied at a time
    STEP = 64,   // of x: two blocks
    STEPS = 3,   // of x in threadgroup memory: one is multiplied, the others are on their way
};

// A format F:
//   F::words  of two blocks of a row. Chunks of them are whole uint4s, and the same words of 8 rows that
//             follow each other are in different banks
//   F::take   a lane's weights of block b as halves: pairs[i] of the first or last 16 columns, the first
//             and third of four and the others
//   F::scale  of block b
// Below the exponent of 1024, whose bits are `thousand`, a whole number is added to it.
struct split_q4_0 {
    typedef block_q4_0 block;
    enum : uint { words = 9 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        threadgroup const uint *at = row + part;
        const uint nibbles = b ? at[5] : at[0] >> 16u | at[1] << 16u;
        for (uint j = 0; j < 2; j++) {
            const uint bits = nibbles >> (8 * j);
            pairs[0][j] =
                cuda::subtract_halves((bits & 0x000F000Fu) | thousand, 0x64086408u); // 1032
            pairs[1][j] = cuda::fma_halves((bits & 0x00F000F0u) | thousand,          // 1024 + 16 n
                                           0x2C002C00u, 0xD480D480u);                // / 16 - 72
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[9 * b]);
    }
};

struct split_q8_0 {
    typedef block_q8_0 block;
    enum : uint { words = 17 };

    static METAL_FUNC void take(threadgroup const uint *row, uint b, uint part, uint thousand,
                                thread uint (&pairs)[2][2]) {
        for (uint i = 0; i < 2; i++) {
            threadgroup const uint *at = row + part + 4 * i;
            const uint bytes = b ? at[9] : at[0] >> 16u | at[1] << 16u;
            const uint more = bytes ^ 0x80808080u; // 128 more
            for (uint j = 0; j < 2; j++)
                pairs[i][j] = cuda::subtract_halves((more >> (8 * j) & 0x00FF00FFu) | thousand,
                                                    0x64806480u); // 1152
        }
    }
    static METAL_FUNC float scale(threadgroup const uint *row, uint b) {
        return float(((threadgroup const half *)row)[17 * b]);
    }
};

// Brings a chunk of the rows of a tile to threadgroup memory. Rows past the end are replaced by the
// last one.
template <typename F> METAL_FUNC void split_copy_rows(device const uint4 *w, threadgroup uint4 *to,
                                                      uint first_row, uint rows, uint in_dim,
                                                      uint chunk, uint thread_index) {
    enum : uint { quads = CHUNK / STEP * F::words / 4, all = ROWS * quads };
    for (uint i = thread_index; i < all; i += THREADS) {
        const uint row = min(first_row + i / quads, rows - 1);
        cuda::copy_async(to + i, w + (row * (in_dim / CHUNK) + chunk) * quads + i % quads);
    }
}

// A step of x: of each token and block 8 uint4, both halves of four neighbours each. Of every other
// token the first and last four of them change places, so that lanes do not meet in a bank.
struct split_step {
    enum : uint { block = 8 * TOKENS, all = 2 * block };
    static METAL_FUNC uint find(uint token, uint part) {
        return 8 * token + (part ^ (token & 1u) * 4);
    }

    // Tokens past the end are replaced by the last one.
    static METAL_FUNC void copy(device const uint4 *x, threadgroup uint4 *to, uint in_dim,
                                uint count, uint step, uint thread_index) {
        for (uint i = thread_index; i < all; i += THREADS) {
            const uint token = i / 16;
            const uint part = i % 16;
            cuda::copy_async(to + part / 8 * block + find(token, part % 8),
                             x + min(token, count - 1) * (in_dim / 4) + 16 * step + part);
        }
    }
};

// A block of the rows of a warp, as matrices of 16: rows lane / 4 and 8 after it.
struct split_rows {
    enum : uint { M = 2 };
    uint pairs[M][2][2][2]; // first or last 16 columns, row, pair
    float scales[M][2];

    template <typename F>
    METAL_FUNC void take(threadgroup const uint *w, uint b, uint thousand, uint lane) {
        for (uint m = 0; m < M; m++)
            for (uint r = 0; r < 2; r++) {
                threadgroup const uint *row =
                    w + (16 * m + 8 * r + lane / 4) * (CHUNK / STEP * F::words);
                uint taken[2][2];
                F::take(row, b, lane % 4, thousand, taken);
                for (uint i = 0; i < 4; i++)
                    pairs[m][i / 2][r][i % 2] = taken[i / 2][i % 2];
                scales[m][r] = F::scale(row, b);
            }
    }
};

// The sums of a warp: matrices of 16 rows and 8 tokens. A lane has rows lane / 4 and 8 after it,
// tokens 2 * (lane % 4) and 1 after it of each.
struct split_sums {
    enum : uint { M = split_rows::M, N = 4 };
    float at[M][N][2][2];

    METAL_FUNC void clear() {
        for (uint m = 0; m < M; m++)
            for (uint n = 0; n < N; n++)
                for (uint i = 0; i < 4; i++)
                    at[m][n][i / 2][i % 2] = 0.0f;
    }

    // A block of tokens 16 * pair to 15 after it, from the first of this warp on. Each of the four
    // matrices gets a product in turn: one that waits for another would wait long.
    METAL_FUNC void add(thread const split_rows &w, threadgroup const uint4 *x, uint first,
                        uint pair, uint lane) {
        uint halves[2][4]
                   [2]; // token, upper and lower of the first 16 columns and of the others, pair
        float sums[2][M][2][2];
        for (uint n = 0; n < 2; n++) {
            const uint token = first + 16 * pair + 8 * n + lane / 4;
            for (uint i = 0; i < 2; i++) {
                const uint4 both = x[split_step::find(token, 4 * i + lane % 4)];
                halves[n][2 * i][0] = both.x;
                halves[n][2 * i][1] = both.y;
                halves[n][2 * i + 1][0] = both.z;
                halves[n][2 * i + 1][1] = both.w;
            }
            for (uint i = 0; i < 4 * M; i++)
                sums[n][i / 4][i / 2 % 2][i % 2] = 0.0f;
        }
        for (uint i = 0; i < 4; i++)
            for (uint n = 0; n < 2; n++)
                for (uint m = 0; m < M; m++)
                    cuda::mma_halves(w.pairs[m][i / 2], halves[n][i], sums[n][m]);
        for (uint n = 0; n < 2; n++)
            for (uint i = 0; i < 4 * M; i++) {
                const uint m = i / 4, r = i / 2 % 2, j = i % 2;
                at[m][2 * pair + n][r][j] =
                    fma(w.scales[m][r], sums[n][m][r][j], at[m][2 * pair + n][r][j]);
            }
    }

    // y: of the first row and token of this warp, powers: of its tokens; rows and tokens: what there
    // is of them.
    template <bool accumulate> METAL_FUNC void store(device float *y, device const float *powers,
                                                     uint out_dim, uint rows, uint tokens,
                                                     uint lane) const {
        for (uint n = 0; n < N; n++)
            for (uint j = 0; j < 2; j++) {
                const uint token = 8 * n + 2 * (lane % 4) + j;
                const float power = powers[min(token, tokens - 1)];
                for (uint m = 0; m < M; m++)
                    for (uint r = 0; r < 2; r++) {
                        const uint row = 16 * m + 8 * r + lane / 4;
                        if (token < tokens && row < rows)
                            put<accumulate>(y + size_t(token) * out_dim + row,
                                            at[m][n][r][j] * power);
                    }
            }
    }
};

// Rows of three matrices, the last of which may have none, and columns of all.
struct split_shape {
    uint rows[3];
    uint columns;
};

// Two threadgroups are to find room on a core: hence 512.
template <typename F, bool accumulate> [[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_split(device const typename F::block *wa [[buffer(0)]],
             device const typename F::block *wb [[buffer(1)]],
             device const typename F::block *wc [[buffer(2)]], device const uint4 *x [[buffer(3)]],
             device const float *powers [[buffer(4)]], device float *ya [[buffer(5)]],
             device float *yb [[buffer(6)]], device float *yc [[buffer(7)]],
             constant split_shape &shape [[buffer(8)]], constant uint &tokens [[buffer(9)]],
             uint2 group [[threadgroup_position_in_grid]],
             uint thread_index [[thread_index_in_threadgroup]]) {
    enum : uint { row_words = CHUNK / STEP * F::words, w_quads = ROWS * row_words / 4 };
    const uint a_tiles = (shape.rows[0] + ROWS - 1) / ROWS;
    const uint b_tiles = (shape.rows[1] + ROWS - 1) / ROWS;
    const uint which = group.x < a_tiles ? 0 : group.x < a_tiles + b_tiles ? 1 : 2;
    const uint rows = shape.rows[which];
    const uint first_row = (group.x - (which > 0 ? a_tiles : 0) - (which > 1 ? b_tiles : 0)) * ROWS;
    device const uint4 *w = (device const uint4 *)(which == 0 ? wa : which == 1 ? wb : wc);
    device float *y = which == 0 ? ya : which == 1 ? yb : yc;
    threadgroup uint4 *all_x = (threadgroup uint4 *)
        cuda::get_shared_memory<16 * (STEPS * split_step::all + 2 * w_quads)>();
    threadgroup uint4 *all_w = all_x + STEPS * split_step::all;
    const uint in_dim = shape.columns;
    const uint steps = in_dim / STEP;
    const uint first = group.y * TOKENS;
    const uint count = tokens - first;
    split_copy_rows<F>(w, all_w, first_row, rows, in_dim, 0, thread_index);
    EARLY_LOADS(7);
    x += size_t(first) * (in_dim / 4);
    for (uint step = 0; step < STEPS - 1; step++) {
        split_step::copy(x, all_x + step * split_step::all, in_dim, count, min(step, steps - 1),
                         thread_index);
        cuda::close_copies();
    }
    const uint lane = thread_index % 32;
    const uint my_row = thread_index / 32 % 4 * 32;
    const uint my_token = thread_index / 128 * 32;
    const uint thousand = opaque(0x64006400u, in_dim);
    split_sums sums;
    sums.clear();
    uint at = 0; // of the steps in threadgroup memory
    for (uint step = 0; step < steps; step++) {
        const uint chunk = step / (CHUNK / STEP);
        cuda::wait_for_all_but<STEPS - 2>();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const uint next = at == 0 ? STEPS - 1 : at - 1;
        if (step + STEPS - 1 < steps)
            split_step::copy(x, all_x + next * split_step::all, in_dim, count, step + STEPS - 1,
                             thread_index);
        if (step % (CHUNK / STEP) == 0 && (chunk + 1) * CHUNK < in_dim)
            split_copy_rows<F>(w, all_w + (chunk + 1) % 2 * w_quads, first_row, rows, in_dim,
                               chunk + 1, thread_index);
        cuda::close_copies();
        threadgroup const uint *w_step = (threadgroup const uint *)(all_w + chunk % 2 * w_quads) +
                                         step % (CHUNK / STEP) * F::words + my_row * row_words;
        for (uint b = 0; b < 2; b++) {
            threadgroup const uint4 *block = all_x + at * split_step::all + b * split_step::block;
            split_rows own;
            own.template take<F>(w_step, b, thousand, lane);
            sums.add(own, block, my_token, 0, lane);
            sums.add(own, block, my_token, 1, lane);
        }
        at = at == STEPS - 1 ? 0 : at + 1;
    }
    const uint row = first_row + my_row;
    if (row < rows && my_token < count)
        sums.template store<accumulate>(y + size_t(first + my_token) * rows + row,
                                        powers + first + my_token, rows, rows - row,
                                        count - my_token, lane);
}

#define MATVEC_SPLIT(format)                                                                       \
    MATVEC_KERNEL("matvec_split_" #format, matvec_split, split_##format, false)                    \
    MATVEC_KERNEL("matvec_split_" #format "_accumulate", matvec_split, split_##format, true)

MATVEC_SPLIT(q4_0)
MATVEC_SPLIT(q8_0)
