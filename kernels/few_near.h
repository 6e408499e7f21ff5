// few_near: y = W x and y += W x for a few tokens and a large Q4_0 matrix of at most 4096 columns,
// multiplied as matrices (few.h), of rows that are brought near (near.h). Needs few_stream.h.
//
// Every core needs all values of x for its rows, more than all weights. Partners have half of the
// columns each, of the rows of both, and exchange their sums in the end: half of x, and half of
// what there is to do with it.
#include "halves.h"

#include "near.h"

// The rows of P partners, of each the columns that are this one's: at most R, of at most `most`
// uint4s. After each there is a uint4, so that the same words of eight rows are in different banks.
// After all of them there is room for sums: of each of 16 simdgroups and 8 tokens, `wide` floats.
template <uint P, bool HasMemory = HAS_NEAR> struct few_near_rows {
    enum : uint { R = 32 * P, turns = 4 / P, wide = R + 8, sums = 16 * 8 * wide };
    enum : uint { most = 144 / P, stride = most + 1 };
    // Those of a lane, 8 apart.
    struct lane_rows {
        threadgroup const uint *first;
        METAL_FUNC threadgroup const uint *operator[](uint i) const {
            return first + i * (8 * 4 * stride);
        }
    };
    threadgroup uint4 *memory;

    METAL_FUNC few_near_rows(device const uint4 *, uint, uint) {
        memory = (threadgroup uint4 *)NEAR_MEMORY(16 * R * stride + 4 * sums);
    }
    METAL_FUNC void copy(uint i, device const uint4 *row, uint quads) const {
        NEAR_COPY(memory + i * stride, row, 16 * quads);
    }
    // From a word of the columns on. Past the last row there is nothing of use, but it may be read.
    METAL_FUNC lane_rows get(uint lane, uint word) const {
        const uint place = few_matrices::get_row(lane);
        const lane_rows found = {(threadgroup const uint *)(memory + place * stride) + word};
        return found;
    }
    METAL_FUNC threadgroup float *get_sums(threadgroup float *) const {
        return (threadgroup float *)(memory + R * stride);
    }
};

// Where there is no such memory, they are read where they are.
template <uint P> struct few_near_rows<P, false> {
    enum : uint { R = 32 * P, turns = 4 / P, wide = R + 8, sums = 16 * 8 * wide };
    struct lane_rows {
        device const uint *row[R / 8];
        METAL_FUNC device const uint *operator[](uint i) const { return row[i]; }
    };
    device const uint4 *from;
    uint row_quads, count;

    METAL_FUNC few_near_rows(device const uint4 *first, uint quads, uint rows) {
        from = first;
        row_quads = quads;
        count = rows;
    }
    METAL_FUNC void copy(uint, device const uint4 *, uint) const {}
    METAL_FUNC lane_rows get(uint lane, uint word) const {
        lane_rows found;
        for (uint i = 0; i < R / 8; i++) {
            const uint row = min(few_matrices::get_row(lane) + 8 * i, count - 1);
            found.row[i] = (device const uint *)(from + size_t(row) * row_quads) + word;
        }
        return found;
    }
    METAL_FUNC threadgroup float *get_sums(threadgroup float *own) const { return own; }
};

// The values of a lane, turn by turn: of 64 columns, of 64 that are S times 64 further, and so on.
// Of partners there are two turns. The second one is on its way from the beginning on, without a
// register, to `stage`, where there is room for the 512 floats of a simdgroup. All partners begin
// at the same time, and memory hands out the same values to one after another: hence `late`, which
// is 1 for half of them, whose first turn is the second one.
template <uint S, bool HasMemory = HAS_NEAR> struct few_near_values {
    few_values now;

    METAL_FUNC void start(device const float *at, uint turns, uint late,
                          threadgroup float4 *stage) {
        now.load(at + 64 * S * late, 0);
        for (uint i = 0; turns > 1 && i < 4; i++)
            NEAR_FETCH(stage + 32 * i, at + 64 * S * (1 - late) + 16 * i);
    }
    METAL_FUNC void begin(uint turn, uint b, threadgroup const float4 *stage) {
        if (turn == 0)
            return;
        if (b == 0)
            NEAR_FETCH_WAIT();
        for (uint i = 0; i < 2; i++)
            now.v[b][i] = stage[64 * b + 32 * i];
    }
    METAL_FUNC void load_next(device const float *, uint, uint, uint) {}
};

