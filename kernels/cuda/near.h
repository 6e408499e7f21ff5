// near: products of one token with rows that bulk copies (TMA) bring to shared memory (bulk_rows.h),
// multiplied by tensor cores as bytes (mma_bytes.h). For GPUs that read weights faster than they
// decode them.
//
// A thread block of 16 warps per SM goes through its share of the rows tile by tile. Two stages of
// shared memory hold a tile each: while one is multiplied, the other is being filled. Its stages leave
// room on the SM for a block of the next launch, whose first two tiles are therefore there when it
// begins, and memory is not idle between launches.
//
// A tile is pairs of rows, and a warp multiplies a block of 256 columns of 8 pairs at a time: lane / 4
// is the pair. Rows of few columns are shared by half of the warps, and the other half has a second 8
// pairs. Rows of many columns are multiplied in chunks, which are tiles of their own.
//
// Op is what is multiplied, and what becomes of the sums (near_plain.h, normed_near.metal):
//   Op::format       of near_formats.h
//   Op::is_normed    x is multiplied by op.norm_w, sums by 1 / rms(x), for which there is op.eps
//   Op::is_stacked   the rows of a pair follow each other in memory
//   Op::early        the buffers that are read before the launch before has ended
//   op.x, op.rows    of this block; op.row_quads: uint4s of a row
//   op.get_row(i)    where row i begins
//   op.prepare(i)    what finish will need for row i, loaded before its tile is multiplied
//   op.finish(i, sum, other, kept)   other: the sum of the other row of the pair
#pragma once

#include "../opaque.h"
#include "bulk_rows.h"
#include "mma_bytes.h"
#include "near_formats.h"

enum : uint { NEAR_WARPS = 16, NEAR_TURNS = 4, NEAR_STAGES = 2, NEAR_ROWS = 16 };

// Columns: `chunks` times `each` blocks of 256, the last chunk has what is left.
template <uint Blocks, uint Chunks> struct near_columns {
    uint blocks, chunks, each;

    METAL_FUNC near_columns(uint in_dim) {
        blocks = in_dim / 256;
        chunks = Chunks == 1 ? 1 : (blocks + Blocks - 1) / Blocks;
        each = Chunks == 1 ? blocks : (blocks + chunks - 1) / chunks;
    }
    METAL_FUNC uint count(uint chunk) const {
        return Chunks == 1 ? blocks : min(each, blocks - chunk * each);
    }
};

// Shared memory: the stages; x of each warp and chunk, as digits; the sums of each warp, for three tiles,
// so that those of a tile may be read while the next two are multiplied; the squares of each warp's x.
template <typename N, uint Blocks, uint Chunks> struct near_memory {
    typedef byte_products<NEAR_TURNS, N::has_offsets> products;
    enum : uint {
        stage = N::pairs * (2 * (Blocks * N::block_bytes / 16) + 2), // uint4s
        parts = Chunks * Blocks,
        tile_sums = NEAR_WARPS * NEAR_ROWS,
        tiles = 3
    };
    threadgroup uint4 *stages;
    threadgroup uint2 *digits;
    threadgroup float2 *units;
    threadgroup float *sums, *squares, *sums_of_x;

    METAL_FUNC near_memory() {
        enum : uint {
            floats =
                tiles * tile_sums + NEAR_WARPS + (N::has_offsets ? parts * products::blocks : 0)
        };
        stages = (threadgroup uint4 *)cuda::get_shared_memory<
            16 * NEAR_STAGES * stage + 8 * parts *(products::memory + 1) + 4 * floats>();
        digits = (threadgroup uint2 *)(stages + NEAR_STAGES * stage);
        units = (threadgroup float2 *)(digits + parts * products::memory);
        sums = (threadgroup float *)(units + parts);
        squares = sums + tiles * tile_sums;
        sums_of_x = squares + NEAR_WARPS;
    }
    METAL_FUNC products get_products(uint part) const {
        products p;
        p.digits = digits + part * products::memory;
        p.sums_of_x = sums_of_x + part * products::blocks;
        p.unit = units[part].x;
        p.lift = units[part].y;
        return p;
    }
    METAL_FUNC void put(uint part, float4 first, float4 last, uint lane) const {
        products p;
        p.digits = digits + part * products::memory;
        p.sums_of_x = sums_of_x + part * products::blocks;
        p.put(first, last, lane);
        if (lane == 0)
            units[part] = float2(p.unit, p.lift);
    }
};

