// prefill_attention_blocks: prefill_attention for long prompts: each key and value that a threadgroup
// loads serves 16 queries.
#include <metal_stdlib>
using namespace metal;

#include "attention.h"
#include "prefetch.h"
#include "opaque.h"
#include "swap.h"

// A threadgroup of 128 computes one head of 16 tokens, 64 keys at a time, with the online softmax of
// attention.h. Queries, keys and then values pass through threadgroup memory, 64 dimensions at a
// time; what comes next is loaded before the multiplications begin and stored after them.
//
// Of the scores (16 queries, 64 keys) a thread computes 2 x 4, of the result (16 queries, 64
// dimensions) 2 queries x 4 dimensions. Both times it has the same two queries, so it knows their
// largest score; the other half of their keys belongs to another simdgroup.
//
// Rows of threadgroup memory are 16 float4 in 17: any 8 neighbours are in different banks. Later
// tokens see more keys: they come first in the grid. head_dim is a multiple of 4.
constant uint BLOCK_QUERIES = 16;
constant uint BLOCK_KEYS = 64;
constant uint BLOCK_PARTS = 4; // of a head, 64 dimensions each: head_dim is at most 256
constant uint WIDE = 17;

template <typename T> struct attention_block {
    threadgroup float4 *queries; // (16, 17)
    threadgroup float4 *cached;  // (64, 17) keys or values
    threadgroup float4 *weights; // (16, 17): of 64 keys each
    threadgroup float *shared;   // (2, 16)
    attention_head_of<T> h;
    uint last; // row that is seen
    uint me;
    uint column;      // 0 to 15: keys column, column + 16, ...; or four dimensions
    uint query;       // 0 to 7: queries query and query + 8
    uint half_of_all; // of the columns
    float4 loaded[8];
    float scores[2][4];
    float largest[2];
    float sums[2];
    float4 results[BLOCK_PARTS][2];

    METAL_FUNC attention_block(threadgroup float4 *memory, threadgroup float *exchange,
                               attention_head_of<T> head, uint last_row, uint t) {
        h = head;
        last = last_row;
        queries = memory;
        weights = queries + BLOCK_QUERIES * WIDE;
        cached = weights + BLOCK_QUERIES * WIDE;
        shared = exchange;
        me = t;
        half_of_all = t / 32 % 2;
        column = t % 8 + 8 * half_of_all;
        query = t % 32 / 8 + 4 * (t / 64);
        for (uint i = 0; i < 2; i++) {
            largest[i] = NO_SCORE;
            sums[i] = 0.0f;
            for (uint j = 0; j < 4; j++)
                scores[i][j] = 0.0f;
            for (uint part = 0; part < BLOCK_PARTS; part++)
                results[part][i] = float4(0.0f);
        }
    }

    // On a Mac a value that compilers cannot know before it is needed: addresses made of it in advance
    // would take the registers of the results.
    METAL_FUNC uint find_me() const {
        return LOADS_AHEAD ? me : opaque(me, as_type<uint>(largest[0]));
    }

    // Of 64 dimensions of 64 rows of the cache from `first` on, this thread's i-th four. Past the last
    // row it is repeated. Past the last dimension the last four are repeated: queries are 0 there, and
    // results not stored.
    METAL_FUNC float4 take(device const T *rows, uint first, uint part, uint i) const {
        const uint t = find_me(), start = min(first, last);
        const uint row = min(t / 16 + 8 * i, last - start);
        const uint d = min(64 * part + 4 * (t % 16), h.head_dim - 4);
        device const T *at = rows + size_t(start) * h.stride;
        const float4 v = cached_floats(
            *(device const typename cached_four<T>::type *)(at + (row * h.stride + d)));
        return float4(v.x, v.y, v.z, v.w); // a plain copy would be one in memory
    }

    // Loads what store() will store; on a Mac, whose registers have no room for it, store() does.
    METAL_FUNC void load(device const T *rows, uint first, uint part) {
        for (uint i = 0; LOADS_AHEAD && i < 8; i++)
            loaded[i] = take(rows, first, part, i);
    }
    METAL_FUNC void store(device const T *rows, uint first, uint part) {
        const uint t = find_me();
        threadgroup float4 *own = cached + t / 16 * WIDE + t % 16;
        for (uint i = 0; i < 8; i++)
            own[8 * i * WIDE] = LOADS_AHEAD ? loaded[i] : take(rows, first, part, i);
    }

    // 64 dimensions of the queries of `count` tokens, which are `stride` apart.
    METAL_FUNC void store_queries(device const float *q, uint stride, uint count, uint part,
                                  uint head_dim) {
        const uint d = 64 * part + 4 * (me % 16);
        for (uint i = 0; i < 2; i++) {
            const uint row = me / 16 + 8 * i;
            device const float *at = q + size_t(min(row, count - 1)) * stride;
            const float4 v = *(device const float4 *)(at + min(d, head_dim - 4));
            queries[row * WIDE + me % 16] = select(float4(0.0f), v, bool4(d < head_dim));
        }
    }

    // Of `count` dimensions.
    METAL_FUNC void add_scores(uint count) {
        for (uint first = 0; 4 * first < count; first += 4)
            for (uint k = first; k < first + 4; k++) {
                float4 a[2];
                float4 b[4];
                for (uint i = 0; i < 2; i++)
                    a[i] = queries[(query + 8 * i) * WIDE + k];
                for (uint j = 0; j < 4; j++)
                    b[j] = cached[(column + 16 * j) * WIDE + k];
                for (uint i = 0; i < 2; i++)
                    for (uint j = 0; j < 4; j++) {
                        float s = fma(a[i].x, b[j].x, scores[i][j]);
                        s = fma(a[i].y, b[j].y, s);
                        s = fma(a[i].z, b[j].z, s);
                        scores[i][j] = fma(a[i].w, b[j].w, s);
                    }
            }
    }

    // Scales the scores, and shows the largest of each query to the threads of its other half.
    // The first query sees `seen` keys, each next one sees one more; these keys start at `first`.
    METAL_FUNC void show_largest(float scale, uint first, uint seen) {
        for (uint i = 0; i < 2; i++) {
            float most = NO_SCORE;
            for (uint j = 0; j < 4; j++) {
                const bool sees = first + column + 16 * j < seen + query + 8 * i;
                scores[i][j] = sees ? scale * scores[i][j] : NO_SCORE;
                most = max(most, scores[i][j]);
            }
            most = max(most, SWAP(most, 1));
            most = max(most, SWAP(most, 2));
            most = max(most, SWAP(most, 4));
            if (column % 8 == 0)
                shared[half_of_all * BLOCK_QUERIES + query + 8 * i] = most;
        }
    }

    // Makes weights of the scores, and starts new ones.
    METAL_FUNC void weigh() {
        threadgroup float *at = (threadgroup float *)(weights + query * WIDE) + column;
        threadgroup const float *most = shared + query;
        for (uint i = 0; i < 2; i++) {
            const float before = largest[i];
            largest[i] = max(before, max(most[8 * i], most[BLOCK_QUERIES + 8 * i]));
            const float fade = exp(before - largest[i]);
            sums[i] *= fade;
            for (uint part = 0; part < BLOCK_PARTS; part++)
                results[part][i] *= fade;
            for (uint j = 0; j < 4; j++) {
                const float weight = exp(scores[i][j] - largest[i]);
                sums[i] += weight;
                at[8 * i * (4 * WIDE) + 16 * j] = weight;
                scores[i][j] = 0.0f;
            }
        }
    }

    // Adds 64 dimensions of the values from `first` on, and loads what comes after them. On a Mac parts that
    // a head does not have add no keys: left out, each number of parts would have results of its own.
    template <uint part>
    METAL_FUNC void add_values(uint parts, uint first) {
        if (LOADS_AHEAD && part >= parts)
            return;
        if (part > 0)
            threadgroup_barrier(mem_flags::mem_threadgroup);
        if (part < parts)
            store(h.values, first, part);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (part + 1 < parts)
            load(h.values, first, part + 1);
        else
            load(h.keys, first + BLOCK_KEYS, 0);
        const uint keys = part < parts ? min(BLOCK_KEYS, last + 1 - first) : 0;
        for (uint four = 0; 4 * four < keys; four += 4) // 16 keys: those past the last weigh 0
            for (uint k = four; k < four + 4; k++) {
                float4 v[4];
                for (uint j = 0; j < 4; j++)
                    v[j] = cached[(4 * k + j) * WIDE + column];
                for (uint i = 0; i < 2; i++) {
                    const float4 weight = weights[(query + 8 * i) * WIDE + k];
                    float4 r = fma(float4(weight.x), v[0], results[part][i]);
                    r = fma(float4(weight.y), v[1], r);
                    r = fma(float4(weight.z), v[2], r);
                    results[part][i] = fma(float4(weight.w), v[3], r);
                }
            }
    }
};

