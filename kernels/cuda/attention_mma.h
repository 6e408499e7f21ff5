// attention_mma: the attention of up to 8 queries that share a head of the cache, by tensor cores.
//
// Scores are S (queries, keys) = Q K^T, results are P V with P = exp(S - largest), each a series of mma of
// 16 rows and 8 columns. There are 8 queries at most, so a matrix of 16 rows has two parts of each: row i
// has the upper bits of a value, row i + 8 what is left of it. Their products meet in the same lane
// (lane / 4 is the query), and one addition makes a float's precision of them.
//
// Halves of a cache are exact, and m16n8k16 multiplies them; so queries are multiplied by a power of two, as in
// skinny_bulk.h, and weights by 2^14, so that what is left of them fits in halves, too. Floats of a cache have
// exponents that halves do not have: m16n8k8 takes the upper 11 bits of floats (tf32), so they are split
// as well, into 11 bits and what is left, of which it takes the upper 11.
//
// No value goes through shared memory: the order of dimensions in a score, and of keys in a result, is
// free, so it is chosen such that 16 bytes of a row are what a lane needs. A lane has keys lane / 4 and 8,
// 16, ... after it, a quarter of each; and values 2 * (lane % 4) and 1 after it and so on, an eighth of each.
// For results, halves of two values are put into one register.
//
// A turn of a warp is 4 KB of keys and as many of values, all in registers; as soon as those of a turn are
// multiplied, those of the next one are loaded in their place.
#pragma once

#include "../attention.h"
#include "../prefetch.h"

enum : uint { MMA_WARPS = 8, MMA_QUERIES = 8, MMA_THREADS = 32 * MMA_WARPS };

// How many values of T are 16 bytes, of how many keys an mma makes a result, and what weights are multiplied by.
template <typename T> struct mma_kind {
    enum : uint { values = 4, tiles = 1, lift = 1 };
};
template <> struct mma_kind<half> {
    enum : uint { values = 8, tiles = 2, lift = 1 << 14 };
};

// What a tensor core takes of a float, and the rest.
METAL_FUNC void mma_split(float v, thread uint &upper, thread uint &lower) {
    upper = as_type<uint>(v) & 0xFFFFE000u;
    lower = as_type<uint>(v - as_type<float>(upper));
}
METAL_FUNC void mma_split(float a, float b, thread uint &upper, thread uint &lower) {
    upper = cuda::pack_halves(a, b);
    const half2 taken = as_type<half2>(upper);
    lower = cuda::pack_halves(a - float(taken.x), b - float(taken.y));
}

// The queries of a warp as the rows of an mma, D dimensions in steps. A lane has query lane / 4.
template <typename T, uint D> struct mma_queries;

template <uint D> struct mma_queries<half, D> {
    uint parts[D / 16][2][2];
    float unit; // what products are to be multiplied by

    METAL_FUNC void take(device const float *q, uint lane) {
        float4 v[D / 16];
        float largest = 0.0f;
        for (uint i = 0; i < D / 16; i++) {
            v[i] = *(device const float4 *)(q + 32 * (i / 2) + 8 * (lane % 4) + 4 * (i % 2));
            for (uint k = 0; k < 4; k++)
                largest = max(largest, fabs(v[i][k]));
        }
        for (uint mask = 1; mask < 4; mask *= 2)
            largest = max(largest, cuda::shuffle_xor(largest, mask));
        const uint exponent = clamp(as_type<uint>(largest) >> 23u, 15u, 254u);
        const float up = as_type<float>((268u - exponent) << 23u);
        unit = as_type<float>((exponent - 14u) << 23u);
        for (uint i = 0; i < D / 16; i++) {
            const float4 all = v[i] * up;
            mma_split(all.x, all.y, parts[i][0][0], parts[i][1][0]);
            mma_split(all.z, all.w, parts[i][0][1], parts[i][1][1]);
        }
    }
    // The products with keys 2 * (lane % 4) and 1 after it.
    METAL_FUNC float2 multiply(thread const uint4 (&row)[D / 32]) const {
        float d[2][2] = {};
        for (uint i = 0; i < D / 16; i++) {
            const uint b[2] = {row[i / 2][i % 2 * 2], row[i / 2][i % 2 * 2 + 1]};
            cuda::mma_halves(parts[i], b, d);
        }
        return float2(d[0][0] + d[1][0], d[0][1] + d[1][1]);
    }
};

