// prefill_attention_mma: prefill_attention by tensor cores, with the products of attention_mma.h.
//
// A thread block computes one head of 64 tokens, four warps with 16 of them each, in two sets of 8: what a
// lane loads of a key or value serves both. Keys and values pass through shared memory, 16 KB of each at a
// time, in two stages: cp.async brings the next one while this one is multiplied. Heads of 128 floats have
// twice the queries, too many for the registers: there a warp has one set, and the block goes over the
// keys twice.
//
// Rows of shared memory are whole multiples of 128 bytes. Lanes that load at the same time have the same
// pieces of two neighbouring keys, or of every other value of eight; so pieces are swapped such that these
// are in different banks. Later tokens see more keys: they come first in the grid.
#include <metal_stdlib>
using namespace metal;

#include "attention_mma.h"

enum : uint {
    PREFILL_WARPS = 4,
    PREFILL_THREADS = 32 * PREFILL_WARPS,
    PREFILL_TOKENS = 64,
    PREFILL_PIECES = 1024 // of 16 bytes: the keys of a stage, or the values
};

// What a thread block has of the cache, in two stages.
template <typename T, uint D> struct prefill_tiles {
    enum : uint {
        pieces = D * sizeof(T) / 16,   // of a row
        keys = PREFILL_PIECES / pieces // of a stage
    };
    threadgroup uint4 *memory;
    attention_head_of<T> h;
    uint last; // row that is seen

    METAL_FUNC threadgroup uint4 *find_stage(uint first, bool is_values) const {
        return memory + PREFILL_PIECES * (2 * (first / keys % 2) + (is_values ? 1 : 0));
    }
    METAL_FUNC uint find_key(uint row, uint piece) const {
        return row * pieces + (piece ^ row % 2 * 4);
    }
    METAL_FUNC uint find_value(uint row, uint piece) const {
        return row * pieces + (piece ^ row / 2 % 4 * 2);
    }
    // Rows from `first` on; past the last row it is the last one.
    METAL_FUNC void copy(uint first, uint thread_index) const {
        for (uint i = thread_index; first <= last && i < PREFILL_PIECES; i += PREFILL_THREADS) {
            const uint row = i / pieces, piece = i % pieces;
            const size_t at = size_t(min(first + row, last)) * h.stride;
            cuda::copy_async(find_stage(first, false) + find_key(row, piece),
                             (device const uint4 *)(h.keys + at) + piece);
            cuda::copy_async(find_stage(first, true) + find_value(row, piece),
                             (device const uint4 *)(h.values + at) + piece);
        }
        cuda::close_copies();
    }
};

// The 8 queries of a set, one per four lanes, and the keys that this lane's sees.
template <typename T, uint D> struct prefill_set : mma_softmax<T, D> { uint seen; };

// The sets of a warp. A turn is 4 KB of keys and as many of values.
template <typename T, uint D, uint Sets> struct prefill_warp {
    typedef mma_kind<T> kind;
    enum : uint {
        values = kind::values,
        tiles = 4096 / (8 * D * sizeof(T)), // of 8 keys, per turn
        keys = 8 * tiles,
        key_quads = D * sizeof(T) / 64,    // of each key of a lane
        value_quads = D * sizeof(T) / 128, // of each value of a lane
        steps = tiles / kind::tiles        // of results
    };
    prefill_set<T, D> sets[Sets];

    METAL_FUNC void add_values(threadgroup const uint4 *from, prefill_tiles<T, D> rows_of,
                               uint first, thread const float2 (&w)[Sets][tiles],
                               thread const float (&fades)[Sets], uint lane) {
        mma_weights<T> weights[Sets][steps];
        for (uint i = 0; i < Sets * steps; i++)
            weights[i / steps][i % steps].take(w[i / steps] + kind::tiles * (i % steps));
        for (uint k = 0; k < value_quads; k++) {
            uint4 rows[2 * tiles];
            for (uint i = 0; i < 2 * tiles; i++)
                rows[i] = from[rows_of.find_value(
                    first + 8 * (i / 2) + 2 * (lane % 4) + i % 2, 8 * k + lane / 4)];
            for (uint i = 0; i < Sets * values; i++) {
                const uint set = i % Sets, n = i / Sets;
                float d[2][2] = {};
                for (uint s = 0; s < steps; s++) {
                    thread const uint4 *of[2 * kind::tiles];
                    for (uint r = 0; r < 2 * kind::tiles; r++)
                        of[r] = &rows[2 * kind::tiles * s + r];
                    weights[set][s].multiply(of, n, d);
                }
                thread float(&part)[2] = sets[set].parts[values * k + n];
                for (uint e = 0; e < 2; e++)
                    part[e] = fma(part[e], fades[set], d[0][e] + d[1][e]);
            }
        }
    }

    // Adds the keys from `first` on of the stage that begins with key `start`.
    METAL_FUNC void add(prefill_tiles<T, D> rows_of, uint start, uint first, uint lane) {
        threadgroup const uint4 *from = rows_of.find_stage(start, false);
        float2 weights[Sets][tiles];
        for (uint i = 0; i < tiles; i++) {
            uint4 row[key_quads];
            for (uint k = 0; k < key_quads; k++)
                row[k] = from[rows_of.find_key(first + 8 * i + lane / 4, 4 * k + lane % 4)];
            for (uint set = 0; set < Sets; set++)
                weights[set][i] = sets[set].queries.multiply(row);
        }
        float fades[Sets];
        for (uint set = 0; set < Sets; set++)
            fades[set] = sets[set].weigh(weights[set], start + first, sets[set].seen,
                                         rows_of.h.scale, lane);
        add_values(rows_of.find_stage(start, true), rows_of, first, weights, fades, lane);
    }
};