template <typename Op, uint Blocks, uint Chunks> struct near_work {
    typedef typename Op::format N;
    typedef near_columns<Blocks, Chunks> columns_of;
    enum : bool { has_groups = Chunks == 1 && Blocks == NEAR_WARPS };

    Op op;
    columns_of columns;
    near_memory<N, Blocks, Chunks> memory;
    uint groups; // of warps, 1 or 2, each with 8 pairs of a tile
    uint stride; // uint4s of a pair

    METAL_FUNC near_work(Op work, uint in_dim) : op(work), columns(in_dim) {
        groups = has_groups && 2 * columns.blocks <= NEAR_WARPS ? 2 : 1;
        stride = 2 * get_quads(columns.each) + 1; // odd: eight pairs are in different banks
    }
    static METAL_FUNC uint get_quads(uint blocks) { return blocks * N::block_bytes / 16; }
    METAL_FUNC uint get_tile_rows() const { return 2 * N::pairs * groups; }

    // A chunk of a tile.
    struct step {
        uint tile, chunk;
    };
    METAL_FUNC step get_next(step now, uint steps) const {
        if (Chunks == 1)
            return {now.tile + steps, 0};
        now.chunk += steps;
        while (now.chunk >= columns.chunks) {
            now.chunk -= columns.chunks;
            now.tile++;
        }
        return now;
    }
    METAL_FUNC bool is_there(step s) const { return s.tile * get_tile_rows() < op.rows; }
    METAL_FUNC bool ends_tile(step s) const { return Chunks == 1 || s.chunk + 1 == columns.chunks; }

    // The rows of a step on their way: a copy or two by one lane of each warp, because a warp makes its
    // copies one after another.
    METAL_FUNC void copy(step s, uint stage, uint sg, uint lane) const {
        const uint quads = get_quads(columns.count(s.chunk));
        const uint whole = get_quads(columns.each);
        const uint first = s.tile * get_tile_rows();
        const uint count = min(op.rows - first, get_tile_rows());
        threadgroup uint4 *to = memory.stages + stage * memory.stage;
        if (lane != 0 || !is_there(s))
            return;
        if (sg == 0)
            cuda::expect_bytes(16 * quads * count, stage);
        if (Op::is_stacked && Chunks == 1) {
            if (2 * sg < count)
                cuda::copy_bulk(to + sg * stride, op.get_row(first + 2 * sg),
                                16 * quads * min(2u, count - 2 * sg), stage);
            return;
        }
        for (uint i = sg; i < count; i += NEAR_WARPS)
            cuda::copy_bulk(to + i / 2 * stride + i % 2 * whole,
                            op.get_row(first + i) + s.chunk * whole, 16 * quads, stage);
    }

    // x as digits, of the blocks that are the warp's.
    METAL_FUNC void take_x(uint team, uint sg, uint lane) const {
        const uint at = lane / 4 * 8 + lane % 4;
        float4 weights[2];
        if (Op::is_normed && team < columns.blocks)
            for (uint i = 0; i < 2; i++)
                weights[i] = ((device const float4 *)op.norm_w)[64 * team + at + 4 * i];
        cuda::wait_for_launch<Op::early>();
        float4 v[Chunks][2];
        for (uint c = 0; c < Chunks; c++)
            for (uint i = 0; i < 2; i++)
                if (c < columns.chunks && team < columns.count(c))
                    v[c][i] =
                        ((device const float4 *)op.x)[64 * (c * columns.each + team) + at + 4 * i];
        if (Op::is_normed && team < columns.blocks) {
            const float4 s = v[0][0] * v[0][0] + v[0][1] * v[0][1];
            float squares = (s.x + s.y) + (s.z + s.w);
            for (uint mask = 1; mask < 32; mask *= 2)
                squares += cuda::shuffle_xor(squares, mask);
            if (lane == 0)
                memory.squares[sg] = squares;
            for (uint i = 0; i < 2; i++)
                v[0][i] *= weights[i];
        }
        for (uint c = 0; c < Chunks; c++)
            if (c < columns.chunks && team < columns.count(c))
                memory.put(c * Blocks + sg, v[c][0], v[c][1], lane);
        cuda::sync_warp();
    }

    // Adds the products of a warp's block of a tile: a lane's share of those of its pair.
    METAL_FUNC void multiply(uint stage, uint chunk, uint sg, uint team, uint lane, uint signs,
                             thread float (&totals)[2]) const {
        const uint pair =
            sg / (NEAR_WARPS / 2) * (groups - 1) * N::pairs + min(lane / 4, uint(N::pairs) - 1);
        threadgroup const uint4 *at = memory.stages + stage * memory.stage + pair * stride;
        typename N::lane_block own[2];
        for (uint i = 0; i < 2; i++)
            own[i].load((near_row)(at + i * get_quads(columns.each)), team, lane % 4);
        const auto p = memory.get_products(chunk * Blocks + sg);
        float sums[2] = {};
        for (uint turn = 0; turn < NEAR_TURNS; turn++) {
            byte_pair w[2];
            const auto one = own[0].take(turn, lane % 4, signs, w[0]);
            const decltype(one) scales[2] = {one, own[1].take(turn, lane % 4, signs, w[1])};
            p.add(w, scales, turn, lane, sums);
        }
        for (uint i = 0; i < 2; i++)
            totals[i] += p.finish(own[i].finish(sums[i]), lane);
    }

    // The sums of a lane's pair, of all four lanes, where the warp's sums of the tile are.
    METAL_FUNC void store(threadgroup float *to, uint lane, thread const float (&totals)[2]) const {
        const bool is_second = lane & 2;
        float sum = cuda::shuffle_xor(is_second ? totals[0] : totals[1], 2);
        sum += is_second ? totals[1] : totals[0];
        sum += cuda::shuffle_xor(sum, 1);
        if (lane % 2 == 0)
            to[lane / 4 * 2 + is_second] = sum;
    }

    // 1 / rms(x)
    METAL_FUNC float get_inverse(uint in_dim) const {
        float squares = 0.0f;
        for (uint i = 0; i < NEAR_WARPS; i++)
            squares += i < columns.blocks ? memory.squares[i] : 0.0f;
        return rsqrt(squares / float(in_dim) + op.eps);
    }
};