template <uint D> struct mma_queries<float, D> {
    uint parts[D / 8][2][2];
    float unit;

    METAL_FUNC void take(device const float *q, uint lane) {
        unit = 1.0f;
        for (uint i = 0; i < D / 16; i++) {
            const float4 v = *(device const float4 *)(q + 16 * i + 4 * (lane % 4));
            for (uint k = 0; k < 4; k++) {
                thread uint(&two)[2][2] = parts[2 * i + k / 2];
                mma_split(v[k], two[0][k % 2], two[1][k % 2]);
            }
        }
    }
    METAL_FUNC float2 multiply(thread const uint4 (&row)[D / 16]) const {
        float upper[2][2] = {}, lower[2][2] = {};
        for (uint i = 0; i < D / 8; i++) {
            uint b[2][2];
            for (uint k = 0; k < 2; k++)
                mma_split(as_type<float>(row[i / 2][i % 2 * 2 + k]), b[0][k], b[1][k]);
            cuda::mma_floats(parts[i], b[0], upper);
            cuda::mma_floats(parts[i], b[1], lower);
        }
        return float2(upper[0][0] + (upper[1][0] + lower[0][0] + lower[1][0]),
                      upper[0][1] + (upper[1][1] + lower[0][1] + lower[1][1]));
    }
};

// The weights of an mma's keys, as its rows: of 16 keys for halves, of 8 for floats.
template <typename T> struct mma_weights;

template <> struct mma_weights<half> {
    uint parts[2][2];

    METAL_FUNC void take(thread const float2 *w) {
        for (uint i = 0; i < 2; i++)
            mma_split(w[i].x, w[i].y, parts[0][i], parts[1][i]);
    }
    // d += the products with value i of eight of each 16 bytes: of two rows, and of two more.
    METAL_FUNC void multiply(thread const uint4 *const (&rows)[4], uint i,
                             thread float (&d)[2][2]) const {
        const uint selector = i % 2 ? 0x7632u : 0x5410u;
        const uint b[2] = {cuda::permute((*rows[0])[i / 2], (*rows[1])[i / 2], selector),
                           cuda::permute((*rows[2])[i / 2], (*rows[3])[i / 2], selector)};
        cuda::mma_halves(parts, b, d);
    }
};

// A tensor core takes no more than 10 bits of the smallest floats either, so what is left of a value is
// multiplied by 2^13, and its weights are divided by that.
template <> struct mma_weights<float> {
    enum : uint { rest = 1 << 13 };
    uint parts[2][2], rests[2][2];

    METAL_FUNC void take(thread const float2 *w) {
        for (uint i = 0; i < 2; i++)
            mma_split(w[0][i], parts[0][i], parts[1][i]);
        for (uint i = 0; i < 4; i++)
            rests[i / 2][i % 2] = as_type<uint>(as_type<float>(parts[i / 2][i % 2]) / float(rest));
    }
    METAL_FUNC void multiply(thread const uint4 *const (&rows)[2], uint i,
                             thread float (&d)[2][2]) const {
        uint upper[2], lower[2];
        for (uint k = 0; k < 2; k++) {
            mma_split(as_type<float>((*rows[k])[i]), upper[k], lower[k]);
            lower[k] = as_type<uint>(as_type<float>(lower[k]) * float(rest));
        }
        cuda::mma_floats(parts, upper, d);
        cuda::mma_floats(rests, lower, d);
    }
};

