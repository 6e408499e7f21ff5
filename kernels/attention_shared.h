// attention_shared: the attention of all queries that share a head of the cache, each row read once.
//
// With grouped-query attention, Q queries of as many threadgroups would load every row Q times, from
// a cache that is as far as the second level. Here a threadgroup loads a row once for up to Q of
// them. Per turn, L lanes take a key, 4 dimensions each, and J keys one after the other. The Q J
// products of a lane are summed over the L lanes by halving: at each step a lane gives half of its
// sums away and gets its partner's share of the other half, so that N sums cost about N shuffles
// and every lane ends with N / L scores of one query, whose exp it alone computes. The weights go
// to all lanes through threadgroup memory.
//
// A long cache takes as long as its bytes if enough of them are always under way: as soon as the keys of
// a turn are multiplied, those of the next one are loaded in their place, and so are the values. (An H200
// needs about 32 KB under way per core; a turn of floats is 64 KB, one of halves 32. With two turns of
// halves under way, 1B was slower than with floats at every depth: too many registers.)
#pragma once

#include "attention_spread.h"

// Threadgroup memory, in float4s: the queries, then for each simdgroup the weights and fades of two
// turns; after the last turn the parts of 256 dimensions of each simdgroup.
constant uint SHARED_ROOM = 16 * 64;

// What a simdgroup knows of the keys it has seen.
template <typename T, uint Q, uint L> struct shared_share {
    enum : uint {
        J = 4,
        N = Q * J,
        together = 16 * 32 / L,     // keys that a threadgroup takes at once
        copies = L > N ? L / N : 1, // lanes with the same score
        scores = N > L ? N / L : 1, // of a lane
        turn = 32 / L * Q + Q / 4,  // float4s of the weights and fades
        step = together * J,        // keys of a turn
        head_dim = 4 * L
    };
    typedef typename cached_four<T>::type four;
    attention_head_of<T> h;
    uint own, count; // this lane's first key, and all keys
    float largest;   // score of this lane's query so far, the same in all lanes of it
    float sum;       // of the weights that this lane has computed
    float4 parts[Q];
    four rows[J];
    four values[J];
    float4 products[2]; // of each key

    METAL_FUNC void start(attention_head_of<T> head, uint keys, uint lane, uint sg) {
        h = head;
        own = 32 / L * sg + lane / L;
        count = keys;
        largest = NO_SCORE;
        sum = 0.0f;
        for (uint q = 0; q < Q; q++)
            parts[q] = float4(0.0f);
    }

    // Is this the first lane with scores of its query?
    METAL_FUNC bool is_first(uint lane) { return lane < L && lane % (copies * (J / scores)) == 0; }

    // The rows of a turn, all under way at once; past the last key it is the last one.
    METAL_FUNC void load(thread four *to, device const T *from, uint first, uint lane) {
        for (uint j = 0; j < J; j++) {
            const uint row = min(first + own + together * j, count - 1);
            to[j] = *(device const four *)(from + size_t(row) * h.stride + 4 * (lane % L));
        }
    }
    METAL_FUNC void load_first(uint lane) {
        load(rows, h.keys, 0, lane);
        load(values, h.values, 0, lane);
    }

    // The sum of this lane's and its partner's: of the lower ones in lower lanes, else of the upper.
    template <class V> METAL_FUNC V halve(V lower, V upper, uint step, uint lane) {
        const bool is_upper = lane & step;
        return (is_upper ? upper : lower) + simd_shuffle_xor(is_upper ? lower : upper, step);
    }

    // The products of four keys with queries q and q + Q / 2, of which a lane keeps one.
    METAL_FUNC float4 multiply_two(threadgroup const float4 *queries, uint q, uint lane) {
        const float4 lower = queries[q * L + lane % L];
        const float4 upper = queries[(q + Q / 2) * L + lane % L];
        float4 of_lower, of_upper;
        for (uint j = 0; j < J; j++) {
            of_lower[j] = spread_sum(lower * cached_floats(rows[j]));
            of_upper[j] = spread_sum(upper * cached_floats(rows[j]));
        }
        return halve(of_lower, of_upper, L / 2, lane);
    }

    // products[0]: this lane's scores, the first `scores` of the four keys of its query.
    METAL_FUNC void multiply(threadgroup const float4 *queries, uint lane) {
        simdgroup_barrier(mem_flags::mem_none); // or compilers load values after they use keys
        for (uint q = 0; q < 2; q++) {
            products[q] = multiply_two(queries, q, lane);
            if (Q == 8)
                products[q] = halve(products[q], multiply_two(queries, q + 2, lane), L / 4, lane);
        }
        products[0] = halve(products[0], products[1], L / Q, lane);
        products[0].xy = halve(products[0].xy, products[0].zw, L / Q / 2, lane);
        for (uint step = L / Q / 4; step > 0; step /= 2)
            products[0].x = step == L / Q / 4
                                ? halve(products[0].x, products[0].y, step, lane)
                                : products[0].x + simd_shuffle_xor(products[0].x, step);
    }

    // Adds the turn of keys `first` and on, and loads the next one in its place if this simdgroup has
    // any of it. weights: of this simdgroup and not those of the turn before.
    METAL_FUNC void add(threadgroup const float4 *queries, threadgroup float4 *weights, uint first,
                        bool has_next, uint lane) {
        if (!LOADS_AHEAD)
            load(rows, h.keys, first, lane);
        multiply(queries, lane);
        if (LOADS_AHEAD && has_next)
            load(rows, h.keys, first + step, lane);
        const uint index = lane % L / copies * scores;
        const float before = largest;
        for (uint i = 0; i < scores; i++) {
            const bool is_key = first + own + together * ((index + i) % J) < count;
            products[0][i] = is_key ? h.scale * products[0][i] : NO_SCORE;
            largest = max(largest, products[0][i]);
        }
        for (uint step = copies; step < copies * (J / scores); step *= 2)
            largest = max(largest, simd_shuffle_xor(largest, step));
        for (uint step = L; step < 32; step *= 2)
            largest = max(largest, simd_shuffle_xor(largest, step));
        // Without a key both differences are of NO_SCORE from itself: under fast math, anything.
        const float fade = before > NO_SCORE ? exp(before - largest) : 0.0f;
        sum *= fade;
        threadgroup float *own = (threadgroup float *)weights + lane / L * N;
        threadgroup float *fades = (threadgroup float *)(weights + 32 / L * Q);
        for (uint i = 0; i < scores; i++) {
            const float score = products[0][i];
            const float weight = score > NO_SCORE ? exp(score - largest) : 0.0f;
            sum += weight;
            if (lane % copies == 0)
                own[index + i] = weight;
        }
        if (is_first(lane))
            fades[index / J] = fade;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (!LOADS_AHEAD)
            load(values, h.values, first, lane);
        for (uint q = 0; q < Q; q++) {
            const float4 of_keys = weights[lane / L * Q + q];
            parts[q] *= fades[q];
            for (uint j = 0; j < J; j++)
                parts[q] += of_keys[j] * cached_floats(values[j]);
        }
        if (LOADS_AHEAD && has_next)
            load(values, h.values, first + step, lane);
    }

    // The sums over all lanes: those of a query in its lanes, those of parts in all key's lanes.
    METAL_FUNC void finish() {
        for (uint step = copies; step < copies * (J / scores); step *= 2)
            sum += simd_shuffle_xor(sum, step);
        for (uint step = L; step < 32; step *= 2) {
            sum += simd_shuffle_xor(sum, step);
            for (uint q = 0; q < Q; q++)
                parts[q] += simd_shuffle_xor(parts[q], step);
        }
    }
};