// A thread of the first warps that writes a sum of a tile, one of all even tiles or of all odd ones.
template <typename Op> struct near_writer {
    enum : uint { pairs = Op::format::pairs };
    uint group, teams; // of warps whose sums it adds, and how many those are
    uint place;        // among the rows of that group
    uint parity;       // of its tiles

    METAL_FUNC near_writer(uint thread_index, uint groups) {
        group = thread_index / NEAR_ROWS % groups;
        teams = NEAR_WARPS / groups;
        place = thread_index % NEAR_ROWS;
        parity = thread_index / NEAR_ROWS / groups;
    }
    METAL_FUNC uint get_row(uint tile, uint tile_rows) const {
        return place < 2 * pairs ? tile * tile_rows + 2 * pairs * group + place : 0xFFFFFFFFu;
    }
    // sums: of the tile. All lanes of a warp call this.
    METAL_FUNC float add(threadgroup const float *sums, uint each) const {
        threadgroup const float *from = sums + group * teams * NEAR_ROWS + place;
        float sum = 0.0f;
        for (uint i = 0; i < NEAR_WARPS; i++)
            sum += i < each ? from[NEAR_ROWS * i] : 0.0f;
        return sum * Op::format::get_unit();
    }
};

template <uint Blocks, uint Chunks, typename Op>
METAL_FUNC void near_run(thread const Op &op, uint in_dim, uint group, uint groups,
                         uint thread_index, uint sg, uint lane) {
    typedef near_work<Op, Blocks, Chunks> work_of;
    const work_of work(op, in_dim);
    const auto memory = work.memory;
    typename work_of::step now = {0, 0};
    for (uint i = 0; thread_index == 0 && i < NEAR_STAGES; i++)
        cuda::init_mbarrier(i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < NEAR_STAGES; i++)
        work.copy(work.get_next(now, i), i, sg, lane);
    near_expect_values(op.x, in_dim, group, groups, thread_index);
    cuda::sync_warp();
    cuda::launch_dependents();
    const near_writer<Op> writer(thread_index, work.groups);
    const uint team = sg % writer.teams;
    const uint tile_rows = work.get_tile_rows();
    const uint signs = opaque(0x80808080u, in_dim + lane);
    float totals[2] = {};
    float2 kept = 0.0f;
    float inverse = 0.0f; // of a writer, which finds it once
    work.take_x(team, sg, lane);
    for (uint i = 0;; i++) {
        const uint stage = i % NEAR_STAGES;
        threadgroup float *sums = memory.sums + now.tile % memory.tiles * memory.tile_sums;
        if (now.chunk == 0 && writer.parity == now.tile % 2 &&
            writer.get_row(now.tile, tile_rows) < op.rows)
            kept = op.prepare(writer.get_row(now.tile, tile_rows));
        cuda::sync_warp();
        cuda::wait_for_copies(stage, i / NEAR_STAGES % 2);
        if (team < work.columns.count(now.chunk))
            work.multiply(stage, now.chunk, sg, team, lane, signs, totals);
        const bool is_end = work.ends_tile(now);
        if (is_end && team < work.columns.each)
            work.store(sums + sg * NEAR_ROWS, lane, totals);
        const auto later = work.get_next(now, NEAR_STAGES);
        const auto next = work.get_next(now, 1);
        const bool is_last = !work.is_there(next);
        if (is_last || work.is_there(later)) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            work.copy(later, stage, sg, lane);
            cuda::sync_warp();
            if (is_end && writer.parity < 2) {
                // After the tile before the last there was no barrier, if it had one chunk only.
                const bool is_own = writer.parity == now.tile % 2;
                const bool is_late = is_last && now.tile > 0 && work.columns.chunks == 1;
                const uint tile = is_own || !is_late ? now.tile : now.tile - 1;
                const uint row = writer.get_row(tile, tile_rows);
                float sum = writer.add(memory.sums + tile % memory.tiles * memory.tile_sums,
                                       work.columns.each);
                if (Op::is_normed && inverse == 0.0f)
                    inverse = work.get_inverse(in_dim);
                if (Op::is_normed)
                    sum *= inverse;
                const float other = cuda::shuffle_xor(sum, 1);
                if ((is_own || is_late) && row < op.rows)
                    op.finish(row, sum, other, kept);
            }
        }
        if (is_last)
            return;
        if (is_end)
            totals[0] = totals[1] = 0.0f;
        now = next;
    }
}
