// time_mix_v7: the recurrence of RWKV-7, over one token or many.
//
// Each head has a state S (head_size, head_size), in place. Per token, for row i:
//   sa   = -(S[i] . kk)                                      how much of kk the row remembers
//   S[i] = S[i] * w + v[i] * k + sa * (kk * a)               forget, write, correct
//   y[i] = S[i] . r
// packed (4, tokens, dim) holds k, v, a, kk; w is the decay itself. Rows of S depend on no other
// row, so a head can be spread over several threadgroups. S is read once and written once per
// launch, whatever the number of tokens: it stays in registers in between.
#include <metal_stdlib>
using namespace metal;

#include "prefetch.h"
#include "swap.h"

struct sizes {
    uint tokens, heads, head_size;
};

constant uint MOST_WIDES = 64; // float4s in the longest row: heads of up to 256

inline float total(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

// One thread per row. N is the head size where it is known, so that S is in registers; 0: any.
template <uint N>
METAL_FUNC void scan_row(device const float *r, device const float *w, device const float *packed,
                         device float *state, device float *y, sizes n, uint row) {
    const uint wides = (N ? N : n.head_size) / 4;
    const uint dim = n.heads * n.head_size;
    const uint head = row / n.head_size * n.head_size;
    const size_t plane = size_t(n.tokens) * dim;
    device float4 *kept = (device float4 *)(state + size_t(row) * n.head_size);
    float4 s[N ? N / 4 : MOST_WIDES];
    for (uint j = 0; j < wides; j++)
        s[j] = kept[j];
    for (uint t = 0; t < n.tokens; t++) {
        const size_t at = size_t(t) * dim;
        device const float4 *r4 = (device const float4 *)(r + at + head);
        device const float4 *w4 = (device const float4 *)(w + at + head);
        device const float4 *k4 = (device const float4 *)(packed + at + head);
        device const float4 *a4 = (device const float4 *)(packed + 2 * plane + at + head);
        device const float4 *kk4 = (device const float4 *)(packed + 3 * plane + at + head);
        const float v = packed[plane + at + row];
        float4 dots = float4(0.0f);
        for (uint j = 0; j < wides; j++)
            dots = fma(s[j], kk4[j], dots);
        const float sa = -total(dots);
        float4 sums = float4(0.0f);
        for (uint j = 0; j < wides; j++) {
            s[j] = fma(float4(sa), kk4[j] * a4[j], fma(float4(v), k4[j], s[j] * w4[j]));
            sums = fma(s[j], r4[j], sums);
        }
        y[at + row] = total(sums);
    }
    for (uint j = 0; j < wides; j++)
        kept[j] = s[j];
}

#define TIME_MIX_ARGUMENTS(V)                                                                      \
    device const V *r [[buffer(0)]], device const V *w [[buffer(1)]],                              \
        device const V *packed [[buffer(2)]], device V *state [[buffer(3)]],                       \
        device float *y [[buffer(4)]], constant uint &tokens [[buffer(5)]],                        \
        constant uint &heads [[buffer(6)]], constant uint &head_size [[buffer(7)]]

// A threadgroup of 32 computes 32 rows. Every thread reads the vectors of its head by itself, from
// cache. For the software device, which runs it as a plain loop.
kernel void time_mix_v7_per_thread(TIME_MIX_ARGUMENTS(float),
                                   uint row [[thread_position_in_grid]]) {
    const sizes n = {tokens, heads, head_size};
    if (row >= heads * head_size)
        return;
    if (head_size == 64)
        scan_row<64>(r, w, packed, state, y, n, row);
    else
        scan_row<0>(r, w, packed, state, y, n, row);
}

// The vectors of a few tokens in threadgroup memory: r, w, k, v, kk, kk * a, each (tokens, N).
constant uint STAGED = 512; // floats of each: 8 tokens of a head of 64, 2 of a head of 256
enum staged_vector { STAGED_R, STAGED_W, STAGED_K, STAGED_V, STAGED_KK, STAGED_B, STAGED_COUNT };

// One quad per row: lane `part` keeps float4s part, part + 4, ... of it, so that a quad reads 64
// bytes of state at a time, and the sums over a row are over 4 lanes. Without N the state stays where
// it is, in device memory: an array of unknown length would be in memory too. Rows past the end of a
// small head have no state, but all lanes must take part in the sums.
template <uint N>
METAL_FUNC void scan_quad(device const float *r, device const float *w, device const float *packed,
                          device float *state, device float *y, sizes n, uint head, uint row,
                          threadgroup float *staged, uint thread_index, uint threads) {
    const uint size = N ? N : n.head_size;
    const uint part = thread_index % 4;
    const uint own = row < size ? (size / 4 - min(part, size / 4) + 3) / 4 : 0; // float4s of this lane
    const uint wides = N ? N / 16 : own;
    const uint dim = n.heads * n.head_size;
    const size_t plane = size_t(n.tokens) * dim;
    const uint kept_row = min(row, size - 1);
    device float4 *kept =
        (device float4 *)(state + (size_t(head) * size + kept_row) * size) + part;
    float4 s[N ? N / 16 : 1];
    for (uint j = 0; N && j < wides; j++)
        s[j] = kept[4 * j];
    const uint most = STAGED / size;
    for (uint first = 0; first < n.tokens; first += most) {
        const uint count = min(most, n.tokens - first);
        threadgroup_barrier(mem_flags::mem_threadgroup); // the last tokens have been read
        for (uint i = thread_index; i < count * size; i += threads) {
            const size_t at = size_t(first + i / size) * dim + head * size + i % size;
            const float kk = packed[3 * plane + at];
            staged[STAGED_R * STAGED + i] = r[at];
            staged[STAGED_W * STAGED + i] = w[at];
            staged[STAGED_K * STAGED + i] = packed[at];
            staged[STAGED_V * STAGED + i] = packed[plane + at];
            staged[STAGED_KK * STAGED + i] = kk;
            staged[STAGED_B * STAGED + i] = kk * packed[2 * plane + at];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint t = 0; t < count; t++) {
            threadgroup const float4 *v4 = (threadgroup const float4 *)(staged + t * size) + part;
            const uint vector = STAGED / 4;
            const float v = staged[STAGED_V * STAGED + t * size + kept_row];
            float4 dots = float4(0.0f);
            for (uint j = 0; j < wides; j++)
                dots = fma(N ? s[j] : kept[4 * j], v4[STAGED_KK * vector + 4 * j], dots);
            const float sa = -quad_sum(total(dots));
            float4 sums = float4(0.0f);
            for (uint j = 0; j < wides; j++) {
                const float4 now = fma(float4(sa), v4[STAGED_B * vector + 4 * j],
                                       fma(float4(v), v4[STAGED_K * vector + 4 * j],
                                           (N ? s[j] : kept[4 * j]) * v4[STAGED_W * vector + 4 * j]));
                sums = fma(now, v4[STAGED_R * vector + 4 * j], sums);
                if (N)
                    s[j] = now;
                else
                    kept[4 * j] = now;
            }
            const float sum = quad_sum(total(sums));
            if (part == 0 && row < size)
                y[size_t(first + t) * dim + head * size + row] = sum;
        }
    }
    if (N && row < size)
        for (uint j = 0; j < wides; j++)
            kept[4 * j] = s[j];
}

// A threadgroup of 64 computes 16 rows of a head: a head of 64 is four threadgroups. The vectors of
// a few tokens at a time are brought to threadgroup memory, where every row reads them: two
// barriers per 8 tokens of a head of 64.
kernel void time_mix_v7(TIME_MIX_ARGUMENTS(float),
                        uint2 group [[threadgroup_position_in_grid]],
                        uint2 index [[thread_position_in_threadgroup]],
                        uint2 threads [[threads_per_threadgroup]]) {
    threadgroup float4 staged[STAGED_COUNT * STAGED / 4];
    const sizes n = {tokens, heads, head_size};
    const uint row = group.x * 16 + index.x / 4;
    threadgroup float *vectors = (threadgroup float *)staged;
    PREFETCHED(0); // only the scalars
    if (head_size == 64)
        scan_quad<64>(r, w, packed, state, y, n, group.y, row, vectors, index.x, threads.x);
    else
        scan_quad<0>(r, w, packed, state, y, n, group.y, row, vectors, index.x, threads.x);
}

// Heads of 64 in prompts: the vectors of the next 8 tokens are loaded while those of 8 are used, and the
// sums y of 4 tokens are brought together at once, so that a token takes little longer than the one sum
// that the next one waits for.
enum : uint { AHEAD = 8, WIDES = 16, ROW_THREADS = 64, LOADS = AHEAD * WIDES / ROW_THREADS };

// A thread's float4s of each vector of 8 tokens.
struct ahead_vectors {
    float4 v[STAGED_COUNT][LOADS];

    // Past the last token, the last is repeated.
    METAL_FUNC void load(device const float4 *r, device const float4 *w, device const float4 *packed,
                         sizes n, uint head, uint first, uint index) {
        const uint dim = n.heads * WIDES;
        const size_t plane = size_t(n.tokens) * dim;
        for (uint i = 0; i < LOADS; i++) {
            const uint place = index + ROW_THREADS * i;
            const size_t at = size_t(min(first + place / WIDES, n.tokens - 1)) * dim +
                              head * WIDES + place % WIDES;
            v[STAGED_R][i] = r[at];
            v[STAGED_W][i] = w[at];
            v[STAGED_K][i] = packed[at];
            v[STAGED_V][i] = packed[plane + at];
            v[STAGED_KK][i] = packed[3 * plane + at];
            v[STAGED_B][i] = packed[2 * plane + at]; // a
        }
    }
    METAL_FUNC void put(threadgroup float4 *staged, uint index) const {
        for (uint i = 0; i < LOADS; i++)
            for (uint k = 0; k < STAGED_COUNT; k++)
                staged[k * (AHEAD * WIDES) + index + ROW_THREADS * i] =
                    k == STAGED_B ? v[STAGED_KK][i] * v[k][i] : v[k][i];
    }
};

// The sum of a value over 8 lanes, for all of them, always in the same order.
inline float sum_of_eight(float value) {
    value += SWAP(value, 4);
    value += SWAP(value, 2);
    return value + SWAP(value, 1);
}

// Two rows by 8 lanes: lane `part` has float4s part and part + 8 of both. What a lane loads of a token serves
// both rows: a row per quad loads twice as much, and waits for that.
struct ahead_rows {
    float4 s[2][2];

    // What this lane adds to y of a token, whose vectors from float4 `part` on are at `at`.
    METAL_FUNC float2 step(threadgroup const float4 *at, float2 v) {
        float4 own[STAGED_COUNT][2];
        for (uint k = 0; k < STAGED_COUNT; k++)
            for (uint j = 0; k != STAGED_V && j < 2; j++)
                own[k][j] = at[k * (AHEAD * WIDES) + 8 * j];
        float2 y;
        for (uint r = 0; r < 2; r++) {
            const float sa = -sum_of_eight(
                total(fma(s[r][1], own[STAGED_KK][1], s[r][0] * own[STAGED_KK][0])));
            float4 sums = float4(0.0f);
            for (uint j = 0; j < 2; j++) {
                const float4 kept = fma(float4(v[r]), own[STAGED_K][j], s[r][j] * own[STAGED_W][j]);
                s[r][j] = fma(float4(sa), own[STAGED_B][j], kept);
                sums = fma(s[r][j], own[STAGED_R][j], sums);
            }
            y[r] = total(sums);
        }
        return y;
    }
};

// A threadgroup of 64 computes 16 rows of a head.
kernel void time_mix_v7_prefetch(TIME_MIX_ARGUMENTS(float4),
                                 uint2 group [[threadgroup_position_in_grid]],
                                 uint2 index [[thread_position_in_threadgroup]]) {
    enum : uint { each = STAGED_COUNT * AHEAD * WIDES };
    threadgroup float4 staged[2 * each];
    const sizes n = {tokens, heads, head_size};
    const uint part = index.x % 8;
    const uint row = group.x * 16 + index.x / 8 * 2;
    device float4 *kept = state + (size_t(group.y) * 64 + row) * WIDES + part;
    y += group.y * 64 + row;
    PREFETCHED(0); // only the scalars
    ahead_vectors next;
    next.load(r, w, packed, n, group.y, 0, index.x);
    ahead_rows own;
    for (uint j = 0; j < 4; j++)
        own.s[j / 2][j % 2] = kept[j / 2 * WIDES + j % 2 * 8];
    next.put(staged, index.x);
    for (uint first = 0; first < tokens; first += AHEAD) {
        threadgroup const float4 *here = staged + first / AHEAD % 2 * each;
        threadgroup const float2 *v =
            (threadgroup const float2 *)(here + STAGED_V * (AHEAD * WIDES)) + row / 2;
        const uint count = min(uint(AHEAD), tokens - first);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        next.load(r, w, packed, n, group.y, first + AHEAD, index.x);
        uint t = 0;
        for (; t + 4 <= count; t += 4) { // a lane gets the sum of token part / 2 of these, row part % 2
            float2 sums[4];
            for (uint i = 0; i < 4; i++)
                sums[i] = own.step(here + (t + i) * WIDES + part, v[(t + i) * 32]);
            const bool bits[3] = {part % 2 != 0, part / 2 % 2 != 0, part / 4 != 0};
            float2 some[2];
            for (uint i = 0; i < 2; i++)
                some[i] = (bits[2] ? sums[2 + i] : sums[i]) +
                          SWAP((bits[2] ? sums[i] : sums[2 + i]), 4);
            const float2 two =
                (bits[1] ? some[1] : some[0]) + SWAP((bits[1] ? some[0] : some[1]), 2);
            const float sum = (bits[0] ? two.y : two.x) + SWAP((bits[0] ? two.x : two.y), 1);
            y[size_t(first + t + part / 2) * (heads * 64) + part % 2] = sum;
        }
        for (; t < count; t++) {
            const float2 sums = own.step(here + t * WIDES + part, v[t * 32]);
            const float first_sum = sum_of_eight(sums.x), second_sum = sum_of_eight(sums.y);
            if (part < 2)
                y[size_t(first + t) * (heads * 64) + part] = part == 0 ? first_sum : second_sum;
        }
        next.put(staged + (first / AHEAD + 1) % 2 * each, index.x);
    }
    for (uint j = 0; j < 4; j++)
        kept[j / 2 * WIDES + j % 2 * 8] = own.s[j / 2][j % 2];
}