// What four lanes know of the keys that their query has seen.
template <typename T, uint D> struct mma_softmax {
    mma_queries<T, D> queries;
    float largest; // score so far
    float sum;     // of the weights of this lane's keys, which are multiplied by mma_kind::lift
    float parts[D / 8][2];

    METAL_FUNC void clear() {
        largest = NO_SCORE;
        sum = 0.0f;
        for (uint i = 0; i < D / 8; i++)
            parts[i][0] = parts[i][1] = 0.0f;
    }

    // From scores of keys `first` and on, of which it sees those before `seen`, to weights; the result is what
    // sums of before are to be multiplied by.
    template <uint tiles> METAL_FUNC float weigh(thread float2 (&scores)[tiles], uint first,
                                                 uint seen, float scale, uint lane) {
        const float before = largest;
        for (uint i = 0; i < tiles; i++)
            for (uint e = 0; e < 2; e++) {
                const bool is_key = first + 8 * i + 2 * (lane % 4) + e < seen;
                scores[i][e] = is_key ? scores[i][e] * queries.unit * scale : NO_SCORE;
                largest = max(largest, scores[i][e]);
            }
        for (uint mask = 1; mask < 4; mask *= 2)
            largest = max(largest, cuda::shuffle_xor(largest, mask));
        // Without a key both differences are of NO_SCORE from itself: under fast math, anything.
        const float fade = before > NO_SCORE ? exp(before - largest) : 0.0f;
        sum *= fade;
        for (uint i = 0; i < tiles; i++)
            for (uint e = 0; e < 2; e++) {
                const float weight = exp(scores[i][e] - largest) * float(mma_kind<T>::lift);
                scores[i][e] = scores[i][e] > NO_SCORE ? weight : 0.0f;
                sum += scores[i][e];
            }
        return fade;
    }

    // The sum of all four lanes.
    METAL_FUNC void add_up() {
        for (uint mask = 1; mask < 4; mask *= 2)
            sum += cuda::shuffle_xor(sum, mask);
    }
    // Four neighbours of this lane's dimensions of the result, and the first of them.
    METAL_FUNC float4 get(uint n, uint e) const {
        return float4(parts[n][e], parts[n + 1][e], parts[n + 2][e], parts[n + 3][e]);
    }
    static METAL_FUNC uint find(uint n, uint e, uint lane) {
        enum : uint { values = mma_kind<T>::values };
        return n / values * 8 * values + values * (2 * (lane % 4) + e) + n % values;
    }
};
// What a warp knows of the keys it has seen.
template <typename T, uint D> struct mma_share {
    typedef mma_kind<T> kind;
    enum : uint {
        values = kind::values,              // in 16 bytes
        tiles = 4096 / (8 * D * sizeof(T)), // of 8 keys, per turn
        keys = 8 * tiles,                   // of a turn of this warp
        step = MMA_WARPS * keys,            // of a turn of the thread block
        key_quads = D * sizeof(T) / 64,     // of each key of a lane
        value_quads = D * sizeof(T) / 128,  // of each value of a lane
        steps = tiles / kind::tiles         // of results
    };
    attention_head_of<T> h;
    uint count; // of all keys
    mma_softmax<T, D> softmax;
    uint4 rows[tiles][key_quads];
    uint4 others[tiles][2][value_quads]; // values

    METAL_FUNC void start(attention_head_of<T> head, uint all) {
        h = head;
        count = all;
        softmax.clear();
    }

    // Past the last row it is the last one.
    METAL_FUNC device const uint4 *find_row(device const T *from, uint row) const {
        return (device const uint4 *)(from + size_t(min(row, count - 1)) * h.stride);
    }
    METAL_FUNC void load_keys(uint first, uint lane) {
        for (uint i = 0; i < tiles; i++) {
            device const uint4 *row = find_row(h.keys, first + 8 * i + lane / 4);
            for (uint k = 0; k < key_quads; k++)
                rows[i][k] = row[4 * k + lane % 4];
        }
    }
    METAL_FUNC void load_values(uint first, uint lane) {
        for (uint i = 0; i < tiles; i++)
            for (uint e = 0; e < 2; e++) {
                device const uint4 *row = find_row(h.values, first + 8 * i + 2 * (lane % 4) + e);
                for (uint k = 0; k < value_quads; k++)
                    others[i][e][k] = row[8 * k + lane / 4];
            }
    }

    METAL_FUNC void add_values(thread const float2 (&w)[tiles], float fade) {
        mma_weights<T> weights[steps];
        for (uint s = 0; s < steps; s++)
            weights[s].take(w + kind::tiles * s);
        for (uint n = 0; n < D / 8; n++) {
            float d[2][2] = {};
            for (uint s = 0; s < steps; s++) {
                thread const uint4 *of[2 * kind::tiles];
                for (uint i = 0; i < 2 * kind::tiles; i++)
                    of[i] = &others[kind::tiles * s + i / 2][i % 2][n / values];
                weights[s].multiply(of, n % values, d);
            }
            for (uint e = 0; e < 2; e++)
                softmax.parts[n][e] = fma(softmax.parts[n][e], fade, d[0][e] + d[1][e]);
        }
    }

    // Adds the turn of keys `first` and on, and loads the next one in its place if this warp has any of it.
    METAL_FUNC void add(uint first, uint lane) {
        const bool has_next = first + step < count;
        float2 weights[tiles];
        cuda::sync_warp(); // or compilers load values after they use keys
        for (uint i = 0; i < tiles; i++)
            weights[i] = softmax.queries.multiply(rows[i]);
        if (has_next)
            load_keys(first + step, lane);
        const float fade = softmax.weigh(weights, first, count, h.scale, lane);
        add_values(weights, fade);
        if (has_next)
            load_values(first + step, lane);
    }
};

