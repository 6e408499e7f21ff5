// per_thread_bytes: the product of a matrix with one vector in integers, for product/per_thread.h.
//
// A CPU may multiply two rows of eight bytes with two columns of them in the time of four floats
// (bytes.h), and weights need not become floats first. So x becomes integers, relative to the largest x
// that is multiplied with weights of the same scale, and these are four bytes each: a column for each
// byte. Three would be too few: where x has outliers, the smaller x would lose more than sums of floats
// do.
#pragma once

#include "../bytes.h"
#include "row.h"

// x of columns whose weights have the same scale: scale (b0 + 256 b1 + 65536 (b2 + 256 b3)), bytes with
// signs. S is a format by eights.
template <typename S> struct byte_run {
    enum : uint { eights = S::eights / S::scales, columns = 8 * eights };
    sixteen_bytes low[eights], high[eights]; // of each eight b0 and b1, b2 and b3
    uint4 excess[2]; // what all products have too much, because numbers are S::zero too large
    float scale, sum;

    static METAL_FUNC float4 load(device const float *x, uint i) {
        return float4(*(device const packed_float4 *)(x + 4 * i));
    }

    // The scale is a power of two, so that an x is off by at most 2^-30 of the largest one, M, when it is
    // rounded to an integer. False: the scale would be too small, x is not finite, or more than a quarter
    // of those that are not 0 are small, below 2^-9 M.
    //
    // Why 2^-9, in units of u = 2^-24: what is not small is off by at most 2^-21 of itself, 8 u. If M
    // meets a weight of 0, the magnitudes that errors are relative to are those of the others. Of n x
    // that are not 0, at least 3 n / 4 - 1 of the others are not small. With weights of about the same
    // size all errors together are at most 8 u (n - 1) / (3 n / 4 - 1): 12 u for n = 4, less for more.
    // Up to four roundings of floats follow. The shortest row, of 32 columns, may err by 4 + 2 sqrt(32) + 1 =
    // 16 u (compare.c). It has to hold for each run: x of other runs may be much smaller than M.
    METAL_FUNC bool set(device const float *x) thread {
        uint4 each = uint4(0u);
        for (uint i = 0; i < columns / 4; i++)
            each = max(each, as_type<uint4>(load(x, i)) & 0x7FFFFFFFu);
        const uint most = max(max(each.x, each.y), max(each.z, each.w));
        const uint exponent = most == 0 ? 127u : most >> 23u;
        if (exponent <= 64 || exponent == 255)
            return false;
        const uint least = max(most, 9u << 23u) - (9u << 23u);
        const float inverse = as_type<float>(254u + 29u - exponent << 23u);
        float4 sums = float4(0.0f);
        uint4 present = uint4(0u), large = uint4(0u);
        excess[0] = excess[1] = uint4(0u);
        for (uint i = 0; i < eights; i += 2) {
            float4 scaled[4];
            for (uint k = 0; k < 4; k++) {
                const float4 v = load(x, 2 * i + k);
                const uint4 magnitudes = as_type<uint4>(v) & 0x7FFFFFFFu;
                present += uint4(magnitudes != uint4(0u));
                large += uint4(magnitudes >= uint4(least));
                sums = S::has_minimum ? sums + v : sums;
                scaled[k] = rint(v * inverse);
            }
            sixteen_bytes bytes[4];
            split_floats(scaled, bytes);
            join_halves(bytes[0], bytes[1], low[i], low[i + 1]);
            join_halves(bytes[2], bytes[3], high[i], high[i + 1]);
            const sixteen_bytes zeros = fill_bytes<S::zero>();
            for (uint k = i; k < i + 2; k++) {
                excess[0] = add_dots(zeros, low[k], excess[0]);
                excess[1] = add_dots(zeros, high[k], excess[1]);
            }
        }
        excess[0] = 0u - excess[0];
        excess[1] = 0u - excess[1];
        scale = as_type<float>(exponent - 29u << 23u);
        sum = total(sums);
        const uint4 enough = 4u * large, wanted = 3u * present;
        return enough.x + enough.y + enough.z + enough.w >=
               wanted.x + wanted.y + wanted.z + wanted.w;
    }
};

// Sums of two rows: with b0 and b1 of the first, of the second; with b2 and b3.
struct byte_sums {
    float4 low, high;

    METAL_FUNC void clear() thread { low = high = float4(0.0f); }

