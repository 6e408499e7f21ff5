// eight: eight floats or integers side by side, for kernels whose threads work alone.
//
// Metal's vectors end at four, and the vectors of a CPU do not: the software device has these as
// one (shim/cpu/eight.h). Everywhere else they are two of four.
#pragma once

template <typename V> struct pair_of {
    V low, high;
    pair_of() = default;
    METAL_FUNC pair_of(V l, V h) : low(l), high(h) {}
    METAL_FUNC pair_of(float all) : low(all), high(all) {}
};

// Operators of two of them, and of one with a scalar.
#define PAIR_OPERATOR(op)                                                                          \
    template <typename V> METAL_FUNC pair_of<V> operator op(pair_of<V> a, pair_of<V> b) {          \
        return pair_of<V>(a.low op b.low, a.high op b.high);                                       \
    }
#define PAIR_WITH_INT(op)                                                                          \
    METAL_FUNC pair_of<int4> operator op(pair_of<int4> a, int b) {                                 \
        return pair_of<int4>(a.low op b, a.high op b);                                             \
    }
PAIR_OPERATOR(+)
PAIR_OPERATOR(*)
PAIR_OPERATOR(|)
PAIR_WITH_INT(-)
PAIR_WITH_INT(&)
PAIR_WITH_INT(<<)
PAIR_WITH_INT(>>)
#undef PAIR_OPERATOR
#undef PAIR_WITH_INT

METAL_FUNC pair_of<float4> multiply_add(pair_of<float4> a, pair_of<float4> b, pair_of<float4> c) {
    return pair_of<float4>(fma(a.low, b.low, c.low), fma(a.high, b.high, c.high));
}
METAL_FUNC pair_of<float4> to_floats(pair_of<int4> n) {
    return pair_of<float4>(float4(n.low), float4(n.high));
}
METAL_FUNC float total(pair_of<float4> v) {
    const float4 sums = v.low + v.high;
    return (sums.x + sums.y) + (sums.z + sums.w);
}
METAL_FUNC void join(float4 low, float4 high, thread pair_of<float4> &v) {
    v = pair_of<float4>(low, high);
}

METAL_FUNC float get_lane(pair_of<float4> v, uint i) {
    return i < 4 ? v.low[i] : v.high[i - 4];
}
METAL_FUNC void transpose(thread pair_of<float4> *v) {
    for (uint i = 0; i < 8; i++)
        for (uint k = 0; k < i; k++) {
            const float kept = get_lane(v[i], k), other = get_lane(v[k], i);
            (k < 4 ? v[i].low : v[i].high)[k % 4] = other;
            (i < 4 ? v[k].low : v[k].high)[i % 4] = kept;
        }
}

// From memory that is aligned as its elements are.
METAL_FUNC void load_eight(device const uchar *q, thread pair_of<int4> &n) {
    n = pair_of<int4>(int4(q[0], q[1], q[2], q[3]), int4(q[4], q[5], q[6], q[7]));
}
METAL_FUNC void load_eight(device const char *q, thread pair_of<int4> &n) {
    n = pair_of<int4>(int4(q[0], q[1], q[2], q[3]), int4(q[4], q[5], q[6], q[7]));
}
METAL_FUNC void load_eight(device const float *x, thread pair_of<float4> &v) {
    v = pair_of<float4>(float4(x[0], x[1], x[2], x[3]), float4(x[4], x[5], x[6], x[7]));
}
METAL_FUNC void load_eight(device const half *x, thread pair_of<float4> &v) {
    v = pair_of<float4>(float4(x[0], x[1], x[2], x[3]), float4(x[4], x[5], x[6], x[7]));
}
// The nibbles of 16 bytes, less the bias: low ones, then high ones.
template <int bias> METAL_FUNC void load_nibbles(device const uchar *q, thread pair_of<float4> *n) {
    for (uint i = 0; i < 2; i++) {
        pair_of<int4> bytes;
        load_eight(q + 8 * i, bytes);
        n[i] = to_floats((bytes & 15) - bias);
        n[i + 2] = to_floats((bytes >> 4) - bias);
    }
}
METAL_FUNC float from_bfloat(ushort bits) { // its bits are the upper half of a float's
    return as_type<float>(uint(bits) << 16u);
}
METAL_FUNC void load_eight(device const ushort *x, thread pair_of<float4> &v) {
    v = pair_of<float4>(
        float4(from_bfloat(x[0]), from_bfloat(x[1]), from_bfloat(x[2]), from_bfloat(x[3])),
        float4(from_bfloat(x[4]), from_bfloat(x[5]), from_bfloat(x[6]), from_bfloat(x[7])));
}

// four_floats: floats in memory that are multiplied one at a time, in a register where instructions can
// take them from there.
// LOAD_AHEAD: brings what is there to the cache, where there is an instruction for it that cannot fault.
#ifdef __ASSAY__
typedef ASSAY_EIGHT_FLOATS eight_floats;
typedef ASSAY_EIGHT_INTS eight_ints;
typedef ASSAY_FOUR_FLOATS four_floats;
#define LOAD_AHEAD(at) ASSAY_LOAD_AHEAD(at)
#else
typedef pair_of<float4> eight_floats;
typedef pair_of<int4> eight_ints;
typedef thread const float *four_floats;
#define LOAD_AHEAD(at)
#endif

template <typename T> METAL_FUNC eight_floats load_floats(device const T *x) {
    eight_floats v;
    load_eight(x, v);
    return v;
}
template <typename T> METAL_FUNC eight_ints load_ints(device const T *q) {
    eight_ints n;
    load_eight(q, n);
    return n;
}
// The numbers of six bits, less 32, of 16 bytes, of those 32 further on and of 16 that have their upper
// two bits: the low nibbles of both, then the high ones.
template <typename V>
METAL_FUNC void load_sixes(device const uchar *low, device const uchar *high, thread V *n) {
    for (uint i = 0; i < 2; i++) {
        const eight_ints even = load_ints(low + 8 * i);
        const eight_ints odd = load_ints(low + 32 + 8 * i);
        const eight_ints upper = load_ints(high + 8 * i);
        n[i] = to_floats(((even & 15) | (upper << 4 & 48)) - 32);
        n[i + 2] = to_floats(((odd & 15) | (upper << 2 & 48)) - 32);
        n[i + 4] = to_floats((even >> 4 | (upper & 48)) - 32);
        n[i + 6] = to_floats((odd >> 4 | (upper >> 2 & 48)) - 32);
    }
}