// Shared memory, after the last turn: the parts of all warps, the largest scores and sums of weights, and what
// the parts are to be multiplied by.
struct mma_memory {
    enum : uint { each = MMA_WARPS * MMA_QUERIES, stride = 128 + 4, floats = each * (stride + 3) };
    threadgroup float *parts, *largest, *sums, *factors;

    METAL_FUNC mma_memory() {
        parts = (threadgroup float *)cuda::get_shared_memory<4 * floats>();
        largest = parts + each * stride;
        sums = largest + each;
        factors = sums + each;
    }

    template <typename T, uint D>
    METAL_FUNC void leave(thread mma_softmax<T, D> &softmax, uint lane, uint sg) const {
        const uint query = lane / 4;
        softmax.add_up();
        if (lane % 4 == 0) {
            largest[MMA_WARPS * query + sg] = softmax.largest;
            sums[MMA_WARPS * query + sg] = softmax.sum;
        }
        threadgroup float *to = parts + (MMA_QUERIES * sg + query) * stride;
        for (uint n = 0; n < D / 8; n += 4)
            for (uint e = 0; e < 2; e++)
                *(threadgroup float4 *)(to + softmax.find(n, e, lane)) = softmax.get(n, e);
    }

    // Every eight lanes have the eight warps of a query; two warps do it. The logarithm of the sum of
    // exp(score) is of every lane.
    METAL_FUNC float weigh(uint thread_index, float lift) const {
        const float own = largest[thread_index];
        float top = own;
        for (uint mask = 1; mask < MMA_WARPS; mask *= 2)
            top = max(top, cuda::shuffle_xor(top, mask));
        const float fade = exp(own - top);
        float total = fade * sums[thread_index];
        for (uint mask = 1; mask < MMA_WARPS; mask *= 2)
            total += cuda::shuffle_xor(total, mask);
        factors[thread_index] = fade / total;
        return top + log(total / lift);
    }

    // Dimensions 4 d to 3 after it of a query.
    METAL_FUNC float4 merge(uint query, uint d) const {
        float4 sum = 0.0f;
        for (uint w = 0; w < MMA_WARPS; w++) {
            threadgroup const float *of = parts + (MMA_QUERIES * w + query) * stride;
            sum += factors[MMA_WARPS * query + w] * *(threadgroup const float4 *)(of + 4 * d);
        }
        return sum;
    }
};

// Of the queries of a thread block, and where their results go: (queries, head_dim), and a log_sum each.
struct mma_results {
    device const float *q;
    device float *out;
    device float *log_sums;
    uint queries; // at most MMA_QUERIES
};

// Keys 0 to count - 1 of h, of which those from `fresh` on may be what the launch before has written. The
// caches are buffers 1 and 2: the first turn is loaded before that launch has ended unless it has such a row.
template <typename T, uint D> METAL_FUNC void mma_attend(attention_head_of<T> h, mma_results r,
                                                         uint count, uint fresh, mma_memory memory,
                                                         uint thread_index, uint sg, uint lane) {
    typedef mma_share<T, D> share_of;
    share_of share;
    share.start(h, count);
    uint first = share_of::keys * sg;
    const bool is_old = fresh >= min(count, uint(share_of::step));
    if (is_old) {
        share.load_keys(first, lane);
        share.load_values(first, lane);
    }
    PREFETCHED_ROWS(1 << 1 | 1 << 2);
    if (!is_old) {
        share.load_keys(first, lane);
        share.load_values(first, lane);
    }
    share.softmax.queries.take(r.q + min(lane / 4, r.queries - 1) * D, lane);
    for (; first < count; first += share_of::step)
        share.add(first, lane);
    memory.leave(share.softmax, lane, sg);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg < MMA_QUERIES * MMA_WARPS / 32) {
        const float log_sum = memory.weigh(thread_index, float(mma_kind<T>::lift));
        const uint query = thread_index / MMA_WARPS;
        if (thread_index % MMA_WARPS == 0 && query < r.queries)
            r.log_sums[query] = log_sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < r.queries * (D / 4))
        ((device float4 *)r.out)[thread_index] =
            memory.merge(thread_index / (D / 4), thread_index % (D / 4));
}