    // += the products of a part of two rows.
    template <typename S> METAL_FUNC void add(device const typename S::block *a,
                                              device const typename S::block *b, uint part,
                                              thread const byte_run<S> *x) thread {
        sixteen_bytes n[S::eights];
        S::get_bytes(a, b, part, n);
        for (uint s = 0; s < S::scales; s++) {
            const uint first = s * byte_run<S>::eights;
            thread const byte_run<S> &run = x[S::place(part, first) / byte_run<S>::columns];
            uint4 dots[2] = {uint4(0u), uint4(0u)};
            if (S::zero != 0) {
                dots[0] = run.excess[0];
                dots[1] = run.excess[1];
            }
            for (uint i = 0; i < byte_run<S>::eights; i++) {
                dots[0] = add_dots(n[first + i], run.low[i], dots[0]);
                dots[1] = add_dots(n[first + i], run.high[i], dots[1]);
            }
            const float2 of_a = S::get_scale(a, part, s), of_b = S::get_scale(b, part, s);
            const float4 scale = float4(of_a.x, of_a.x, of_b.x, of_b.x) * run.scale;
            low = fma(scale, float4(as_type<int4>(dots[0])), low);
            high = fma(scale, float4(as_type<int4>(dots[1])), high);
            if (S::has_minimum)
                low = fma(float4(of_a.y, 0.0f, of_b.y, 0.0f), float4(run.sum), low);
        }
    }

    METAL_FUNC float2 get() const thread {
        const float4 all = fma(high, float4(65536.0f), low);
        return fma(all.yw, float2(256.0f), all.xz);
    }
};

// The rows of a threadgroup by its first thread, and of a tall matrix those of the next threadgroups
// too: x is split once for all of them, MOST columns at a time. T is product/per_thread.h's strip.
template <typename S, typename T> struct byte_tile {
    enum : uint { MOST = 2048, ROWS = 128, STRIP = 4, runs = MOST / byte_run<S>::columns };
    enum : uint {
        parts = S::values / (8 * S::eights),
        block_runs = S::values / byte_run<S>::columns
    };

    // sums += the products of four rows' blocks, the first of which is at `row`, with x.
    static METAL_FUNC void add_strip(thread const T &tile, uint row, uint from, uint blocks,
                                     thread const byte_run<S> *x, thread byte_sums *sums) {
        device const typename S::block *w0 = tile.find_row(row) + from,
                                       *w1 = tile.find_row(row + 1) + from,
                                       *w2 = tile.find_row(row + 2) + from,
                                       *w3 = tile.find_row(row + 3) + from;
        byte_sums upper = sums[0], lower = sums[1];
        for (uint b = 0; b < blocks; b++) {
            T::load_ahead(w0 + STRIP * (tile.in_dim / S::values + b));
            for (uint part = 0; part < parts; part++) {
                upper.template add<S>(w0 + b, w1 + b, part, x + block_runs * b);
                lower.template add<S>(w2 + b, w3 + b, part, x + block_runs * b);
            }
        }
        sums[0] = upper;
        sums[1] = lower;
    }

    // How many rows a thread computes: few enough that all threads of a CPU have some.
    static METAL_FUNC uint count_rows(uint out_dim) {
        return out_dim < 1024 ? 32 : out_dim < 8192 ? 64 : uint(ROWS);
    }

    // False: x cannot be split.
    static METAL_FUNC bool make(thread const T &tile, uint rows, uint token) {
        device const float *x = tile.x + size_t(token) * tile.in_dim;
        UNSET byte_run<S> split[runs];
        UNSET byte_sums sums[ROWS / 2];
        for (uint r = 0; r < rows; r += STRIP) {
            sums[r / 2].clear();
            sums[r / 2 + 1].clear();
        }
        for (uint from = 0; from < tile.in_dim; from += MOST) {
            const uint count = min(uint(MOST), tile.in_dim - from);
            for (uint i = 0; i < count / byte_run<S>::columns; i++)
                if (!split[i].set(x + from + byte_run<S>::columns * i))
                    return false;
            for (uint r = 0; r < rows; r += STRIP)
                add_strip(tile, tile.first + r, from / S::values, count / S::values, split,
                          sums + r / 2);
        }
        for (uint r = 0; r < rows; r++)
            tile.output.take(tile.y + size_t(token) * tile.out_dim + tile.first + r, tile.first + r,
                             sums[r / 2].get()[r % 2]);
        return true;
    }
};