template <uint S> struct few_near_values<S, false> {
    few_values now;

    METAL_FUNC void start(device const float *at, uint, uint, threadgroup float4 *) {
        now.load(at, 0);
    }
    METAL_FUNC void begin(uint, uint, threadgroup const float4 *) {}
    METAL_FUNC void load_next(device const float *at, uint turn, uint turns, uint b) {
        if (turn + 1 < turns)
            now.load_block(at, S * (turn + 1), b);
    }
};

// What a simdgroup of S multiplies. index: of the thread.
template <uint S, typename Near> struct few_near_work {
    device const float *at;
    uint turns, late;
    few_near_values<S> values;

    // x: the threadgroup's columns of its first token, `chunks` times 64 of them.
    METAL_FUNC few_near_work(device const float *x, uint in_dim, uint tokens, uint chunks,
                             uint is_late, uint index) {
        const uint place = few_matrices::get_row(index % 32);
        const uint token = place / 2 + place % 2 * 4; // the two of its sums are pair and pair + 4
        turns = (chunks + S - 1 - index / 32) / S;
        late = Near::turns == 2 && turns == 2 ? is_late : 0;
        at = x + size_t(min(token, tokens - 1)) * in_dim + 4 * few_matrices::get_pair(index % 32) +
             (turns > 0 ? index / 32 * 64 : 0);
    }
    // Sums have their place later.
    static METAL_FUNC threadgroup float4 *get_stage(threadgroup float *all, uint index) {
        return (threadgroup float4 *)(all + index / 32 * uint(8 * Near::wide)) + index % 32;
    }
    METAL_FUNC void start(threadgroup float *all, uint index) {
        values.start(at, turns, late, get_stage(all, index));
    }

    // After start().
    template <typename P, uint N> METAL_FUNC void multiply(thread P &p, Near near,
                                                           threadgroup float *all, uint index,
                                                           thread float (&sums)[N][2]) {
        for (uint i = 0; i < N; i++) {
            sums[i][0] = 0.0f;
            sums[i][1] = 0.0f;
        }
        for (uint turn = 0; turn < Near::turns; turn++) {
            if (turn >= turns)
                break;
            const uint again = THREAD_AGAIN(index);
            const uint lane = again % 32;
            const typename Near::lane_rows rows =
                near.get(lane, 9 * (again / 32 + S * (turn ^ late)));
            for (uint b = 0; b < 2; b++) {
                values.begin(turn, b, get_stage(all, again));
                p.take(values.now.v[b]);
                values.load_next(at, turn, turns, b);
                // Before the barrier: after it, compilers would put the loads next to what needs
                // them.
                TOGETHER();
                few_add(p, rows, b, few_matrices::get_pair(lane), lane, sums);
                TOGETHER();
            }
        }
    }
};

// What is needed after the loop: in registers, it would find no room beside it.
struct few_near_kept {
    device const float *x; // of its columns of the first token
    ulong first;           // of y
    uint chunks, out_dim, rows, tokens;
    uint rank; // among the partners
};

