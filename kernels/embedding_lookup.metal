// embedding_lookup: rows of an embedding table, as floats: out (n, hidden) = table[ids], one kernel
// for each format a table comes in.
//
// A thread makes one float of out, a threadgroup as many as it has threads. The ids are read from
// device memory, where argmax left them: the next token can start without the CPU. A thread
// decodes its one value and nothing else; whoever shares its block reads it from cache. An id past
// the end of the table has no row: it gives NaN, which nobody will take for an embedding. Moves 4
// bytes out and one value in for each thread. The table (vocab, hidden) has rows of whole blocks,
// so its values can be counted through, from the first row to the last.
#include <metal_stdlib>
using namespace metal;

#include "q4_0.h"
#include "q4_1.h"
#include "q4_k.h"
#include "q5_0.h"
#include "q5_1.h"
#include "q5_k.h"
#include "q6_k.h"
#include "q8_0.h"

inline float value_at(device const float *table, size_t i) {
    return table[i];
}

inline float value_at(device const half *table, size_t i) {
    return float(table[i]);
}

// A bfloat: the upper half of a float.
inline float value_at(device const ushort *table, size_t i) {
    return as_type<float>(uint(table[i]) << 16u);
}

inline float value_at(device const block_q8_0 *table, size_t i) {
    device const block_q8_0 *b = table + i / 32;
    return float(b->qs[i % 32]) * float(b->d);
}

// Nibble i of 32: the low ones of 16 bytes, then the high ones.
inline float nibble_at(device const uchar *bytes, uint i) {
    return float(i < 16 ? bytes[i] & 15u : bytes[i - 16] >> 4u);
}

inline float value_at(device const block_q4_0 *table, size_t i) {
    device const block_q4_0 *b = table + i / 32;
    return (nibble_at(b->qs, i % 32) - 8.0f) * float(b->d);
}

inline float value_at(device const block_q4_1 *table, size_t i) {
    device const block_q4_1 *b = table + i / 32;
    return nibble_at(b->qs, i % 32) * float(b->d) + float(b->m);
}

// Five bits of 32: a nibble, and bit i of two ushorts on top of it.
inline float five_bits_at(device const uchar *bytes, device const ushort *high, uint i) {
    return nibble_at(bytes, i) + float((high[i / 16] >> (i % 16) & 1u) << 4u);
}

inline float value_at(device const block_q5_0 *table, size_t i) {
    device const block_q5_0 *b = table + i / 32;
    return (five_bits_at(b->qs, b->qh, i % 32) - 16.0f) * float(b->d);
}

inline float value_at(device const block_q5_1 *table, size_t i) {
    device const block_q5_1 *b = table + i / 32;
    return five_bits_at(b->qs, b->qh, i % 32) * float(b->d) + float(b->m);
}

inline float value_at(device const block_q4_k *table, size_t i) {
    device const block_q4_k *b = table + i / 256;
    const uint part = i % 256 / 32;
    const uchar2 s = q4_k::get_scale_and_min(b->scales, part);
    const uint byte = b->qs[32 * (part / 2) + i % 32];
    const uint n = part % 2 == 0 ? byte & 15u : byte >> 4u;
    return float(n) * (float(b->d) * float(s.x)) - float(b->dmin) * float(s.y);
}

inline float value_at(device const block_q5_k *table, size_t i) {
    device const block_q5_k *b = table + i / 256;
    const uint part = i % 256 / 32;
    const uchar2 s = q4_k::get_scale_and_min(b->scales, part);
    const uint byte = b->qs[32 * (part / 2) + i % 32];
    const uint n =
        (part % 2 == 0 ? byte & 15u : byte >> 4u) | (b->qh[i % 32] >> part & 1u) << 4u;
    return float(n) * (float(b->d) * float(s.x)) - float(b->dmin) * float(s.y);
}

inline float value_at(device const block_q6_k *table, size_t i) {
    device const block_q6_k *b = table + i / 256;
    const uint half_block = i % 256 / 128;
    const uint quarter = i % 128 / 32;
    const uint l = i % 32;
    const uint low = b->ql[64 * half_block + 32 * (quarter % 2) + l] >> (4u * (quarter / 2)) & 15u;
    const uint high = b->qh[32 * half_block + l] >> (2u * quarter) & 3u;
    const float scale = float(b->d) * float(b->scales[i % 256 / 16]);
    return (float(low | high << 4u) - 32.0f) * scale;
}

template <typename B> inline void look_up(device const B *table,
                                          device const uint *ids,
                                          device float *out,
                                          uint hidden,
                                          uint n,
                                          uint vocab,
                                          uint i) {
    const uint token = i / hidden;
    if (token >= n)
        return;
    const uint id = ids[token];
    out[i] = id < vocab ? value_at(table, size_t(id) * hidden + i % hidden)
                        : as_type<float>(0x7FC00000u);
}

// A plain copy of rows: what the others are measured against.
kernel void embedding_lookup_f32(device const float *table [[buffer(0)]],
                                 device const uint *ids [[buffer(1)]],
                                 device float *out [[buffer(2)]],
                                 constant uint &hidden [[buffer(3)]],
                                 constant uint &n [[buffer(4)]],
                                 constant uint &vocab [[buffer(5)]],
                                 uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// Half the bytes, one conversion a value.
kernel void embedding_lookup_f16(device const half *table [[buffer(0)]],
                                 device const uint *ids [[buffer(1)]],
                                 device float *out [[buffer(2)]],
                                 constant uint &hidden [[buffer(3)]],
                                 constant uint &n [[buffer(4)]],
                                 constant uint &vocab [[buffer(5)]],
                                 uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// As F16, with the range of F32 and fewer digits: what models are trained in.
kernel void embedding_lookup_bf16(device const ushort *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// The reference model's table: tied to its head, which is Q8_0.
kernel void embedding_lookup_q8_0(device const block_q8_0 *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// The smallest table of blocks of 32.
kernel void embedding_lookup_q4_0(device const block_q4_0 *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// As Q4_0 with a minimum to a block.
kernel void embedding_lookup_q4_1(device const block_q4_1 *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// As Q4_0 and Q4_1, with a fifth bit to a value.
kernel void embedding_lookup_q5_0(device const block_q5_0 *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// And with a minimum to a block.
kernel void embedding_lookup_q5_1(device const block_q5_1 *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// Blocks of 256, a 6-bit scale and minimum to 32 of them.
kernel void embedding_lookup_q4_k(device const block_q4_k *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// As Q4_K, with a fifth bit to a value.
kernel void embedding_lookup_q5_k(device const block_q5_k *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}

// Blocks of 256: what mixed files use for the table.
kernel void embedding_lookup_q6_k(device const block_q6_k *table [[buffer(0)]],
                                  device const uint *ids [[buffer(1)]],
                                  device float *out [[buffer(2)]],
                                  constant uint &hidden [[buffer(3)]],
                                  constant uint &n [[buffer(4)]],
                                  constant uint &vocab [[buffer(5)]],
                                  uint i [[thread_position_in_grid]]) {
    look_up(table, ids, out, hidden, n, vocab, i);
}
