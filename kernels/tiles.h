// tiles: the product of many rows of weights with many tokens, a tile of both per threadgroup: what
// the kernels of matvec, qkv_rope_append and gate_up_silu for large batches share.
//
// A threadgroup takes 32 columns at a time: it decodes the weights of its rows once, to floats in
// threadgroup memory, and puts the values of its tokens beside them. A thread multiplies R rows with
// T tokens from there, four columns at a time, so that R + T loads of a float4 feed 4 * R * T
// multiplications, whose sums are in registers. What the next 32 columns need is loaded before the
// multiplications begin and decoded after them.
//
// Where tiles are too few to fill a GPU, the columns are split too: S teams of a threadgroup compute
// the same tile, each from every S-th 32 columns, with memory of its own, and add up in the end.
//
// Both halves of the memory are rows of 8 float4 in 9: any 8 neighbours are in different banks.
//
// Rows are numbered by slots: the thread at row place p of P has slots p, p + P, ... Which row of
// which matrix is in a slot is the kernel's business, so that a thread can have rows that belong
// together: a gate and its up, the two of a rotation.

// How tiles read a format. Threads of a team take 32 columns of a row, `lanes` threads per row:
//   fetch   what a thread keeps in registers until there is room for it
//   put     decodes it to the row's 8 float4

// Any format whose units are 32 weights (formats.h), decoded when they are loaded.
template <typename F> struct tile_units {
    typedef typename F::block block;
    enum : uint { values = F::values, lanes = 1 };
    struct part {
        float4 v[8];
    };
    static METAL_FUNC part fetch(device const block *row, uint step, uint, uint) {
        part p;
        F::load(row, step, p.v);
        return p;
    }
    static METAL_FUNC void put(part p, uint, threadgroup float4 *at) {
        for (uint i = 0; i < 8; i++)
            at[i] = p.v[i];
    }
};

// Floats, four at a time; rows need not be whole steps.
template <typename F> struct tile_floats {
    typedef typename F::block block;
    enum : uint { values = 1, lanes = 2 };
    struct part {
        float4 v[4];
    };
    static METAL_FUNC part fetch(device const block *row, uint step, uint in_dim, uint lane) {
        part p;
        for (uint i = 0; i < 4; i++) {
            const uint unit = 8 * step + 4 * lane + i;
            F::load(row, min(unit, in_dim / 4 - 1), &p.v[i]);
            p.v[i] = select(float4(0.0f), p.v[i], bool4(4 * unit < in_dim));
        }
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        for (uint i = 0; i < 4; i++)
            at[4 * lane + i] = p.v[i];
    }
};

