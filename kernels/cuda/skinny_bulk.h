// skinny_bulk: products of up to 8 tokens with rows that bulk copies (TMA) bring to shared memory
// (bulk_rows.h), multiplied by tensor cores as halves with sums in floats (mma.m16n8k16).
//
// Every SM needs x of all its columns and tokens, which is more bytes than its weights. So the P thread
// blocks of a cluster share columns: a block takes the same ones of all rows of its cluster, and each of
// its 8 warps 256 of these, of which it keeps x in registers from beginning to end. The sums of a tile go to
// one of the blocks through distributed shared memory (DSMEM) as soon as they are there.
//
// A tile is 8 pairs of rows: lane / 4 is the pair, and a lane has both sums of a pair, of tokens
// 2 * (lane % 4) and 1 after it. Where a block has few columns, half of its warps share them, and the other
// half has the next tile.
//
// Op is what is multiplied, and what becomes of the sums:
//   Op::format       a skinny_format
//   Op::is_normed    x is multiplied by op.norm_w, sums by 1 / rms(x), for which there is op.eps
//   Op::prefetched        the buffers that are read before the launch before has ended
//   op.x, op.in_dim, op.eps, op.rows    of this cluster
//   op.get_row(i)    where row i begins
//   op.prepare(pair, token)                     what finish will need, loaded early
//   op.finish(pair, token, sum, other, kept)    the sums of both rows
#pragma once

#include "../opaque.h"
#include "bulk_rows.h"
#include "halves_formats.h"

enum : uint { SKINNY_WARPS = 8, SKINNY_TOKENS = 8, SKINNY_BLOCKS = 8, SKINNY_TILES = 32 };

// A format of halves_formats.h by chunks of 256 columns, which are Bytes; a row is whole uint4s. Stages: for as many there
// is shared memory, and each has Tiles.
template <typename F, uint Tiles, uint Stages, uint Bytes = F::block_bytes> struct skinny_format
    : F {
    enum : uint { tiles = Tiles, stages = Stages, block_bytes = Bytes };
};

// x of a warp, 256 columns of 8 tokens: a lane has those of token lane / 4, of each block of 32 as
// halves_formats.h has weights. A value goes in two halves, of which the second has what the first one lost: 22
// bits. Therefore values are multiplied by a power of two, with which the largest of a token's is about
// 2^14; one of less than 2^-28 of that has fewer bits.
struct skinny_x {
    uint upper[SKINNY_BLOCKS][2][2], lower[SKINNY_BLOCKS][2][2];
    float units[2]; // what the sums of a lane's two tokens are to be multiplied by
    // The sums over columns / 64 of blocks 2 * (lane % 4) and 1 after it: upper and lower halves.
    uint totals[2];

    static METAL_FUNC void split(float a, float b, thread uint &upper, thread uint &lower) {
        upper = cuda::pack_halves(a, b);
        const half2 taken = as_type<half2>(upper);
        lower = cuda::pack_halves(a - float(taken.x), b - float(taken.y));
    }

    // The lane without `bit` gets the sum of both lanes' first, the one with it that of their last.
    static METAL_FUNC float exchange(float first, float last, uint bit, uint lane) {
        const float own = lane & bit ? last : first;
        return own + cuda::shuffle_xor(lane & bit ? first : last, bit);
    }

    // A lane has its share of the sums of all blocks; four lanes exchange them.
    METAL_FUNC void take_totals(thread const float (&shares)[SKINNY_BLOCKS], uint lane) {
        float four[4], two[2];
        for (uint i = 0; i < 4; i++)
            four[i] = exchange(shares[i], shares[4 + i], 2, lane);
        for (uint i = 0; i < 2; i++)
            two[i] = exchange(four[i], four[2 + i], 1, lane);
        split(two[0] / 64.0f, two[1] / 64.0f, totals[0], totals[1]);
    }

