// matvec_stream: y = W x and y += W x for one token by way of threadgroup memory, for GPUs whose
// memory is fast. Needs matvec_rows.h and scatter_sums.h.
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
//   H::kept      uint4s of a row's chunk that H::take keeps in threadgroup memory for H::add
//   H::spans     chunks of x at a time
//   H::x_quads   float4s of a chunk of x, which H::put_x puts where H::add finds them, one half
//                like the other, so that lanes do not meet in a bank
//   H::add       adds the products of the runs of H::rows rows, without columns that are not left
#include "early.h"
#include "opaque.h"

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
    enum : uint { copy_quads = copies ? H::quads + H::rows * H::kept : 1 };
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
            H::take(copy, copy + H::quads + r * H::kept, lane, runs + r * H::words);
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
};

// A span of x as the threads of a threadgroup load it, and where it is in threadgroup memory.
template <typename H> struct stream_input {
    enum : uint { threads = 32 * STREAM_TEAMS, turns = H::columns / 4 / threads };
    enum : uint { loads = H::spans * turns };
    float values[4 * loads]; // see stream_chunk

    // Past the end of x its last values are loaded again; they are not used.
    METAL_FUNC void load(device const float *x, uint column, uint in_dim, uint thread_index) {
        for (uint i = 0; i < loads; i++) {
            const uint at = min(column / 4 + thread_index + threads * i, in_dim / 4 - 1);
            const float4 v = ((device const float4 *)x)[at];
            values[4 * i] = v.x;
            values[4 * i + 1] = v.y;
            values[4 * i + 2] = v.z;
            values[4 * i + 3] = v.w;
        }
    }
    METAL_FUNC void put(threadgroup float4 *to, uint thread_index) const {
        for (uint i = 0; i < loads; i++) {
            const float4 v =
                float4(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
            H::put_x(v, to + i * (H::x_quads / turns), thread_index);
        }
    }
};

// A threadgroup of 256 computes 8 * H::rows rows. Two of them, of this launch or of this and the
// next, are to find room on a core: hence 512.
template <typename H, bool accumulate> [[kernel, max_total_threads_per_threadgroup(512)]] void
matvec_stream(device const typename H::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
              device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
              constant uint &in_dim [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
              uint thread_index [[thread_index_in_threadgroup]],
              uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    typedef stream_chunk<H> chunk_of;
    threadgroup uint4 copies[STREAM_TEAMS * chunk_of::copy_quads];
    threadgroup float4 all_x[H::spans * H::x_quads];
    device const uint4 *from = (device const uint4 *)w;
    threadgroup uint4 *copy = copies + sg * chunk_of::copy_quads;
    const uint first_row = (group * STREAM_TEAMS + sg) * H::rows;
    chunk_of now, next;
    now.load(from, first_row, out_dim, in_dim, 0, lane);
    next.load(from, first_row, out_dim, in_dim, H::columns < in_dim ? 1 : 0, lane);
    EARLY_LOADS(1);
    const uint row = first_row + lane / (32 / H::rows);
    const bool is_mine = lane % (32 / H::rows) == 0 && row < out_dim;
    const float before = accumulate && is_mine ? y[row] : 0.0f; // under way with x
    uint runs[chunk_of::run_words];
    float sums[H::rows] = {};
    stream_input<H> first_x;
    first_x.load(x, 0, in_dim, thread_index);
    now.hand_over(copy, lane, runs);
    first_x.put(all_x, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint chunk = 0;;) {
        H::add(runs, copy + H::quads, all_x + chunk % H::spans * H::x_quads, lane,
               in_dim - chunk * H::columns, in_dim, sums);
        chunk++;
        if (chunk * H::columns >= in_dim)
            break;
        next.hand_over(copy, lane, runs);
        if ((chunk + 1) * H::columns < in_dim)
            next.load(from, first_row, out_dim, in_dim, chunk + 1, lane);
        if (chunk % H::spans == 0) {
            stream_input<H> next_x;
            next_x.load(x, chunk * H::columns, in_dim, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
            next_x.put(all_x, thread_index);
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    scatter<H::rows>::sum(sums, lane);
    if (is_mine)
        y[row] = before + sums[0];
}

#define MATVEC_STREAM_KERNEL(name, format, accumulate)                                             \
    template [[host_name(name)]] kernel decltype(matvec_stream<format##_runs, accumulate>)         \
        matvec_stream<format##_runs, accumulate>;
#define MATVEC_STREAM(format)                                                                      \
    MATVEC_STREAM_KERNEL("matvec_" #format "_stream", format, false)                               \
    MATVEC_STREAM_KERNEL("matvec_" #format "_accumulate_stream", format, true)
