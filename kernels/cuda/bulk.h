// bulk: products of one token with rows that bulk copies (TMA) bring to shared memory (bulk_rows.h),
// multiplied by tensor cores as bytes (mma_bytes.h). For GPUs that read weights faster than they
// decode them.
//
// A thread block of 16 warps goes through its share of the rows tile by tile. Two stages of shared
// memory hold a tile each: while one is multiplied, the other is being filled. An SM has room for two
// blocks: of this launch, if each has a tile at least, or else of the next one too, whose first tiles are
// therefore there when it begins.
//
// A tile is pairs of rows, and a warp multiplies a block of 256 columns of 8 pairs at a time: lane / 4
// is the pair. Rows of few columns are shared by half of the warps, and the other half has a second 8
// pairs. Rows of many columns are multiplied in chunks, which are tiles of their own; or they are shared by
// the thread blocks of a cluster, each of which takes its part of x once, and which send each other their
// sums through distributed shared memory.
//
// Op is what is multiplied, and what becomes of the sums (bulk_ops.h):
//   Op::format       of bulk_formats.h
//   Op::is_normed    x is multiplied by op.norm_w, sums by 1 / rms(x), for which there is op.eps
//   Op::is_stacked   the rows of a pair follow each other in memory
//   Op::prefetched        the buffers that are read before the launch before has ended
//   Op::needs_registers  as that of bulk_formats.h
//   op.x, op.rows    of this block; op.row_quads: uint4s of a row
//   op.get_row(i)    where row i begins
//   op.prepare(i)    what finish will need for row i, loaded before its tile is multiplied
//   op.finish(i, sum, other, kept)   other: the sum of the other row of the pair
#pragma once

#include "../opaque.h"
#include "bulk_formats.h"
#include "bulk_rows.h"
#include "mma_bytes.h"

enum : uint { BULK_WARPS = 16, BULK_TURNS = 4, BULK_STAGES = 2, BULK_ROWS = 16 };
enum : uint { BULK_MOST_ROWS = 512 }; // of a cluster: product.c shares them so

// Columns, of which each of the P thread blocks of a cluster has a share: `chunks` times `each` blocks of 256,
// the last chunk has what is left. A chunk of a row is whole uint4s. A share of a cluster is too, unless the
// format's blocks are not: then it is whole words, and the uint4s at its ends are copied with what they have
// of other shares. Q6_K has whole uint4s only every 8 blocks, and of 14336 columns, which are 56 blocks, three
// thread blocks would have 16 and one 8 instead of 14 each.
template <typename N, bool IsLong, uint P> struct bulk_columns {
    enum : uint { most = IsLong ? N::long_blocks : P > 1 ? N::cluster_blocks : BULK_WARPS };
    enum : bool { is_whole = P == 1 || N::block_bytes % 16 == 0 };
    enum : uint { unit = N::block_bytes % 16 == 0 ? 1 : is_whole ? 8 : 2 };
    uint first, blocks, chunks, each; // first: of this thread block

    METAL_FUNC bulk_columns(uint in_dim, uint rank) {
        const uint all = in_dim / 256;
        chunks = IsLong ? (all + most - 1) / most : 1;
        each = IsLong || P > 1 ? (all + P * chunks * unit - 1) / (P * chunks * unit) * unit : all;
        first = P > 1 ? min(rank * each, all) : 0;
        blocks = P > 1 ? min(each, all - first) : all;
    }
    METAL_FUNC uint count(uint chunk) const {
        return IsLong ? min(each, blocks - chunk * each) : blocks;
    }
    // The uint4 of a row in which the share begins, and the words in it before that.
    METAL_FUNC uint get_start() const { return first * N::block_bytes / 16; }
    METAL_FUNC uint get_skipped() const { return is_whole ? 0 : first * N::block_bytes % 16 / 4; }
    // The uint4s that hold `count` blocks from there on, and those that hold them wherever they begin.
    METAL_FUNC uint get_quads(uint count) const {
        return is_whole ? count * N::block_bytes / 16
                        : (first * N::block_bytes % 16 + count * N::block_bytes + 15) / 16;
    }
    static METAL_FUNC constexpr uint get_room(uint blocks) {
        return blocks * N::block_bytes / 16 + (is_whole ? 0 : 2);
    }
    // From one pair of rows to the next, in uint4s. If it is odd, eight pairs are in different banks. Where
    // lanes load two words, half of a warp is served at a time, which has four pairs of 8 words each: for
    // these half of it must be odd. (get_room(blocks) | 1 is the same there, but spills more registers.)
    static METAL_FUNC constexpr uint get_stride(uint blocks) {
        static_assert(!N::has_neighbours || N::block_bytes / 16 % 2 == 1, "odd as its blocks are");
        return N::has_neighbours ? 2 * (get_room(blocks) + (blocks + 1) % 2)
                                 : 2 * get_room(blocks) + 1;
    }
};