// Where the results of a threadgroup's queries go: (queries, head_dim), and a log_sum each.
struct shared_results {
    device float *out;
    device float *log_sums;
    uint count; // of the queries, at most Q
};

// A threadgroup of 512 computes r.count queries of one head of the cache; its 16 simdgroups take keys
// in rotation. The caches are buffers 1 and 2: the first turn is loaded before the launch before has
// ended, unless that writes one of its rows.
template <uint Q, uint L, typename T>
inline void shared_attention(device const float *q, attention_head_of<T> h, shared_results r,
                             spread_keys k, threadgroup float4 *room, threadgroup float4 *largest,
                             threadgroup float4 *sums, uint thread_index, uint lane, uint sg) {
    typedef shared_share<T, Q, L> share_type;
    constexpr uint J = share_type::J, turn = share_type::turn, step = share_type::step;
    constexpr uint at_once = 256 / share_type::head_dim; // queries, at the end
    share_type share;
    share.start(h, k.count, lane, sg);
    const bool is_old = k.fresh >= min(k.count, step);
    if (LOADS_AHEAD && is_old)
        share.load_first(lane);
    PREFETCHED_ROWS(1 << 1 | 1 << 2);
    if (LOADS_AHEAD && !is_old)
        share.load_first(lane);
    for (uint i = thread_index; i < Q * L; i += 512)
        room[i] = ((device const float4 *)q)[min(i / L, r.count - 1) * L + i % L];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float4 *weights = room + Q * L + sg * 2 * turn;
    const uint end = k.count - min(k.count, 32 / L * sg); // of what is `first` to this simdgroup
    uint other = 0;
    for (uint first = 0; first < end; first += step) {
        share.add(room, weights + other, first, first + step < end, lane);
        other = turn - other;
    }
    share.finish();
    for (uint q0 = 0; q0 < Q; q0 += at_once) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < at_once; i++) {
            const uint query = q0 + i;
            if (lane < L)
                room[(16 * i + sg) * L + lane] = share.parts[query];
            if (share.is_first(lane) &&
                lane * share_type::scores == query * J * share_type::copies) {
                ((threadgroup float *)(largest + 4 * i))[sg] = share.largest;
                ((threadgroup float *)(sums + 4 * i))[sg] = share.sum;
            }
        }
        const uint i = thread_index / share_type::head_dim, query = q0 + i;
        const spread_memory memory = {largest + 4 * i, sums + 4 * i, room + 16 * i * L};
        const bool is_own = i < at_once && query < r.count;
        spread_merge<4 * L>(memory, h.head_dim, r.out + query * h.head_dim, r.log_sums + query,
                            is_own ? thread_index % share_type::head_dim : h.head_dim);
    }
}

// By the number of queries and the size of a head, which is 64 or 128.
template <typename T>
inline void shared_heads(device const float *q, attention_head_of<T> h, shared_results r,
                         spread_keys k, threadgroup float4 *room, threadgroup float4 *largest,
                         threadgroup float4 *sums, uint thread_index, uint lane, uint sg) {
    if (h.head_dim == 64 && r.count <= 4)
        shared_attention<4, 16>(q, h, r, k, room, largest, sums, thread_index, lane, sg);
    else if (h.head_dim == 64)
        shared_attention<8, 16>(q, h, r, k, room, largest, sums, thread_index, lane, sg);
    else if (r.count <= 4)
        shared_attention<4, 32>(q, h, r, k, room, largest, sums, thread_index, lane, sg);
    else
        shared_attention<8, 32>(q, h, r, k, room, largest, sums, thread_index, lane, sg);
}