    // from and norm_w: of the first of this lane's columns. Returns the sum of squares of the token, of this warp.
    template <bool is_normed, bool has_minima>
    METAL_FUNC float take(device const float4 *from, threadgroup const float4 *norm_w, uint lane) {
        float4 v[SKINNY_BLOCKS][2];
        for (uint b = 0; b < SKINNY_BLOCKS; b++)
            for (uint i = 0; i < 2; i++)
                v[b][i] = from[8 * b + 4 * i];
        float4 squares = 0.0f;
        float largest = 0.0f;
        for (uint b = 0; b < SKINNY_BLOCKS; b++)
            for (uint i = 0; i < 2; i++) {
                if (is_normed) {
                    squares += v[b][i] * v[b][i];
                    v[b][i] *= norm_w[8 * b + 4 * i];
                }
                for (uint k = 0; k < 4; k++)
                    largest = max(largest, fabs(v[b][i][k]));
            }
        float sum = (squares.x + squares.y) + (squares.z + squares.w);
        for (uint mask = 1; mask < 4; mask *= 2) {
            largest = max(largest, cuda::shuffle_xor(largest, mask));
            sum += cuda::shuffle_xor(sum, mask);
        }
        const uint exponent = clamp(as_type<uint>(largest) >> 23u, 15u, 254u);
        const float up = as_type<float>((268u - exponent) << 23u);
        const float unit = as_type<float>((exponent - 14u) << 23u);
        for (uint j = 0; j < 2; j++)
            units[j] = simd_shuffle(unit, ushort(8 * (lane % 4) + 4 * j));
        float shares[SKINNY_BLOCKS] = {};
        for (uint b = 0; b < SKINNY_BLOCKS; b++)
            for (uint i = 0; i < 2; i++) {
                v[b][i] *= up;
                shares[b] += (v[b][i].x + v[b][i].y) + (v[b][i].z + v[b][i].w);
            }
        if (has_minima)
            take_totals(shares, lane);
        for (uint b = 0; b < SKINNY_BLOCKS; b++)
            for (uint i = 0; i < 2; i++) {
                split(v[b][i].x, v[b][i].z, upper[b][i][0], lower[b][i][0]);
                split(v[b][i].y, v[b][i].w, upper[b][i][1], lower[b][i][1]);
            }
        return sum;
    }

    // The products with both rows of a lane's pair: sums of the first row, then of the second. row: the uint4s
    // that cover chunk `number` of the first one.
    template <typename F> METAL_FUNC float4 multiply(threadgroup const uint4 *row, uint row_quads,
                                                     uint number, uint part, uint thousand) const {
        const typename F::row w[2] = {F::find((halves_row)row, number),
                                      F::find((halves_row)(row + row_quads), number)};
        float sums[2][2] = {}, least[2][2] = {};
        for (uint b = 0; b < SKINNY_BLOCKS; b++) {
            uint all[2][2][2]; // of the first and last 16 columns: of both rows
            float products[2][2] = {};
            for (uint r = 0; r < 2; r++) {
                uint pairs[2][2];
                F::take(w[r], b / 2, b % 2, part, thousand, pairs);
                for (uint i = 0; i < 4; i++)
                    all[i / 2][r][i % 2] = pairs[i / 2][i % 2];
            }
            for (uint i = 0; i < 2; i++) {
                cuda::mma_halves(all[i], upper[b][i], products);
                cuda::mma_halves(all[i], lower[b][i], products);
                if (i + F::parts < 2)
                    continue; // both have the same scale
                for (uint k = 0; k < 4; k++) {
                    sums[k / 2][k % 2] =
                        fma(F::scale(w[k / 2], b / 2, b % 2, F::parts == 2 ? i : 0),
                            products[k / 2][k % 2], sums[k / 2][k % 2]);
                    products[k / 2][k % 2] = 0.0f;
                }
            }
        }
        for (uint i = 0; i < 4; i++)
            sums[i / 2][i % 2] *= F::unit(w[i / 2]);
        if (F::has_minima) {
            const uint minima[2] = {F::minima(w[0], part, thousand),
                                    F::minima(w[1], part, thousand)};
            const uint twice[2][2] = {{minima[0], minima[0]}, {minima[1], minima[1]}};
            cuda::mma_halves(twice, totals, least);
        }
        for (uint i = 0; F::has_minima && i < 4; i++)
            sums[i / 2][i % 2] -= 64.0f * F::least(w[i / 2]) * least[i / 2][i % 2];
        return float4(sums[0][0] * units[0], sums[0][1] * units[1], sums[1][0] * units[0],
                      sums[1][1] * units[1]);
    }
};