template <typename T> kernel void
prefill_attention_blocks(ATTENTION_ARGUMENTS(T, start),
                         constant uint &n_tokens [[buffer(9)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint t [[thread_index_in_threadgroup]]) {
    threadgroup float4 memory[(2 * BLOCK_QUERIES + BLOCK_KEYS) * WIDE];
    threadgroup float exchange[2 * BLOCK_QUERIES];
    const attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    const uint token = ((n_tokens - 1) / BLOCK_QUERIES - group.y) * BLOCK_QUERIES;
    const uint count = min(BLOCK_QUERIES, n_tokens - token);
    const uint last = start + token + count - 1; // that is seen
    const uint parts = (head_dim + 63) / 64;
    const uint stride = n_heads * head_dim;
    device const float *first_query = q + size_t(token) * stride + group.x * head_dim;
    attention_block<T> b(memory, exchange, h, last, t);
    b.load(h.keys, 0, 0);
    for (uint first = 0; first <= last; first += BLOCK_KEYS) {
        for (uint part = 0; part < parts; part++) {
            if (part > 0)
                threadgroup_barrier(mem_flags::mem_threadgroup);
            if (parts > 1 || first == 0)
                b.store_queries(first_query, stride, count, part, head_dim);
            b.store(h.keys, first, part);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (part + 1 < parts)
                b.load(h.keys, first, part + 1);
            else
                b.load(h.values, first, 0);
            b.add_scores(min(64u, head_dim - 64 * part));
        }
        b.show_largest(scale, first, start + token + 1);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        b.weigh();
        // Not a loop: the results are in registers.
        b.template add_values<0>(parts, first);
        b.template add_values<1>(parts, first);
        b.template add_values<2>(parts, first);
        b.template add_values<3>(parts, first);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < 2; i++) {
        float sum = b.sums[i];
        sum += SWAP(sum, 1);
        sum += SWAP(sum, 2);
        sum += SWAP(sum, 4);
        if (b.column % 8 == 0)
            exchange[b.half_of_all * BLOCK_QUERIES + b.query + 8 * i] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 2; i++) {
        const uint row = b.query + 8 * i;
        const float sum = exchange[row] + exchange[BLOCK_QUERIES + row];
        for (uint part = 0; part < BLOCK_PARTS; part++) {
            const uint d = 64 * part + 4 * b.column;
            if (row < count && d < head_dim) {
                device float *at = out + size_t(token + row) * stride + group.x * head_dim + d;
                const float4 r = b.results[part][i] / sum;
                at[0] = r.x;
                at[1] = r.y;
                at[2] = r.z;
                at[3] = r.w;
            }
        }
    }
}

KERNEL("prefill_attention_blocks", prefill_attention_blocks<float>)
KERNEL("prefill_attention_blocks_f16", prefill_attention_blocks<half>)
