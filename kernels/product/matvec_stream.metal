// matvec_stream: y = W x and y += W x for one token by way of threadgroup memory, for GPUs whose
// memory is fast.
//
// Blocks that are only 2-byte aligned cost more to load than to multiply, and lanes that load
// blocks of their own do not load neighbours. But several blocks are whole uint4s: where a row is,
// a simdgroup loads chunks of columns of its rows in loads of 16 bytes, neighbour by neighbour, two
// chunks under way at once, and hands each over through threadgroup memory: a lane gets a run of
// weights of each row. x is in threadgroup memory too, once for all simdgroups.
//
// H is a format by such runs:
//   H::columns   of a chunk
//   H::quads     uint4s of a row's chunk
//   H::rows      of a simdgroup
//   H::words     of a run, which H::take takes from the copy of a row's chunk; 0: a run is what a
//                lane loads itself, and there is no copy
//   H::spans     chunks of x at a time
//   H::moved     if its words are half a word off in every other block of 32: so many of their
//                values of x are moved by two places, or 0
//   H::x_quads   float4s of a chunk of x in threadgroup memory, where lanes do not meet in a bank:
//                H::put_x puts them there, that of a thread from each 256 of them
//   H::add       adds the products of the runs of H::rows rows, without columns that are not left
#include <metal_stdlib>
using namespace metal;

#include "../prefetch.h"
#include "row.h"
#include "../opaque.h"
#include "runs.h"
#include "scatter_sums.h"

enum : uint { STREAM_TEAMS = 8 };