// Shared memory: the stages; x of each warp, as digits, and if it is to be another one for the next chunk,
// that on its way; the sums of each warp, for three tiles, so that those of a tile may be read while the
// next two are multiplied; the squares of each warp's x; of a cluster, what its blocks send. In a cluster there
// are no more warps with sums and digits than blocks of a share.
template <typename N, bool IsLong, uint P> struct bulk_memory {
    typedef byte_products<BULK_TURNS, N::scale::spread, N::has_offsets> products;
    enum : uint {
        pairs = IsLong  ? N::long_pairs
                : P > 1 ? N::cluster_pairs
                        : N::pairs,
        most = bulk_columns<N, IsLong, P>::most,
        warps = P > 1 ? most : BULK_WARPS,
        one_group = bulk_columns<N, IsLong, P>::get_stride(most),
        two_groups = 2 * bulk_columns<N, IsLong, P>::get_stride(most / 2),
        stage = pairs * (one_group > two_groups ? one_group : two_groups), // uint4s
        coming = IsLong ? most * 64 : 0,
        tile_sums = warps * BULK_ROWS,
        parts_of = P > 1 ? BULK_MOST_ROWS : 0,
        tiles = 3
    };
    threadgroup uint4 *stages;
    threadgroup float4 *values;
    threadgroup uint2 *digits;
    threadgroup float2 *units;
    threadgroup float *sums, *squares, *parts;
    threadgroup uint *sums_of_x;

    METAL_FUNC bulk_memory() {
        enum : uint {
            floats = tiles * tile_sums + BULK_WARPS + parts_of +
                     (N::has_offsets ? warps * products::blocks : 0)
        };
        stages = (threadgroup uint4 *)cuda::get_shared_memory<
            16 * (BULK_STAGES * stage + coming) + 8 * warps *(products::memory + 1) + 4 * floats>();
        values = (threadgroup float4 *)(stages + BULK_STAGES * stage);
        digits = (threadgroup uint2 *)(values + coming);
        units = (threadgroup float2 *)(digits + warps * products::memory);
        sums = (threadgroup float *)(units + warps);
        squares = sums + tiles * tile_sums;
        parts = squares + BULK_WARPS;
        sums_of_x = (threadgroup uint *)(parts + parts_of);
    }
    METAL_FUNC products get_products(uint sg) const {
        products p;
        p.digits = digits + sg * products::memory;
        p.sums_of_x = sums_of_x + sg * products::blocks;
        p.unit = units[sg].x;
        p.lift = units[sg].y;
        return p;
    }
    METAL_FUNC void put(uint sg, float4 first, float4 last, uint lane) const {
        products p;
        p.digits = digits + sg * products::memory;
        p.sums_of_x = sums_of_x + sg * products::blocks;
        p.put(first, last, lane);
        if (lane == 0)
            units[sg] = float2(p.unit, p.lift);
        cuda::sync_warp();
    }
};

template <bool HasOffsets> struct bulk_offsets {};