// Shared memory: the stages, each with room for a tile or two; the sums of all warps, of two tiles, so that those
// of one may be read while the next is multiplied, and before that norm_w of each warp's columns; of the tiles
// that are this block's the sums of all blocks; the squares of each warp's x, and those of all blocks.
template <typename F, uint P> struct skinny_memory {
    enum : uint {
        uneven = F::block_bytes % 16 != 0, // what is copied begins and ends within a uint4
        stage = 16 * F::tiles * (SKINNY_WARPS * F::block_bytes / 16 + 4 * uneven + 1),
        sum_quads = SKINNY_WARPS * 64 * F::tiles,
        part_quads = SKINNY_TILES * 32,
        floats = (SKINNY_WARPS + P) * SKINNY_TOKENS
    };
    threadgroup uint4 *stages;
    threadgroup float4 *sums, *parts;
    threadgroup float *warp_squares, *squares;

    METAL_FUNC skinny_memory() {
        stages = (threadgroup uint4 *)cuda::get_shared_memory<
            16 * (F::stages * stage + sum_quads + part_quads) + 4 * floats>();
        sums = (threadgroup float4 *)(stages + F::stages * stage);
        parts = sums + sum_quads;
        warp_squares = (threadgroup float *)(parts + part_quads);
        squares = warp_squares + SKINNY_WARPS * SKINNY_TOKENS;
    }
};