// A chunk of several rows as lanes load it: of each row as many whole loads as there are, then one
// load for what is left of all of them. Words, because an array of vectors is not kept in
// registers.
template <typename H> struct stream_chunk {
    enum : uint {
        whole = H::quads / 32,
        left = H::quads % 32,
        loads = H::rows * whole + (left > 0)
    };
    enum : uint { lanes_left = left > 0 ? left : 32 }; // for a row's part of the last load
    enum : uint { copies = H::words > 0 };
    enum : uint { copy_quads = copies ? H::quads : 1 };
    enum : uint { run_words = copies ? H::rows * H::words : 4 * loads };
    uint words[4 * loads];

    METAL_FUNC void load_one(uint i, device const uint4 *from) {
        const uint4 v = *from;
        words[4 * i] = v.x;
        words[4 * i + 1] = v.y;
        words[4 * i + 2] = v.z;
        words[4 * i + 3] = v.w;
    }
    // Rows past the end are replaced by the last one. The last chunk of a row may be shorter: what
    // is loaded past its end is not used. Where the rows are is found anew for each chunk
    // (opaque.h), because there are no registers to remember it in.
    METAL_FUNC void load(device const uint4 *w, uint first_row, uint out_dim, uint in_dim,
                         uint chunk, uint lane) {
        const uint row_quads = in_dim * H::quads / H::columns;
        const uint last = out_dim * row_quads - 1;
        const uint first = opaque(first_row, chunk);
        const uint further = chunk * H::quads;
        for (uint r = 0; r < H::rows; r++) {
            const uint at = min(first + r, out_dim - 1) * row_quads + further + lane;
            for (uint i = 0; i < whole; i++)
                load_one(r * whole + i, w + min(at + 32 * i, last));
        }
        const uint row = min(first + min(lane / lanes_left, H::rows - 1u), out_dim - 1);
        const uint at = row * row_quads + further + 32 * whole + lane % lanes_left;
        if (left > 0)
            load_one(H::rows * whole, w + min(at, last));
    }

    METAL_FUNC void put_one(uint i, threadgroup uint4 *to) const {
        *to = uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    // Hands the runs of this lane over, row by row. All lanes of a simdgroup call this.
    METAL_FUNC void hand_over(threadgroup uint4 *copy, uint lane, thread uint *runs) const {
        threadgroup uint4 *mine = copy + lane;
        threadgroup uint4 *mine_left = copy + 32 * whole + lane % lanes_left;
        for (uint i = 0; !copies && i < run_words; i++)
            runs[i] = words[i];
        for (uint r = 0; copies && r < H::rows; r++) {
            for (uint i = 0; i < whole; i++)
                put_one(r * whole + i, mine + 32 * i);
            if (left > 0 && lane / lanes_left == r)
                put_one(H::rows * whole, mine_left);
            simdgroup_barrier(mem_flags::mem_threadgroup);
            H::take(copy, lane, runs + r * H::words);
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
};

// A span of x as the threads of a threadgroup load it.
template <typename H> struct stream_input {
    enum : uint { threads = 32 * STREAM_TEAMS, turns = H::spans * H::columns / 4 / threads };
    enum : uint { turns_of_chunk = turns / H::spans };
    float values[4 * turns]; // see stream_chunk

    // Past the end of x its last values are loaded again: they are not used.
    METAL_FUNC void load(device const float *x, uint column, uint in_dim, uint thread_index) {
        enum : uint { ring = H::moved > 0 ? H::moved / 2 : 1 }; // pairs
        const bool is_moved = H::moved > 0 && thread_index % 16 < 8;
        const uint pair = 2 * thread_index;
        const uint first = is_moved ? pair / ring * ring + (pair + ring - 1) % ring : pair;
        const uint second = is_moved ? pair : pair + 1;
        for (uint i = 0; i < turns; i++) {
            float4 v;
            if (H::moved > 0) {
                device const float2 *from = (device const float2 *)x;
                const uint at = column / 2 + 2 * threads * i;
                v = float4(from[min(at + first, in_dim / 2 - 1)],
                           from[min(at + second, in_dim / 2 - 1)]);
            } else {
                v = ((device const float4 *)
                         x)[min(column / 4 + thread_index + threads * i, in_dim / 4 - 1)];
            }
            values[4 * i] = v.x;
            values[4 * i + 1] = v.y;
            values[4 * i + 2] = v.z;
            values[4 * i + 3] = v.w;
        }
    }
    METAL_FUNC void put(threadgroup float4 *to, uint thread_index) const {
        for (uint i = 0; i < turns; i++) {
            const float4 v =
                float4(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
            H::put_x(v, to + i / turns_of_chunk * H::x_quads, i % turns_of_chunk, thread_index);
        }
    }
};

// A tile is 8 * H::rows rows, and a threadgroup of 256 computes as many as there are for it: its
// simdgroups go through the chunks of H::rows rows, then through those of the next tile, always one
// ahead with their loads. Two threadgroups, of this launch or of this and the next, are to find
// room on a core: hence 512.
template <typename H, bool accumulate> [[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_stream(device const typename H::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
              device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
              constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
              uint groups [[threadgroups_per_grid]],
              uint thread_index [[thread_index_in_threadgroup]],
              uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    typedef stream_chunk<H> chunk_of;
    threadgroup uint4 copies[STREAM_TEAMS * chunk_of::copy_quads];
    threadgroup float4 all_x[H::spans * H::x_quads];
    device const uint4 *from = (device const uint4 *)w;
    threadgroup uint4 *copy = copies + sg * chunk_of::copy_quads;
    const uint step = groups * STREAM_TEAMS * H::rows; // rows from tile to tile
    const uint mine = sg * H::rows;
    const uint part = lane / (32 / H::rows);
    const bool is_first = lane % (32 / H::rows) == 0;
    uint tile = group * STREAM_TEAMS * H::rows; // its first row
    uint column = 0;
    chunk_of now, next;
    now.load(from, tile + mine, out_dim, in_dim, 0, lane);
    const bool is_one = H::columns >= in_dim; // chunk
    next.load(from, is_one ? tile + step + mine : tile + mine, out_dim, in_dim, is_one ? 0 : 1,
              lane);
    PREFETCHED(1);
    float before = 0.0f;
    uint runs[chunk_of::run_words];
    float sums[H::rows] = {};
    stream_input<H> some_x;
    some_x.load(x, 0, in_dim, thread_index);
    now.hand_over(copy, lane, runs);
    some_x.put(all_x, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool is_ahead = H::spans == 1; // few enough to be kept until they are needed
    if (is_ahead && H::columns < in_dim)
        some_x.load(x, H::columns, in_dim, thread_index);
    for (;;) {
        const uint row = tile + mine + part;
        if (accumulate && column == 0 && is_first && row < out_dim)
            before = y[row];
        H::add(runs, all_x + column / H::columns % H::spans * H::x_quads, lane, in_dim - column,
               sums);
        column += H::columns;
        if (column >= in_dim) {
            scatter<H::rows>::sum(sums, lane);
            if (is_first && row < out_dim)
                y[row] = before + sums[0];
            for (uint r = 0; r < H::rows; r++)
                sums[r] = 0.0f;
            column = 0;
            tile += step;
            if (tile >= out_dim)
                return;
        }
        next.hand_over(copy, lane, runs);
        const bool is_last = column + H::columns >= in_dim;
        if (!is_last || tile + step < out_dim)
            next.load(from, (is_last ? tile + step : tile) + mine, out_dim, in_dim,
                      is_last ? 0 : column / H::columns + 1, lane);
        if (in_dim > H::spans * H::columns && column % (H::spans * H::columns) == 0) {
            if (!is_ahead)
                some_x.load(x, column, in_dim, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            some_x.put(all_x, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (is_ahead)
                some_x.load(x, is_last ? 0 : column + H::columns, in_dim, thread_index);
        }
    }
}

#define MATVEC_STREAM(format)                                                                      \
    MATVEC_KERNEL("matvec_" #format "_stream", matvec_stream, format##_runs, false)                \
    MATVEC_KERNEL("matvec_" #format "_accumulate_stream", matvec_stream, format##_runs, true)

MATVEC_STREAM(q4_0)
MATVEC_STREAM(q8_0)
MATVEC_STREAM(q4_k)
MATVEC_STREAM(q6_k)
MATVEC_STREAM(f16)