// q and out: of this head of the block's first token, `stride` floats from token to token.
struct prefill_block {
    device const float *q;
    device float *out;
    uint stride, tokens;
    uint seen; // keys of the first token
};

// Tokens from `from` on, 8 * Sets of them per warp.
template <typename T, uint D, uint Sets>
METAL_FUNC void prefill_attend(attention_head_of<T> h, prefill_block b, uint from,
                               threadgroup uint4 *memory, uint thread_index, uint sg, uint lane) {
    const uint first_token = from + 8 * Sets * sg;
    const uint most = min(b.tokens, from + 8 * Sets * PREFILL_WARPS); // of the tokens of all warps
    const prefill_tiles<T, D> rows_of = {memory, h, b.seen + most - 2};
    prefill_warp<T, D, Sets> warp;
    rows_of.copy(0, thread_index);
    for (uint set = 0; set < Sets; set++) {
        const uint token = min(first_token + 8 * set + lane / 4, b.tokens - 1);
        warp.sets[set].queries.take(b.q + size_t(token) * b.stride, lane);
        warp.sets[set].seen = b.seen + token;
        warp.sets[set].clear();
    }
    const uint seen = b.seen + min(first_token + 8 * Sets, b.tokens) - 1; // by any query of this warp
    for (uint start = 0; start <= rows_of.last; start += rows_of.keys) {
        rows_of.copy(start + rows_of.keys, thread_index);
        cuda::wait_for_all_but<1>();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint first = 0; first < rows_of.keys && start + first < seen; first += warp.keys)
            warp.add(rows_of, start, first, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint set = 0; set < Sets; set++) {
        const uint token = first_token + 8 * set + lane / 4;
        device float *to = token < b.tokens ? b.out + size_t(token) * b.stride : nullptr;
        thread mma_softmax<T, D> &own = warp.sets[set];
        own.add_up();
        for (uint n = 0; to && n < D / 8; n += 4)
            for (uint e = 0; e < 2; e++)
                *(device float4 *)(to + own.find(n, e, lane)) = own.get(n, e) / own.sum;
    }
}

template <typename T> [[kernel, max_total_threads_per_threadgroup(PREFILL_THREADS)]] void
prefill_attention_mma(ATTENTION_ARGUMENTS(T, start), constant uint &n_tokens [[buffer(9)]],
                      uint2 group [[threadgroup_position_in_grid]], THREAD_PLACE) {
    threadgroup uint4 *memory =
        (threadgroup uint4 *)cuda::get_shared_memory<16 * 4 * PREFILL_PIECES>();
    const attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    const uint token = ((n_tokens - 1) / PREFILL_TOKENS - group.y) * PREFILL_TOKENS;
    const uint stride = n_heads * head_dim;
    const size_t at = size_t(token) * stride + group.x * head_dim;
    const prefill_block b = {q + at, out + at, stride, min(n_tokens - token, uint(PREFILL_TOKENS)),
                             start + token + 1};
    enum : uint { sets = sizeof(T) == 4 ? 1 : 2 }; // of heads of 128
    if (head_dim == 64)
        prefill_attend<T, 64, 2>(h, b, 0, memory, thread_index, sg, lane);
    else
        for (uint from = 0; from < b.tokens; from += 8 * sets * PREFILL_WARPS)
            prefill_attend<T, 128, sets>(h, b, from, memory, thread_index, sg, lane);
}

KERNEL("prefill_attention_mma", prefill_attention_mma<float>)
KERNEL("prefill_attention_mma_f16", prefill_attention_mma<half>)