template <typename Op, uint P> struct skinny_work {
    typedef typename Op::format F;
    enum : bool { is_normed = Op::is_normed };
    Op op;
    skinny_memory<F, P> memory;
    block_share columns; // of this block, 256 each
    uint rank;           // of it in the cluster
    uint most;           // of the columns of any block of it
    uint groups;         // of warps, 1 or 2, each with F::tiles
    uint tiles, own;     // of the cluster and of this block
    uint at_once;        // tiles of a turn
    uint turns;

    METAL_FUNC skinny_work(Op work, uint block_rank)
        : op(work), columns(work.in_dim / 256, block_rank, P) {
        rank = block_rank;
        most = (op.in_dim / 256 + P - 1) / P;
        groups = 2 * most <= SKINNY_WARPS ? 2 : 1;
        tiles = (op.rows + 15) / 16;
        own = (tiles + P - 1 - rank) / P;
        at_once = groups * F::tiles;
        turns = (tiles + at_once - 1) / at_once;
    }
    METAL_FUNC uint get_teams() const { return SKINNY_WARPS / groups; }
    // The first uint4 of a row that a chunk is in, and the one after those that all before a chunk are in.
    static METAL_FUNC uint find_quad(uint chunk) { return chunk * F::block_bytes / 16; }
    static METAL_FUNC uint find_end(uint chunk) { return (chunk * F::block_bytes + 15) / 16; }
    METAL_FUNC uint get_row_quads() const { return find_end(most) + memory.uneven; }
    METAL_FUNC threadgroup uint4 *find_pair(uint stage, uint pair) const {
        // An odd number of them: eight pairs are in different banks.
        return memory.stages + stage * memory.stage + pair * (2 * get_row_quads() + 1);
    }
    // Of tile i of a warp.
    METAL_FUNC threadgroup float4 *find_sums(uint turn, uint warp, uint i) const {
        return memory.sums + ((2 * warp + turn % 2) * F::tiles + i) * 32;
    }

    METAL_FUNC void expect() const {
        for (uint i = 0; i < F::stages; i++)
            cuda::init_mbarrier(i);
        cuda::expect_cluster_bytes<P>((P - 1) *
                                      (512 * own + (Op::is_normed ? 4 * SKINNY_TOKENS : 0)));
    }

    // The rows of a turn on their way: copies by one lane of each warp, because a warp makes its copies one
    // after another.
    METAL_FUNC void copy(uint turn, uint stage, uint sg, uint lane) const {
        const uint first = 16 * at_once * turn;
        const uint begin = find_quad(columns.first);
        const uint quads = find_end(columns.first + columns.count) - begin;
        if (lane != 0 || turn >= turns)
            return;
        const uint count = min(op.rows - first, 16 * at_once);
        if (sg == 0)
            cuda::expect_bytes(16 * quads * count, stage);
        for (uint i = sg; quads > 0 && i < count; i += SKINNY_WARPS)
            cuda::copy_bulk(find_pair(stage, i / 2) + i % 2 * get_row_quads(),
                            op.get_row(first + i) + begin, 16 * quads, stage);
    }

    // norm_w of a warp's columns goes where its sums will be.
    METAL_FUNC void expect_norm(uint team, uint sg, uint lane) const {
        device const float4 *from = (device const float4 *)op.norm_w + 64 * (columns.first + team);
        for (uint i = 0; team < columns.count && i < 2; i++)
            cuda::copy_async(find_sums(0, sg, 0) + 32 * i + lane, from + 32 * i + lane);
    }
    // x of a warp's columns.
    METAL_FUNC void take(thread skinny_x &x, uint tokens, uint team, uint sg, uint lane) const {
        device const float4 *from =
            (device const float4 *)(op.x + size_t(min(lane / 4, tokens - 1)) * op.in_dim) +
            64 * (columns.first + team) + lane % 4;
        float squares = 0.0f;
        if (Op::is_normed) {
            cuda::wait_for_own_copies();
            cuda::sync_warp();
        }
        if (team < columns.count)
            squares = x.template take<Op::is_normed, F::has_minima>(
                from, find_sums(0, sg, 0) + lane % 4, lane);
        if (Op::is_normed && lane % 4 == 0)
            memory.warp_squares[SKINNY_TOKENS * sg + lane / 4] = squares;
        cuda::sync_warp(); // what it read is replaced later
    }
    // The squares of this block's columns, for all blocks.
    METAL_FUNC void send_squares(uint lane) const {
        float sum = 0.0f;
        for (uint i = 0; i < columns.count; i++)
            sum += memory.warp_squares[SKINNY_TOKENS * i + lane % SKINNY_TOKENS];
        threadgroup float *to = memory.squares + SKINNY_TOKENS * rank + lane % SKINNY_TOKENS;
        if (lane < SKINNY_TOKENS)
            *to = sum;
        for (uint i = 0; i < P; i++)
            if (lane < SKINNY_TOKENS && i != rank)
                cuda::store_to_rank(to, sum, i);
    }

    // The sums of tile `which` of a turn over all warps that share it, for the block whose tile it is.
    METAL_FUNC void send(uint turn, uint which, uint lane) const {
        const uint tile = turn * at_once + which;
        const uint first = which / F::tiles * get_teams();
        float4 sum = 0.0f;
        for (uint i = 0; i < columns.count; i++)
            sum += find_sums(turn, first + i, which % F::tiles)[lane];
        threadgroup float4 *to = memory.parts + (tile / P * P + rank) * 32 + lane;
        if (tile >= tiles)
            return;
        if (tile % P == rank)
            *to = sum;
        else
            cuda::store_to_rank(to, sum, tile % P);
    }

    // 1 / rms(x) of a token
    METAL_FUNC float get_inverse(uint token) const {
        float sum = 0.0f;
        for (uint i = 0; i < P; i++)
            sum += memory.squares[SKINNY_TOKENS * i + token];
        return rsqrt(sum / float(op.in_dim) + op.eps);
    }

    METAL_FUNC void finish(uint tokens, uint sg, uint lane) const {
        for (uint i = sg; i < own; i += SKINNY_WARPS) {
            const uint pair = 8 * (P * i + rank) + lane / 4;
            const uint token = 2 * (lane % 4);
            const bool is_there[2] = {2 * pair < op.rows && token < tokens,
                                      2 * pair < op.rows && token + 1 < tokens};
            float2 kept[2];
            for (uint j = 0; j < 2; j++)
                kept[j] = is_there[j] ? op.prepare(pair, token + j) : 0.0f;
            cuda::wait_for_cluster_bytes();
            float4 sum = 0.0f;
            for (uint k = 0; k < P; k++)
                sum += memory.parts[(P * i + k) * 32 + lane];
            for (uint j = 0; j < 2; j++) {
                const float inverse = Op::is_normed ? get_inverse(token + j) : 1.0f;
                if (is_there[j])
                    op.finish(pair, token + j, sum[j] * inverse, sum[2 + j] * inverse, kept[j]);
            }
        }
        cuda::wait_for_cluster_bytes(); // nothing is sent to a block that has ended
    }
};