template <typename Op, bool IsLong, uint P> struct bulk_work {
    typedef typename Op::format N;
    typedef bulk_columns<N, IsLong, P> columns_of;
    enum : bool { is_normed = Op::is_normed, is_long = IsLong };
    enum : bool { needs_registers = N::needs_registers || IsLong || Op::needs_registers };
    enum : uint { pairs = bulk_memory<N, IsLong, P>::pairs, sharers = P };

    Op op;
    columns_of columns;
    bulk_memory<N, IsLong, P> memory;
    uint rank;   // of this thread block in its cluster
    uint groups; // of warps, 1 or 2, each with 8 pairs of a tile
    uint stride; // uint4s of a pair
    uint signs;  // 0x80808080, of which the compiler does not know

    METAL_FUNC bulk_work(Op work, uint in_dim, uint block_rank, uint lane)
        : op(work), columns(in_dim, block_rank) {
        rank = block_rank;
        signs = opaque(0x80808080u, in_dim + lane);
        const bool has_all = memory.warps == BULK_WARPS; // two groups are halves of 16 warps
        groups = !IsLong && has_all && 2 * columns.each <= BULK_WARPS ? 2 : 1;
        stride = columns.get_stride(columns.each);
    }
    // The rows of a block that has no more than 16 are one tile, in the room of both stages.
    METAL_FUNC uint get_pairs() const {
        typedef bulk_memory<N, IsLong, P> room;
        enum : bool { may_be_one = !IsLong && P == 1 && pairs < BULK_ROWS / 2 };
        static_assert(!may_be_one || BULK_ROWS / 2 * room::one_group <= BULK_STAGES * room::stage,
                      "there is room for them");
        return may_be_one && groups == 1 && op.rows <= BULK_ROWS ? BULK_ROWS / 2 : pairs;
    }
    METAL_FUNC uint get_tile_rows() const { return 2 * get_pairs() * groups; }
    METAL_FUNC threadgroup uint4 *find_pair(uint stage, uint pair) const {
        return memory.stages + stage * memory.stage + pair * stride;
    }

    // A chunk of a tile.
    struct step {
        uint tile, chunk;
    };
    METAL_FUNC step get_next(step now, uint steps) const {
        if (!IsLong)
            return {now.tile + steps, 0};
        now.chunk += steps;
        while (now.chunk >= columns.chunks) {
            now.chunk -= columns.chunks;
            now.tile++;
        }
        return now;
    }
    METAL_FUNC bool is_there(step s) const { return s.tile * get_tile_rows() < op.rows; }
    METAL_FUNC bool ends_tile(step s) const { return !IsLong || s.chunk + 1 == columns.chunks; }

    // The rows of a step on their way: a copy or two by one lane of each warp, because a warp makes its
    // copies one after another.
    METAL_FUNC void copy(step s, uint stage, uint sg, uint lane) const {
        const uint quads = columns.get_quads(columns.count(s.chunk));
        const uint whole = columns.get_room(columns.each);
        const uint first = s.tile * get_tile_rows();
        const uint count = min(op.rows - first, get_tile_rows());
        if (lane != 0 || !is_there(s))
            return;
        if (sg == 0)
            cuda::expect_bytes(16 * quads * count, stage);
        if (Op::is_stacked && !IsLong && P == 1) {
            if (2 * sg < count)
                cuda::copy_bulk(find_pair(stage, sg), op.get_row(first + 2 * sg),
                                16 * quads * min(2u, count - 2 * sg), stage);
            return;
        }
        for (uint i = sg; quads > 0 && i < count; i += BULK_WARPS)
            cuda::copy_bulk(find_pair(stage, i / 2) + i % 2 * whole,
                            op.get_row(first + i) + columns.get_start() + s.chunk * whole,
                            16 * quads, stage);
    }

    // Where a lane's values are in a block of x: two float4s, the second `apart` after the first, for the
    // columns whose weights it loads.
    enum : uint { apart = N::has_neighbours ? 1 : 4 };
    static METAL_FUNC uint find_values(uint lane) {
        return lane / 4 * 8 + lane % 4 * (apart == 1 ? 2 : 1);
    }
    METAL_FUNC device const float4 *find_block(device const float *from, uint block) const {
        return (device const float4 *)from + 64 * block;
    }

    // x as digits, of the block that is the warp's.
    METAL_FUNC void take_x(uint team, uint sg, uint lane) const {
        const bool is_own = team < columns.blocks;
        device const float4 *norm = find_block(op.norm_w, columns.first + team) + find_values(lane);
        float4 weights[2], v[2];
        for (uint i = 0; i < 2 && Op::is_normed && is_own; i++)
            weights[i] = norm[apart * i];
        cuda::wait_for_launch<Op::prefetched>();
        for (uint i = 0; i < 2 && is_own; i++)
            v[i] = find_block(op.x, columns.first + team)[find_values(lane) + apart * i];
        if (Op::is_normed && is_own) {
            const float4 s = v[0] * v[0] + v[1] * v[1];
            float squares = (s.x + s.y) + (s.z + s.w);
            for (uint mask = 1; mask < 32; mask *= 2)
                squares += cuda::shuffle_xor(squares, mask);
            if (lane == 0)
                memory.squares[sg] = squares;
            for (uint i = 0; i < 2; i++)
                v[i] *= weights[i];
        }
        if (is_own)
            memory.put(sg, v[0], v[1], lane);
    }

    // The same, chunk by chunk: x on its way to shared memory, in whole lines, because all thread blocks load
    // the same ones at the same time.
    METAL_FUNC void expect_x(step s, uint team, uint sg, uint lane) const {
        if (!is_there(s) || team >= columns.count(s.chunk))
            return;
        device const float4 *from = find_block(op.x, s.chunk * columns.each + team);
        for (uint i = lane; i < 64; i += 32)
            cuda::copy_async(memory.values + 64 * sg + i, from + i);
    }
    METAL_FUNC void take_chunk(step now, step next, uint team, uint sg, uint lane) const {
        threadgroup const float4 *from = memory.values + 64 * sg + find_values(lane);
        cuda::wait_for_own_copies();
        cuda::sync_warp();
        if (team < columns.count(now.chunk))
            memory.put(sg, from[0], from[apart], lane);
        expect_x(next, team, sg, lane);
    }

    // What minima add to the sums of a pair, in the unit of these.
    template <typename Products, typename Lanes>
    METAL_FUNC void find_offsets(thread const Products &p, thread const Lanes (&own)[2], uint lane,
                                 thread float (&to)[2], bulk_offsets<true>) const {
        const uint offsets[2] = {own[0].get_offsets(), own[1].get_offsets()};
        byte_sums sums = {};
        p.add_offsets(offsets, lane, sums);
        for (uint i = 0; i < 2; i++)
            to[i] = own[i].finish_offset(sums.get(i));
    }
    template <typename Products, typename Lanes>
    METAL_FUNC void find_offsets(thread const Products &, thread const Lanes (&)[2], uint,
                                 thread float (&)[2], bulk_offsets<false>) const {}

    // Adds the products of a warp's block of a tile: a lane's share of those of its pair.
    template <bool is_odd> METAL_FUNC void multiply(uint stage, uint sg, uint team, uint lane,
                                                    thread float (&totals)[2]) const {
        const uint pair =
            sg / (BULK_WARPS / 2) * (groups - 1) * pairs + min(lane / 4, get_pairs() - 1);
        typename bulk_lanes<N, is_odd>::type own[2];
        for (uint i = 0; i < 2; i++)
            own[i].load((bulk_row)(find_pair(stage, pair) + i * columns.get_room(columns.each)) +
                            columns.get_skipped(),
                        team, lane % 4);
        const auto p = memory.get_products(sg);
        typename N::scale::sums sums = {};
        float offsets[2] = {};
        find_offsets(p, own, lane, offsets, bulk_offsets<N::has_offsets>());
        for (uint turn = 0; turn < BULK_TURNS; turn++) {
            byte_pair w[2];
            if (turn > 0 && turn % N::turns_at_once == 0)
                cuda::sync_warp(); // for loads of later turns there are no registers
            const typename N::scale scales[2] = {own[0].take(turn, lane % 4, signs, w[0]),
                                                 own[1].take(turn, lane % 4, signs, w[1])};
            p.add(w, scales, turn, lane, sums);
        }
        for (uint i = 0; i < 2; i++) {
            float sum = own[i].finish(sums.get(i), lane % 4);
            if (N::has_offsets)
                sum += offsets[i];
            totals[i] += p.finish(sum, lane);
        }
    }

    METAL_FUNC threadgroup float *get_sums(uint tile) const {
        return memory.sums + tile % memory.tiles * memory.tile_sums;
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

    // Of a cluster, rows are finished by its blocks one after another: what they have of a row is sent to the
    // block that does it.
    METAL_FUNC uint count_own() const { return (op.rows + P - 1 - rank) / P; }
    METAL_FUNC void send(uint row, float sum) const {
        threadgroup float *to = memory.parts + row / P * P + rank;
        if (row % P == rank)
            *to = sum;
        else
            cuda::store_to_rank(to, sum, row % P);
    }
    METAL_FUNC void finish_own(uint thread_index) const {
        const uint row = thread_index * P + rank;
        const bool is_own = thread_index < count_own();
        const float2 kept = is_own ? op.prepare(row) : 0.0f;
        float sum = 0.0f;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        cuda::wait_for_cluster_bytes(); // nothing is sent to a block that has ended
        for (uint i = 0; is_own && i < P; i++)
            sum += memory.parts[thread_index * P + i];
        if (is_own)
            op.finish(row, sum, 0.0f, kept);
    }

    // 1 / rms(x)
    METAL_FUNC float get_inverse() const {
        float squares = 0.0f;
        for (uint i = 0; i < BULK_WARPS; i++)
            squares += i < columns.blocks ? memory.squares[i] : 0.0f;
        return rsqrt(squares / float(256 * columns.blocks) + op.eps);
    }
};

// A thread of the first warps that writes a sum of a tile, one of all even tiles or of all odd ones.
template <typename Work> struct bulk_writer {
    enum : uint { pairs = Work::pairs };
    uint group, teams; // of warps whose sums it adds, and how many those are
    uint place;        // among the rows of that group
    uint parity;       // of its tiles
    float inverse;     // 1 / rms(x), which it finds once
    float2 kept;       // what finish will need

    METAL_FUNC bulk_writer(uint groups) {
        teams = BULK_WARPS / groups;
        inverse = 0.0f;
        kept = 0.0f;
    }
    METAL_FUNC void find_place(uint thread_index, uint groups) {
        group = thread_index / BULK_ROWS % groups;
        place = thread_index % BULK_ROWS;
        parity = thread_index / BULK_ROWS / groups;
    }
    METAL_FUNC uint get_row(thread const Work &work, uint tile) const {
        return place < 2 * work.get_pairs()
                   ? tile * work.get_tile_rows() + 2 * pairs * group + place
                   : 0xFFFFFFFFu;
    }
    METAL_FUNC void prepare(thread const Work &work, uint tile) {
        if (Work::sharers == 1 && parity == tile % 2 && get_row(work, tile) < work.op.rows)
            kept = work.op.prepare(get_row(work, tile));
        cuda::sync_warp();
    }
    // All lanes of a warp call this; those that are not to write find a sum in vain.
    METAL_FUNC void write(thread const Work &work, uint tile, bool is_to) {
        threadgroup const float *from = work.get_sums(tile) + group * teams * BULK_ROWS + place;
        float sum = 0.0f;
        for (uint i = 0; i < BULK_WARPS; i++)
            sum += i < work.columns.each ? from[BULK_ROWS * i] : 0.0f;
        sum *= Work::N::get_unit();
        if (Work::is_normed && inverse == 0.0f)
            inverse = work.get_inverse();
        if (Work::is_normed)
            sum *= inverse;
        const float other = cuda::shuffle_xor(sum, 1);
        const uint row = get_row(work, tile);
        if (is_to && row < work.op.rows && Work::sharers > 1)
            work.send(row, sum);
        else if (is_to && row < work.op.rows)
            work.op.finish(row, sum, other, kept);
    }
};

// A tile after another: a stage is filled again when all warps have multiplied what is in it.
template <typename Work> METAL_FUNC void
bulk_multiply(thread const Work &work, bulk_writer<Work> writer, uint thread_index) {
    float totals[2] = {};
    typename Work::step now = {0, 0};
    for (uint i = 0;; i++) {
        const uint stage = i % BULK_STAGES;
        // Where registers are few, addresses are computed again for every tile: kept, they would be spilled.
        const uint place = Work::needs_registers ? opaque(thread_index, i) : thread_index;
        const uint lane = place % 32, sg = place / 32, team = sg % writer.teams;
        writer.find_place(place, work.groups);
        const bool is_end = work.ends_tile(now);
        const auto later = work.get_next(now, BULK_STAGES);
        const auto next = work.get_next(now, 1);
        const bool is_last = !work.is_there(next);
        if (now.chunk == 0)
            writer.prepare(work, now.tile);
        if (Work::is_long)
            work.take_chunk(now, next, team, sg, lane);
        cuda::wait_for_copies(stage, i / BULK_STAGES % 2);
        if (Work::columns_of::unit > 1 && team % 2 == 1) {
            if (team < work.columns.count(now.chunk))
                work.template multiply<true>(stage, sg, team, lane, totals);
        } else if (team < work.columns.count(now.chunk)) {
            work.template multiply<false>(stage, sg, team, lane, totals);
        }
        if (is_end && team < work.columns.each)
            work.store(work.get_sums(now.tile) + sg * BULK_ROWS, lane, totals);
        if (is_last || work.is_there(later)) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            work.copy(later, stage, sg, lane);
            cuda::sync_warp();
            if (is_end && writer.parity < 2) {
                // After the tile before the last there was no barrier, if it had one chunk only.
                const bool is_own = writer.parity == now.tile % 2;
                const bool is_late = is_last && now.tile > 0 && work.columns.chunks == 1;
                writer.write(work, is_own || !is_late ? now.tile : now.tile - 1, is_own || is_late);
            }
        }
        if (is_last)
            return;
        if (is_end)
            totals[0] = totals[1] = 0.0f;
        now = next;
    }
}

