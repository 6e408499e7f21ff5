// floats: plain weights, f32, f16 and bf16, as kernels read a format (formats.h): one weight at a
// time for rows of any length, or four, for rows that are whole float4s.
#pragma once

#include "../eight.h"

// Each as wide as it comes: the type that a template gives need not be spelled.
inline float widen(float v) {
    return v;
}
inline float4 widen(float4 v) {
    return v;
}
inline float widen(half v) {
    return float(v);
}
inline float4 widen(half4 v) {
    return float4(v);
}
inline uint widen(ushort v) {
    return uint(v);
}
inline uint4 widen(ushort4 v) {
    return uint4(v);
}

// T is float or half; V and W are vectors (or scalars) of float and of T with the same width.
template <typename T, typename V, typename W> struct plain_weights {
    typedef T block;
    typedef V wide;
    enum : uint { values = 1, wides = 1 };

    static METAL_FUNC void load(device const T *row, uint unit, thread V *v) {
        v[0] = widen(((device const W *)row)[unit]);
    }
    static METAL_FUNC float at(device const T *table, size_t i) { return float(table[i]); }
};

// A bfloat is the upper half of a float. Metal before 3.1 has no such type, so the bits are moved
// by hand; W is the bits of as many weights as V has floats.
template <typename V, typename W> struct bfloat_weights {
    typedef ushort block;
    typedef V wide;
    enum : uint { values = 1, wides = 1 };

    static METAL_FUNC void load(device const ushort *row, uint unit, thread V *v) {
        v[0] = as_type<V>(widen(((device const W *)row)[unit]) << 16u);
    }
    static METAL_FUNC float at(device const ushort *table, size_t i) {
        return as_type<float>(uint(table[i]) << 16u);
    }
};

typedef plain_weights<float, float, float> f32_single;
typedef plain_weights<half, float, half> f16_single;
typedef plain_weights<float, float4, float4> f32;
typedef plain_weights<half, float4, half4> f16;
typedef bfloat_weights<float, ushort> bf16_single;
typedef bfloat_weights<float4, ushort4> bf16;

// For product/per_thread.h.
template <typename T> struct float_eights {
    struct block {
        T v[8];
    };
    enum : uint { values = 8, eights = 1, scales = 1, has_minimum = 0 };
    enum : uint { has_bytes = 0 };
    static METAL_FUNC uint place(uint, uint) { return 0; }
    static METAL_FUNC void get(device const block *b, uint, thread eight_floats *n) {
        n[0] = load_floats(b->v);
    }
    static METAL_FUNC float2 get_scale(device const block *, uint, uint) {
        return float2(1.0f, 0.0f);
    }
};
typedef float_eights<float> f32_eights;
typedef float_eights<half> f16_eights;
typedef float_eights<ushort> bf16_eights;
