// Vectors, conversions, half floats, function constants, gated arguments, structs.
#include <metal_stdlib>
using namespace metal;

template <typename T> static T differ(T v, T w) { return -v.yx - w.xy; }
template <typename T, typename S> static T between(T v, S s) {
    v.xy += s;
    v.yx *= v.xy - s;
    return (v.yx - s) + (s * v.xy);
}
template <typename T> static T mask(T v, uint bits) { return (v.yx & bits) | (bits ^ v.xy); }
template <typename T> static bool is_less(T v, T w) { return all(v.xy < w.yx) && !any(v.xy == 1); }

// What random programs (tests/smith.h) do not have. Each line is one claim; the expected numbers stand in tests/test_language.c in the same order.
kernel void vectors(device float *out [[buffer(0)]]) {
    uint n = 0;
    const float4 v = float4(1, 2, 3, 4);
    const float2 a = float2(5, 6);
    const float3 b(7, 8, 9);
    const auto put2 = [&](float2 x) { out[n++] = x.x; out[n++] = x.y; };
    const auto put3 = [&](float3 x) { put2(x.xy); out[n++] = x.z; };
    const auto put4 = [&](float4 x) { put3(x.xyz); out[n++] = x.w; };
    float4 m = v;
    m.xy = a;
    m.w = 0;
    put4(m);
    m.zx = float2(10, 20);
    put4(m);
    m[1] = 30;
    m += v;
    put4(m);
    put4(float4(int4(1.9f, -1.9f, 2.5f, 3)));
    out[n++] = length(float2(3, 4));
    put3(cross(float3(1, 0, 0), float3(0, 1, 0)));
    put4(clamp(v, 2.0f, 3.0f));
    put4(max(v, 2.5f));
    put4(mix(v, float4(0), 0.5f));
    out[n++] = as_type<float>(0x40490fdbu);
    out[n++] = float(as_type<uint>(1.0f) >> 23);
    out[n++] = as_type<half2>(0x3c004000u).x;
    out[n++] = float(half(1.0f) / half(3.0f));
    out[n++] = 1 / 3.0h;
    out[n++] = .5H + 0x1.8P+2H + 1.e1H + 1.F;
    out[n++] = 2.0bf + 1.bf + .5BF + 1e3bf + 0x1p-3bf + 1'0.5e-1BF + 0x1bf;
    out[n++] = 1.003906250001bf; // a float is halfway between two bfloats
    out[n++] = float(sizeof(float3)) + float(sizeof(packed_float3)) / 100;
    out[n++] = fma(2.0f, 3.0f, 4.0f) + rsqrt(4.0f) + exp2(3.0f) + precise::sqrt(9.0f);
    out[n++] = float(char(200)) + float(short(40000)) + float(uint(7.9f));
    const float2x2 q = float2x2(float2(1, 2), float2(3, 4));
    put2(q * a);
    put2(a * q);
    float2x2 d = q / 2;
    d /= 0.5f;
    put2(d[1]);
    put2(differ(a, float2(1, 3)));
    put2(float2(between(half2(2, 3), half(1))));
    put2(float2(mask(uint2(6, 1), 4u)));
    out[n++] = is_less(int2(2, 3), int2(4, 5));
    device packed_float3 *p = (device packed_float3 *)(out + n);
    *p = packed_float3(b);
    n += 3;
    out[n] = float(n);
}

// out[i] = the half nearest to in[i].
kernel void round_to_half(device const float *in [[buffer(0)]], device half *out [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) {
    out[i] = half(in[i]);
}

kernel void widen_half(device const half *in [[buffer(0)]], device float *out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    out[i] = float(in[i]);
}

// Every operation rounds: (a*b)+c in half is two roundings.
kernel void half_arithmetic(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]],
                            device half *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    out[4 * i] = a[i] + b[i];
    out[4 * i + 1] = a[i] * b[i];
    out[4 * i + 2] = a[i] / b[i];
    out[4 * i + 3] = a[i] * b[i] + a[i];
}

kernel void bfloat_arithmetic(device const bfloat *a [[buffer(0)]],
                              device const bfloat *b [[buffer(1)]],
                              device bfloat *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    out[4 * i] = a[i] + b[i];
    out[4 * i + 1] = a[i] * b[i];
    out[4 * i + 2] = a[i] / b[i];
    out[4 * i + 3] = a[i] * b[i] + a[i];
}

constant uint factor [[function_constant(0)]];
constant bool with_bias [[function_constant(1)]];
constant float scale [[function_constant(2)]];

kernel void specialised(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                        device const float *bias [[buffer(2), function_constant(with_bias)]],
                        uint i [[thread_position_in_grid]]) {
    float x = in[i] * float(factor) * scale;
    if (with_bias)
        x += bias[i];
    out[i] = x;
}

struct options {
    uint count;
    float2 shift;
    packed_float3 extra;
};

kernel void with_struct(device float *out [[buffer(0)]], constant options &o [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    if (i < o.count)
        out[i] = o.shift.y + o.extra.z;
}

template <typename T>
[[kernel]] void doubled(device const T *in [[buffer(0)]], device T *out [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    out[i] = in[i] + in[i];
}
template [[host_name("doubled_float")]] [[kernel]] void
doubled<float>(device const float *, device float *, uint);
template [[host_name("doubled_int")]] [[kernel]] void doubled<int>(device const int *,
                                                                    device int *, uint);

// Buffers without numbers are counted in order.
kernel void unnumbered(device const float *in, constant float &add, device float *out,
                       uint i [[thread_position_in_grid]]) {
    out[i] = in[i] + add;
}
