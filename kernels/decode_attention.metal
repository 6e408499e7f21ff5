// decode_attention: the attention of one query to the whole cache, head by head:
// out = softmax(scale * q K^T) V.
//
// Several query heads may share a head of the cache (grouped-query attention). kv_len is read when
// the kernel runs: bound to device memory, a recorded token can be played at any position.
#include <metal_stdlib>
using namespace metal;

#include "attention.h"
#include "attention_spread.h"
#include "prefetch.h"
#include "eight.h"

// The attention of all queries that share a head of the cache, each row read once.
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
        return (is_upper ? upper : lower) + SWAP(is_upper ? lower : upper, step);
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
        KEEP_ORDER(); // or compilers load values after they use keys
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
                                : products[0].x + SWAP(products[0].x, step);
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
            largest = max(largest, SWAP(largest, step));
        for (uint step = L; step < 32; step *= 2)
            largest = max(largest, SWAP(largest, step));
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
        WAIT_FOR_LANES();
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
            sum += SWAP(sum, step);
        for (uint step = L; step < 32; step *= 2) {
            sum += SWAP(sum, step);
            for (uint q = 0; q < Q; q++)
                parts[q] += SWAP(parts[q], step);
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

// A threadgroup is one simdgroup and computes one head, 32 keys at a time. Reads 8 bytes for each
// dimension of each key, and the query once per key from cache. The first variant: no threadgroup
// barrier, but a head has only 32 threads, and 9 heads do not fill a GPU.
kernel void decode_attention(ATTENTION_ARGUMENTS(float, kv_len),
                             uint head [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float weights[2 * KEYS];
    const attention_head h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    attention_store(attention_run(q + head * head_dim, h, 0, KEYS, kv_len, weights, lane),
                    out + head * head_dim, head_dim, lane);
}

// The products of a query with keys j to j + 3, eight dimensions at a time (eight.h); past the last
// of `count` keys with that one.
METAL_FUNC void dot_four(device const float *q, device const float *keys, attention_head h, uint j,
                         uint count, thread float *dots) {
    eight_floats sums[4];
    for (uint i = 0; i < 4; i++)
        sums[i] = eight_floats(0.0f);
    for (uint d = 0; d < h.head_dim; d += 8) {
        const eight_floats query = load_floats(q + d);
        for (uint i = 0; i < 4; i++) {
            device const float *key = keys + min(j + i, count - 1) * h.stride;
            sums[i] = multiply_add(query, load_floats(key + d), sums[i]);
        }
    }
    for (uint i = 0; i < 4; i++)
        dots[i] = total(sums[i]);
}

// parts = fade * parts + the weighted sum of `count` values, in N eights of dimensions.
template <uint N>
METAL_FUNC void add_values(device const float *values, uint stride, uint count,
                           thread const float *weights, float fade, thread eight_floats *parts) {
    eight_floats sums[N];
    for (uint i = 0; i < N; i++)
        sums[i] = parts[i] * eight_floats(fade);
    for (uint j = 0; j < count; j++)
        for (uint i = 0; i < N; i++)
            sums[i] = multiply_add(eight_floats(weights[j]),
                                   load_floats(values + j * stride + 8 * i), sums[i]);
    for (uint i = 0; i < N; i++)
        parts[i] = sums[i];
}

// One thread computes one head, 32 keys at a time, with the weights and the sums in memory of its
// own. head_dim is a multiple of 16: decode_attention_record refuses anything else. Nothing is
// coalesced and a GPU is nearly empty: this is for the software device, where lanes that meet for
// every 32 keys cost more than the arithmetic.
kernel void decode_attention_per_thread(ATTENTION_ARGUMENTS(float, kv_len),
                                        uint head [[threadgroup_position_in_grid]]) {
    const attention_head h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    eight_floats parts[4 * PARTS];
    for (uint i = 0; i < head_dim / 8; i++)
        parts[i] = eight_floats(0.0f);
    float weights[KEYS];
    float largest = NO_SCORE;
    float sum = 0.0f;
    for (uint first = 0; first < kv_len; first += KEYS) {
        const uint count = min(KEYS, kv_len - first);
        device const float *keys = h.keys + size_t(first) * h.stride;
        device const float *values = h.values + size_t(first) * h.stride;
        float top = largest;
        for (uint j = 0; j < count; j += 4) {
            dot_four(q + head * head_dim, keys, h, j, count, weights + j);
            for (uint i = j; i < j + 4; i++) {
                weights[i] *= scale;
                top = max(top, weights[i]);
            }
        }
        const float fade = exp(largest - top); // 0 at first
        largest = top;
        sum *= fade;
        for (uint j = 0; j < count; j++) {
            weights[j] = exp(weights[j] - top);
            sum += weights[j];
        }
        uint d = 0;
        for (; d + 64 <= head_dim; d += 64)
            add_values<8>(values + d, h.stride, count, weights, fade, parts + d / 8);
        for (; d < head_dim; d += 16)
            add_values<2>(values + d, h.stride, count, weights, fade, parts + d / 8);
    }
    thread const float *all = (thread const float *)parts;
    for (uint d = 0; d < head_dim; d++)
        out[head * head_dim + d] = all[d] / sum;
}

// A threadgroup of 256 computes one head: its 8 simdgroups take the next 32 keys in rotation, each
// with a largest score of its own, and leave their shares in threadgroup memory; after one barrier
// thread d brings dimension d of all shares to the same largest score and adds them up. A simdgroup
// that saw no key has the largest score NO_SCORE and so no weight. Moves as much as
// decode_attention, with 8 times as many threads.
kernel void decode_attention_threadgroup(ATTENTION_ARGUMENTS(float, kv_len),
                                         uint head [[threadgroup_position_in_grid]],
                                         THREAD_PLACE) {
    threadgroup float weights[8 * 2 * KEYS];
    threadgroup float largest[8];
    threadgroup float sums[8];
    threadgroup float parts[8 * 32 * PARTS];
    const attention_head h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    const attention_share share = attention_run(q + head * head_dim, h, sg * KEYS, 8 * KEYS, kv_len,
                                                weights + sg * 2 * KEYS, lane);
    const float sum = simd_sum(share.sum);
    if (lane == 0) {
        largest[sg] = share.largest;
        sums[sg] = sum;
    }
    for (uint part = 0; part < PARTS; part++) {
        const uint d = 32 * part + lane;
        if (d < head_dim)
            parts[sg * head_dim + d] = share.parts[part];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index >= head_dim)
        return;
    float top = largest[0];
    for (uint s = 1; s < 8; s++)
        top = max(top, largest[s]);
    float total = 0.0f;
    float value = 0.0f;
    for (uint s = 0; s < 8; s++) {
        const float fade = exp(largest[s] - top);
        total += fade * sums[s];
        value += fade * parts[s * head_dim + thread_index];
    }
    out[head * head_dim + thread_index] = value / total;
}

// A threadgroup of 512 computes one head (attention_spread.h), 256 keys of 64 dimensions per turn.
// head_dim is a multiple of 32: decode_attention_record refuses anything else. The newest row of
// the cache may be what the launch before has written.
template <typename T> [[kernel, max_total_threads_per_threadgroup(512)]] void
decode_attention_spread(ATTENTION_ARGUMENTS(T, kv_len),
                        uint head [[threadgroup_position_in_grid]],
                        THREAD_PLACE) {
    threadgroup float4 largest[4];
    threadgroup float4 sums[4];
    threadgroup float4 parts[16 * 64];
    const spread_memory memory = {largest, sums, parts};
    const attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    // Never so, but what follows then waits until the head is found.
    if (h.head >= n_kv_heads)
        return;
    const spread_keys keys = {0, kv_len, kv_len - 1};
    spread_attention<LOADS_AHEAD>(q + head * head_dim, h, keys, memory, out + head * head_dim,
                                  nullptr, thread_index, lane, sg);
}

// For a long cache: the first axis of the grid counts heads, the second `ranges` equal ranges of
// keys, so that a few heads fill a GPU. out (ranges, n_heads, head_dim): the attention to a range
// alone; log_sums (ranges, n_heads): what it weighs beside the others, NO_SCORE if it has no keys.
template <typename T> [[kernel, max_total_threads_per_threadgroup(512)]] void
attention_ranges(ATTENTION_ARGUMENTS(T, kv_len),
                 device float *log_sums [[buffer(9)]],
                 constant uint &ranges [[buffer(10)]],
                 uint2 group [[threadgroup_position_in_grid]],
                 THREAD_PLACE) {
    threadgroup float4 largest[4];
    threadgroup float4 sums[4];
    threadgroup float4 parts[16 * 64];
    const spread_memory memory = {largest, sums, parts};
    const attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, group.x, n_heads, n_kv_heads, head_dim, scale);
    // Never so, but what follows then waits until the head is found.
    if (h.head >= n_kv_heads)
        return;
    const uint each = (kv_len + ranges - 1) / ranges;
    const uint first = group.y * each;
    const uint at = group.y * n_heads + group.x;
    out += size_t(at) * head_dim;
    log_sums += at;
    if (first < kv_len) {
        const spread_keys keys = {first, min(each, kv_len - first), kv_len - 1 - first};
        spread_attention<LOADS_AHEAD>(q + group.x * head_dim, h, keys, memory, out, log_sums,
                                      thread_index, lane, sg);
        return;
    }
    PREFETCHED(0); // only the scalars
    if (thread_index < head_dim)
        out[thread_index] = 0.0f;
    if (thread_index == 0)
        *log_sums = NO_SCORE;
}

// The same with up to 8 of the queries that share a head of the cache in a threadgroup
// (shared_share), so that a row is read once for them: the first axis of the grid counts these
// sets of queries. head_dim is 64 or 128: the record function refuses anything else.
template <typename T> [[kernel, max_total_threads_per_threadgroup(512)]] void
attention_ranges_shared(ATTENTION_ARGUMENTS(T, kv_len),
                        device float *log_sums [[buffer(9)]],
                        constant uint &ranges [[buffer(10)]],
                        uint2 group [[threadgroup_position_in_grid]],
                        THREAD_PLACE) {
    threadgroup float4 room[SHARED_ROOM];
    threadgroup float4 largest[4 * 4];
    threadgroup float4 sums[4 * 4];
    const uint sharing = n_heads / n_kv_heads;
    const uint sets = (sharing + 7) / 8;
    const uint head = group.x / sets * sharing + group.x % sets * 8;
    const uint count = min(sharing - group.x % sets * 8, 8u);
    attention_head_of<T> h =
        attention_find_head(k_cache, v_cache, head, n_heads, n_kv_heads, head_dim, scale);
    // Never so, but what follows then waits until the head is found.
    if (h.head >= n_kv_heads)
        return;
    const uint each = (kv_len + ranges - 1) / ranges;
    const uint first = group.y * each;
    const uint at = group.y * n_heads + head;
    const shared_results results = {out + size_t(at) * head_dim, log_sums + at, count};
    if (first >= kv_len) {
        PREFETCHED(0); // only the scalars
        for (uint i = thread_index; i < count * head_dim; i += 512)
            results.out[i] = 0.0f;
        if (thread_index < count)
            results.log_sums[thread_index] = NO_SCORE;
        return;
    }
    h.keys += size_t(first) * h.stride;
    h.values += size_t(first) * h.stride;
    const spread_keys keys = {0, min(each, kv_len - first), kv_len - 1 - first};
    shared_heads(q + head * head_dim, h, results, keys, room, largest, sums, thread_index, lane,
                 sg);
}

// One head of attention_merge, R ranges at a time, all loads of them under way together: past the last
// range they are those of the last one, without weight.
template <uint R>
inline void merge_ranges(device const float *parts, device const float *log_sums, device float *out,
                         uint n_heads, uint head_dim, uint ranges, uint head, uint thread_index) {
    for (uint start = 0; start < head_dim; start += 64) {
        const uint d = min(start + thread_index, head_dim - 1);
        float top = NO_SCORE;
        float total = 0.0f;
        float value = 0.0f;
        for (uint first = 0; first < ranges; first += R) {
            float values[R];
            float logs[R];
            for (uint r = 0; r < R; r++) {
                const uint at = min(first + r, ranges - 1) * n_heads + head;
                values[r] = parts[size_t(at) * head_dim + d];
                logs[r] = log_sums[at];
            }
            KEEP_ORDER(); // or compilers load values after the sums
            const float before = top;
            for (uint r = 0; r < R; r++)
                top = max(top, logs[r]);
            const float fade = first > 0 ? exp(before - top) : 0.0f;
            total *= fade;
            value *= fade;
            for (uint r = 0; r < R; r++) {
                const float weight = first + r < ranges ? exp(logs[r] - top) : 0.0f;
                total += weight;
                value += weight * values[r];
            }
        }
        if (start + thread_index < head_dim)
            out[head * head_dim + d] = value / total;
    }
}

// The attention to all keys from that to each range: a threadgroup computes one head, a thread
// dimensions thread, thread + 64, ... of it. Up to 48 ranges are one trip to memory, where registers allow
// it.
kernel void attention_merge(device const float *parts [[buffer(0)]],
                            device const float *log_sums [[buffer(1)]],
                            device float *out [[buffer(2)]],
                            constant uint &n_heads [[buffer(3)]],
                            constant uint &head_dim [[buffer(4)]],
                            constant uint &ranges [[buffer(5)]],
                            uint head [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]]) {
    PREFETCHED(0); // only the scalars
    if (LOADS_AHEAD && ranges > 32)
        merge_ranges<48>(parts, log_sums, out, n_heads, head_dim, ranges, head, thread_index);
    else if (LOADS_AHEAD && ranges > 16)
        merge_ranges<32>(parts, log_sums, out, n_heads, head_dim, ranges, head, thread_index);
    else
        merge_ranges<16>(parts, log_sums, out, n_heads, head_dim, ranges, head, thread_index);
}

// By what the caches hold.
KERNEL("decode_attention_spread", decode_attention_spread<float>)
KERNEL("decode_attention_spread_f16", decode_attention_spread<half>)
KERNEL("attention_ranges", attention_ranges<float>)
KERNEL("attention_ranges_f16", attention_ranges<half>)
KERNEL("attention_ranges_shared", attention_ranges_shared<float>)
KERNEL("attention_ranges_shared_f16", attention_ranges_shared<half>)