// P: thread blocks of a cluster, which share the columns of its rows.
template <bool IsLong, uint P, typename Op>
METAL_FUNC void bulk_run(thread const Op &op, uint in_dim, uint group, uint groups,
                         uint thread_index, uint sg, uint lane) {
    typedef bulk_work<Op, IsLong, P> work_of;
    const work_of work(op, in_dim, group % P, lane);
    for (uint i = 0; thread_index == 0 && i < BULK_STAGES; i++)
        cuda::init_mbarrier(i);
    if (P > 1) {
        if (thread_index == 0)
            cuda::expect_cluster_bytes<P>(4 * (P - 1) * work.count_own());
        cuda::arrive_at_cluster();
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < BULK_STAGES; i++)
        work.copy(work.get_next({0, 0}, i), i, sg, lane);
    prefetch_values(op.x, in_dim, group, groups, thread_index);
    cuda::sync_warp();
    cuda::launch_dependents();
    const bulk_writer<work_of> writer(work.groups);
    if (IsLong) {
        cuda::wait_for_launch<Op::prefetched>();
        work.expect_x({0, 0}, sg, sg, lane);
    } else {
        work.take_x(sg % writer.teams, sg, lane);
    }
    if (P > 1)
        cuda::wait_for_cluster(); // all blocks have begun: sums may be sent
    bulk_multiply(work, writer, thread_index);
    if (P > 1)
        work.finish_own(thread_index);
}