// A tile of R * P rows and T * Q tokens: a team is P * Q threads.
template <typename F, uint R, uint T, uint P, uint Q, uint S, bool HasNorm> struct tile {
    enum : uint {
        slots = R, // of a thread, which are this far apart:
        places = P,
        rows = R * P,
        tokens = T * Q,
        team = P * Q,
        threads = S * team,
        wide = 9,
        memory = S * (rows + tokens) * wide, // float4 of a threadgroup
        parts = tokens * 8 / team,           // float4 of x per thread and step
        takers = S < T ? S : T,              // teams that have sums in the end
        kept = T / takers,                   // of so many tokens per thread
    };
    static_assert(rows * F::lanes <= team && S * R * T * team <= 4 * memory && T % takers == 0, "");

    threadgroup float4 *w;
    threadgroup float4 *x;
    threadgroup float *shared;
    uint me, place, column, mate; // in the team; its rows and tokens; which team
    float sums[R][T];
    float squares[HasNorm ? parts : 1];
    typename F::part weights;
    float4 values[parts];
    float4 norm;

    METAL_FUNC tile(threadgroup float4 *m, uint thread_index) {
        mate = S == 1 ? 0 : thread_index / team;
        me = S == 1 ? thread_index : thread_index % team;
        place = me % P;
        column = me / P;
        w = m + mate * ((rows + tokens) * wide);
        x = w + rows * wide;
        shared = (threadgroup float *)m;
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < T; j++)
                sums[i][j] = 0.0f;
        for (uint i = 0; i < (HasNorm ? parts : 1u); i++)
            squares[i] = 0.0f;
    }

    static METAL_FUNC void wait() {
        if (team == 32)
            simdgroup_barrier(mem_flags::mem_threadgroup);
        else
            threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // Slot i of this thread's sums; and the slot whose weights it decodes, if it does.
    METAL_FUNC uint get_slot(uint i) const { return place + P * i; }
    METAL_FUNC uint get_decoded() const { return min(me / F::lanes, uint(rows) - 1); }
    METAL_FUNC bool decodes() const {
        return uint(rows * F::lanes) == uint(team) || me < rows * F::lanes;
    }

    // Loads the first weights, and nothing else. row: those of the slot that this thread decodes.
    METAL_FUNC void start(device const typename F::block *row, uint in_dim) {
        weights = F::fetch(row, min(mate, (in_dim - 1) / 32), in_dim, me % F::lanes);
    }

    // After start(). x_in (count, in_dim): the tokens from the first of the tile on; past the last one,
    // the last is repeated.
    METAL_FUNC void multiply(device const typename F::block *row, device const float *x_in,
                             device const float *norm_w, uint in_dim, uint count) {
        fetch_values(x_in, norm_w, min(mate, (in_dim - 1) / 32), in_dim, count);
        for (uint turn = 0; 32 * turn < in_dim; turn += S)
            if (bring(turn, row, x_in, norm_w, in_dim, count))
                add();
        if (S > 1)
            add_up();
    }

    // Puts what was fetched for this turn into threadgroup memory, where all threads of the team may
    // then read it, and fetches what the next turn needs. False: the team has nothing to do in this
    // turn.
    METAL_FUNC bool bring(uint turn, device const typename F::block *row, device const float *x_in,
                          device const float *norm_w, uint in_dim, uint count) {
        const uint step = turn + mate;
        const bool has_part = 32 * step < in_dim;
        wait();
        if (has_part)
            put();
        wait();
        if (32 * (step + S) < in_dim) {
            weights = F::fetch(row, step + S, in_dim, me % F::lanes);
            fetch_values(x_in, norm_w, step + S, in_dim, count);
        }
        return has_part;
    }

    // No load depends on a condition: compilers then keep what is loaded in registers. (Threads that
    // decode nothing load weights that others load too.)
    METAL_FUNC void fetch_values(device const float *x_in, device const float *norm_w, uint step,
                                 uint in_dim, uint count) {
        const uint at = 32 * step + 4 * (me % 8);
        for (uint i = 0; i < parts; i++) {
            const uint row = min(me / 8 + i * (team / 8), count - 1) * in_dim;
            if (F::values > 1) {
                const float4 v = *(device const float4 *)(x_in + row + at);
                values[i] = float4(v.x, v.y, v.z, v.w); // a plain copy would be one in memory
            } else {                                    // the last 32 columns need not be whole
                values[i] = *(device const float4 *)(x_in + row + min(at, in_dim - 4));
                values[i] = select(float4(0.0f), values[i], bool4(at < in_dim));
            }
        }
        if (HasNorm) { // only formats in blocks of whole steps have one
            const float4 v = *(device const float4 *)(norm_w + at);
            norm = float4(v.x, v.y, v.z, v.w);
        }
    }

    METAL_FUNC void put() {
        const uint part = me % 8;
        if (decodes())
            F::put(weights, me % F::lanes, w + get_decoded() * wide);
        for (uint i = 0; i < parts; i++) {
            float4 v = values[i];
            if (HasNorm) {
                float s = squares[i];
                s = fma(v.x, v.x, s);
                s = fma(v.y, v.y, s);
                s = fma(v.z, v.z, s);
                squares[i] = fma(v.w, v.w, s);
                v *= norm;
            }
            x[(me / 8 + i * (team / 8)) * wide + part] = v;
        }
    }

    METAL_FUNC void add() {
        for (uint k = 0; k < 8; k++) {
            float4 a[R];
            float4 b[T];
            for (uint i = 0; i < R; i++)
                a[i] = w[(place + P * i) * wide + k];
            for (uint j = 0; j < T; j++)
                b[j] = x[(column + Q * j) * wide + k];
            for (uint i = 0; i < R; i++)
                for (uint j = 0; j < T; j++) {
                    float s = fma(a[i].x, b[j].x, sums[i][j]);
                    s = fma(a[i].y, b[j].y, s);
                    s = fma(a[i].z, b[j].z, s);
                    sums[i][j] = fma(a[i].w, b[j].w, s);
                }
        }
    }

    // Each of the first teams takes the sums of all teams for `kept` of the tokens of a thread.
    METAL_FUNC void add_up() {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < T; j++)
                shared[((mate * R + i) * T + j) * team + me] = sums[i][j];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!has_sums())
            return;
        for (uint i = 0; i < R; i++)
            for (uint j = 0; j < kept; j++) {
                float s = 0.0f;
                for (uint m = 0; m < S; m++)
                    s += shared[((m * R + i) * T + mate * kept + j) * team + me];
                sums[i][j] = s;
            }
    }

    METAL_FUNC bool has_sums() const { return S == 1 || mate < takers; }
    // Which token of the tile the sums [..][j] belong to.
    METAL_FUNC uint get_token(uint j) const { return column + Q * (S > 1 ? mate * kept + j : j); }

    // Divides the sums by the rms of their tokens.
    METAL_FUNC void normalise(uint in_dim, float eps) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < parts; i++) {
            float s = squares[i];
            s += simd_shuffle_xor(s, 1);
            s += simd_shuffle_xor(s, 2);
            s += simd_shuffle_xor(s, 4);
            if (me % 8 == 0)
                shared[mate * tokens + me / 8 + i * (team / 8)] = s;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (!has_sums())
            return;
        for (uint j = 0; j < kept; j++) {
            float s = 0.0f;
            for (uint m = 0; m < S; m++)
                s += shared[m * tokens + get_token(j)];
            const float inverse = rsqrt(s / float(in_dim) + eps);
            for (uint i = 0; i < R; i++)
                sums[i][j] *= inverse;
        }
    }

    // Puts the sums into threadgroup memory, (tokens, rows) in the order of slots, where all threads
    // may then read them.
    METAL_FUNC threadgroup const float *show() {
        static_assert(tokens * rows <= 4 * memory, "");
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (has_sums())
            for (uint j = 0; j < kept; j++)
                for (uint i = 0; i < R; i++)
                    shared[get_token(j) * rows + get_slot(i)] = sums[i][j];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        return shared;
    }
};

// Large tiles use each decoded weight and each value of x most often; split ones are enough of them to
// fill a GPU with the matrices of a small model, or with few tokens. Tiles of 32 x 32 whose columns are
// split in two were slower than one or the other at every size (H200).
template <typename F, bool HasNorm> struct tile_sizes {
    typedef tile<F, 8, 4, 8, 16, 1, HasNorm> large; // 64 rows, 64 tokens, 128 threads
    typedef tile<F, 4, 4, 4, 8, 4, HasNorm> split;  // 16 rows, 32 tokens, 4 teams of 32
    typedef tile<F, 2, 2, 8, 4, 8, HasNorm> few;    // 16 rows, 8 tokens, 8 teams of 32
};