// P threadgroups of 16 simdgroups compute their share of the rows, at most 32 for each, of 8
// tokens. A simdgroup takes every sixteenth 64 columns of its threadgroup's part of them. Two
// threadgroups, of this launch and of the next, are to find room on a core: hence 1024.
//
// The weights of the next launch come the same way as x, and come soon enough if they begin later:
// after a pause, or when there is no launch before this one to wait for. All simdgroups but the
// first copy some of the rows: a copy takes a while to begin.
template <bool accumulate, uint P> [[max_total_threads_per_threadgroup(1024)]] kernel void
matvec_few_near(device const block_q4_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
                device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
                constant uint &in_dim [[buffer(4)]], constant uint &batch [[buffer(5)]],
                constant uint &rows [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
                uint2 groups [[threadgroups_per_grid]],
                uint thread_index [[thread_index_in_threadgroup]],
                uint sg [[simdgroup_index_in_threadgroup]],
                uint lane [[thread_index_in_simdgroup]]) {
    static_assert(P <= 2, "half of the simdgroups add what is the other partner's");
    enum : uint { S = 16, TOKENS = 8, COPIERS = S - 1 };
    typedef few_near_rows<P> near_type;
    enum : uint { N = near_type::R / 8, WIDE = near_type::wide }; // WIDE: tokens in different banks
    typedef halves_or_floats<HAS_HALVES_16X8X16>::type products;
    threadgroup float shared[P == 1 ? near_type::sums : 1];
    threadgroup float received[P == 1 ? 1 : 32 * TOKENS];
    threadgroup float scratch[S * products::memory + 1];
    threadgroup few_near_kept kept;
    threadgroup atomic_uint is_under_way;
    const uint sharers = groups.x / P;
    const uint rest = out_dim - rows * groups.x; // what has been rounded off
    const near_share share(rows * P + (rest >= sharers ? 1 : 0), out_dim, group.x / P, sharers);
    if (P == 1 && share.count == 0)
        return;
    const near_share columns(in_dim / 256 / P, in_dim / 256, group.x % P, P); // 256 each
    const uint row_quads = in_dim / 256 * 9;
    const uint first = group.y * TOKENS;
    const uint count = min(batch - first, uint(TOKENS));
    x += size_t(first) * in_dim;
    device const uint4 *from =
        (device const uint4 *)w + size_t(share.first) * row_quads + columns.first * 9;
    const uint chunks = 4 * columns.count;
    device const float *part = x + (chunks > 0 ? 256 * columns.first : 0);
    const near_type near(from, row_quads, share.count);
    if (thread_index == 0) {
        NEAR_BEGIN();
        NEAR_EXPECT(columns.count * (9 * 16) * share.count);
        PARTNERS_BEGIN(sizeof received);
        atomic_store_explicit(&is_under_way, 0u, memory_order_relaxed);
        kept.x = part;
        kept.first = ulong(first) * out_dim + share.first;
        kept.chunks = chunks;
        kept.out_dim = out_dim;
        kept.rows = share.count;
        kept.tokens = count;
        kept.rank = group.x % P;
    }
    near_expect_values(x, count * in_dim, group.x, groups.x, thread_index);
    PARTNERS_ARRIVE();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    EARLY_NEXT();
    if (sg > 0) {
        const uint i = sg - 1 + COPIERS * lane;
        device const uint4 *row = from + size_t(i) * row_quads;
        NEAR_PAUSE(600, &is_under_way);
        if (i < share.count && columns.count > 0)
            near.copy(i, row, 9 * columns.count);
    }
    PARTNERS_MEET();
    EARLY_COPIES(1);
    if (thread_index == 0)
        atomic_store_explicit(&is_under_way, 1u, memory_order_relaxed);
    threadgroup float *all = near.get_sums(shared);
    few_near_work<S, near_type> work(part, in_dim, count, chunks, group.x / P % 2, thread_index);
    work.start(all, thread_index);
    NEAR_WAIT();
    float sums[N][2];
    products p(in_dim + lane, scratch + sg * uint(products::memory));
    work.multiply(p, near, all, thread_index, sums);
    const uint again = THREAD_AGAIN(thread_index);
    const uint me = again % 32;
    const uint team = again / 32;
    if (p.is_wrong()) {
        few_near_work<S, near_type> same(kept.x, in_dim, kept.tokens, kept.chunks, 0, again);
        typename products::again q(in_dim + me, scratch + team * uint(products::memory));
        q.set_power(same.at, 64 * S, same.turns);
        same.start(all, again);
        same.multiply(q, near, all, again, sums);
        q.finish(sums, me);
    }
    threadgroup float *own_sums =
        all + (team * TOKENS + few_matrices::get_pair(me)) * WIDE + few_matrices::get_row(me);
    for (uint i = 0; i < N; i++)
        for (uint j = 0; j < 2; j++)
            own_sums[4 * j * WIDE + 8 * i] = sums[i][j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint rank = P == 1 ? 0 : kept.rank;
    const uint owner = P == 1 || team < TOKENS ? rank : P - 1 - rank;
    const uint row = 32 * owner + me;
    const bool is_there = team < kept.tokens && row < kept.rows;
    device float *to = y + kept.first + size_t(team) * kept.out_dim + row;
    float sum = 0.0f;
    if (P > 1 || team < TOKENS)
        for (uint i = 0; i < S; i++)
            sum += all[(i * TOKENS + team % TOKENS) * WIDE + row];
    if (owner != rank)
        PARTNERS_SEND(received + team % TOKENS * 32 + me, sum, owner);
    else if (team < TOKENS) {
        PARTNERS_WAIT();
        if (P > 1)
            sum += received[team * 32 + me];
        if (is_there)
            put<accumulate>(to, sum * products::get_unit());
    }
}

template [[host_name(
    "multi_token_matvec_q4_0_tiled_near")]] kernel decltype(matvec_few_near<false, PARTNERS>)
    matvec_few_near<false, PARTNERS>;
template [[host_name(
    "multi_token_matvec_q4_0_accumulate_tiled_near")]] kernel decltype(matvec_few_near<true,
                                                                                       PARTNERS>)
    matvec_few_near<true, PARTNERS>;