// A turn after another: a stage is filled again when all warps have multiplied what is in it. The sums of a
// turn are added up by one warp while the others go on.
template <typename Work> METAL_FUNC void
skinny_multiply(thread const Work &work, thread const skinny_x &x, uint thread_index) {
    typedef typename Work::F F;
    const uint thousand = opaque(0x64006400u, work.op.in_dim + thread_index);
    uint stage = 0, parity = 0;
    for (uint turn = 0; turn < work.turns; turn++) {
        // Addresses are computed again in every turn: kept in registers, they would be spilled.
        const uint place = opaque(thread_index, turn);
        const uint lane = place % 32, sg = place / 32;
        const uint team = sg % work.get_teams(), group = sg / work.get_teams();
        const uint number = work.columns.first + team; // of the chunk of this warp
        const uint first = turn * work.at_once + group * F::tiles;
        cuda::wait_for_copies(stage, parity);
#pragma unroll 1
        for (uint i = 0; i < F::tiles; i++) {
            if (team >= work.columns.count || first + i >= work.tiles)
                break;
            const uint pair = 8 * (group * F::tiles + i) + lane / 4;
            threadgroup const uint4 *row = work.find_pair(stage, pair) + Work::find_quad(number) -
                                           Work::find_quad(work.columns.first);
            work.find_sums(turn, sg, i)[lane] =
                x.template multiply<F>(row, work.get_row_quads(), number, lane % 4, thousand);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        work.copy(turn + F::stages, stage, sg, lane);
        cuda::sync_warp();
        const uint which = (sg - turn * work.at_once) % SKINNY_WARPS; // one after another sends
        if (which < work.at_once)
            work.send(turn, which, lane);
        if (Work::is_normed && turn == 0 && sg == SKINNY_WARPS - 1)
            work.send_squares(lane);
        parity ^= stage == F::stages - 1 ? 1 : 0;
        stage = stage == F::stages - 1 ? 0 : stage + 1;
    }
}

template <uint P, typename Op> METAL_FUNC void
skinny_run(thread const Op &op, uint tokens, uint rank, uint thread_index, uint sg, uint lane) {
    typedef skinny_work<Op, P> work_of;
    const work_of work(op, rank);
    const uint team = sg % work.get_teams();
    if (thread_index == 0)
        work.expect();
    cuda::arrive_at_cluster();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < work_of::F::stages; i++)
        work.copy(i, i, sg, lane);
    if (Op::is_normed)
        work.expect_norm(team, sg, lane);
    cuda::sync_warp();
    cuda::launch_dependents();
    cuda::wait_for_launch<Op::prefetched>();
    skinny_x x;
    work.take(x, tokens, team, sg, lane);
    cuda::wait_for_cluster(); // all blocks have begun: sums may be sent
    skinny_multiply(work, x, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    work.finish(tokens, sg, lane);
}
