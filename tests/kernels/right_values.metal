// Right kernels with values of every size and kind: parts of words, private memory, arithmetic,
// function constants. They are of the kinds that are easily accused; checked mode must find nothing
// in any of them.
#include <metal_stdlib>
using namespace metal;

#include "exact.h"

// ------------------------------------------------------------------------------ sub-word accesses

kernel void in_place_half(device half *data [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    data[i] = data[i] * 2.0h;
}

kernel void in_place_half_then_neighbour(device half *data [[buffer(3)]],
                                         uint i [[thread_position_in_grid]],
                                         uint l [[thread_position_in_threadgroup]]) {
    data[i] = half(l);
    threadgroup_barrier(mem_flags::mem_device);
    half other = data[i ^ 1];
    threadgroup_barrier(mem_flags::mem_device);
    data[i] = other;
}

struct __attribute__((packed)) packed_record {
    uchar tag;
    packed_float3 a;
    half4 b;
};
static_assert(sizeof(packed_record) == 21, "packed: no padding, also for vectors");
kernel void vectors_of_a_packed_struct(FOUR, device packed_record *data [[buffer(3)]], IDS) {
    if (i < 24) {
        float3 v = float3(data[i].a) + float3(1);
        v *= data[i].a;
        data[i].a = v;
        data[i].b = half4(half3(1), half(data[i].b.x));
        data[i].b.y += half(v.x);
        packed_record copy = data[i];
        out[i] = dot(v, float3(copy.a)) + float(copy.b[2]) + float(copy.tag) + in[i % n];
    }
}

struct quantised {
    half scale;
    uchar q[16];
};
kernel void blocks_by_halves(FOUR, device const quantised *data [[buffer(3)]], IDS) {
    device const ushort *q = (device const ushort *)data[i % 28].q;
    quantised copy = reinterpret_cast<device const quantised *>(data)[i % 28];
    uint sum = *(device const ushort *)&data[i % 28].q[2];
    for (uint k = 0; k < 8; k++)
        sum += q[k] + copy.q[(k + i) % 16];
    out[i] = float(sum) + in[i % n];
}

kernel void functions_of_nan(FOUR, IDS) {
    float x = as_type<float>(i % 4 == 0 ? 0x7FC00000u : as_type<uint>(in[i % n]));
    out[i] = exp(x) + exp2(x) + exp10(x) + tanh(x) + pow(x, 2.5f) + powr(x, 1.5f) + sinh(x);
    out[i] += sinpi(x) + cospi(x) + tanpi(x) + float(half(cosh(half(x))));
}

kernel void three_of_four(FOUR, IDS) {
    threadgroup float3 tile[64];
    tile[l].x = in[i % n];
    tile[l].y = 2;
    tile[l].z = 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float3 v = tile[l ^ 1];
    out[i] = v.x + v.y + v.z;
}

// --------------------------------------------------------------------------------- private memory

struct accumulator {
    float m = -INFINITY;
    float l = 0;
    ushort tag;
};
kernel void default_members(FOUR, IDS) {
    accumulator a, b;
    a.tag = 1;
    b.tag = 2;
    a.m = max(a.m, in[i % n]);
    b = a;
    out[i] = b.m + b.l + float(b.tag);
}

struct padded {
    float value;
    ushort tag;
    uchar flag;
};
kernel void padded_struct_in_device_memory(FOUR, device padded *rows [[buffer(3)]], IDS) {
    if (i >= 64)
        return;
    padded p;
    p.value = in[i];
    p.tag = 3;
    p.flag = 1;
    rows[i] = p;
    out[i] = rows[i].value;
}

// A jump past a variable is C++ as long as that has no first value: checked mode leaves this one
// alone, and it alone.
kernel void jump_past_a_variable(FOUR, IDS) {
    float x = 0;
    switch (i % 3) {
    case 0:
        float t;
        t = in[i];
        x = t * 2;
        break;
    case 1:
        x = 1;
        break;
    }
    out[i] = x;
}

// Pointers to a member array that stay in it, and casts, which may cover the whole struct.
struct two_arrays {
    float a[4], b[4];
};
float sum_of(thread const float *p, int count) {
    float s = 0;
    for (int k = 0; k < count; k++)
        s += p[k];
    return s;
}
float sum_up_to(thread const float *p, thread const float *end) {
    float s = 0;
    while (p != end)
        s += *p++;
    return s + sum_of(end - 2, 2);
}
kernel void pointers_to_member_arrays(FOUR, IDS) {
    two_arrays t = {{1, 2, 3, in[i % n]}, {5, 6, 7, 8}};
    float s = sum_of(t.a, 4) + sum_of(t.b, 4) + sum_up_to(t.a, t.a + 4);
    s += sum_of((thread const float *)&t, 8);
    thread const uint *bits = (thread const uint *)t.a;
    for (int k = 0; k < 8; k++)
        s += as_type<float>(bits[k]);
    out[i] = s;
}

// Whatever its bytes are, a table is known by where it stands.
constant uchar any_bytes[2][20] = {{0x5E, 0xA1, 0x37, 0xC4, 0x0B, 0xD9, 0x62, 0xF3, 0x88, 0x15,
                                    0xEC, 0x4D, 0x91, 0x2A, 0xB6, 0x7F, 0x5E, 0xA1, 0x37, 0xC4}};
kernel void table_of_any_bytes(FOUR, IDS) {
    out[i] = float(any_bytes[g][i % 20]) + in[i % n];
}

kernel void sorted_privately(FOUR, IDS) {
    float v[4];
    for (int k = 0; k < 4; k++)
        v[k] = in[(i * 7 + k * 5) % n];
    for (int a = 0; a < 4; a++)
        for (int b = 0; b + 1 < 4 - a; b++)
            if (v[b] > v[b + 1]) {
                float t = v[b];
                v[b] = v[b + 1];
                v[b + 1] = t;
            }
    out[i] = v[0] + 2 * v[3];
}

// -------------------------------------------------------------------------------------- arithmetic

kernel void ranges_at_their_edges(FOUR, IDS) {
    uint bits = insert_bits(0u, i, 24, 8) + insert_bits(7u, 9u, 32, 0) + extract_bits(i, 31, 1);
    ushort2 half_bits = extract_bits(ushort2(ushort(i)), 8, 8);
    float s = smoothstep(0.0f, in[i % n], 0.5f) + float(smoothstep(-1.0h, 1.0h, half(i)));
    float x = simd_shuffle_down(s, ushort(n / 64)) + simd_shuffle(s, ushort(31 - lane));
    x += simd_shuffle_and_fill_up(s, 0.0f, ushort(n / 64));
    if (lane < 16)
        x += simd_shuffle_xor(s, 1);
    out[i] = x + float(bits % 64) + float(half_bits.x);
}

float value_on_every_path(uint i) {
    switch (i % 2) {
    case 0:
        return 1.0f;
    default:
        for (;;)
            if (++i % 7 == 0)
                return 2.0f;
    }
}
kernel void functions_with_values(FOUR, IDS) {
    out[i] = value_on_every_path(i) + in[i % n];
}

kernel void data_like_the_poison(FOUR, device uint *data [[buffer(3)]], IDS) {
    data[i] = 0xFFC3FFC3u;
    out[i] = as_type<float>(data[i]) + in[i % n];
    data[i] = data[i] + 1u;
}

// A store to a bit-field loads its neighbours, which have no value yet.
struct bit_fields {
    uint a : 5;
    uint b : 7;
    int c : 20;
    ushort d : 3;
};
kernel void bit_fields_one_by_one(FOUR, IDS) {
    threadgroup bit_fields shared[256];
    bit_fields x, all[4];
    x.a = l;
    x.b = 0;
    x.c = -3;
    x.c += 1;
    x.d = 2;
    for (int k = 0; k < 4; k++) {
        all[k] = x;
        all[k].d = ushort(k);
    }
    thread bit_fields &same = all[l & 3];
    shared[l % 256].b = l;
    out[i] = float(same.a + same.b + uint(same.c) + same.d + shared[l % 256].b);
}

// ---------------------------------------------------------------------- function constants, shapes

constant uint width [[function_constant(0)]];
constant bool with_bias [[function_constant(1)]];
template <typename T, int N> void copy_rows(device const T *from, device T *to, uint i) {
    T row[N];
    for (int k = 0; k < N; k++)
        row[k] = from[(i * N + k) % 128];
    if (i < 128 / N)
        for (int k = 0; k < N; k++)
            to[i * N + k] = row[k];
}
template <typename T, int N>
kernel void rows_of(device const T *in [[buffer(0)]], device T *out [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    copy_rows<T, N>(in, out, i);
}
template [[host_name("rows_of_four")]] kernel void rows_of<float, 4>(device const float *,
                                                                      device float *, uint);

kernel void specialised(FOUR, device const float *bias [[buffer(3), function_constant(with_bias)]],
                        IDS) {
    float x = in[i % n] * float(width);
    if (with_bias)
        x += bias[i];
    out[i] = x;
}

// ------------------------------------------------------------------------------ small integers

// Unsigned components wrap; those of signed vectors reach their ends and no further; scalars are
// promoted.
kernel void small_integers_at_their_edges(FOUR, IDS) {
    const ushort u = ushort(65535 - i % 2);
    const short s = short(32767 - i % 2);
    ushort2 a = ushort2(u) * ushort2(u);
    ushort4 b = ushort4(u) + u;
    uchar3 c = uchar3(uchar(u)) * uchar(200);
    uchar4 d = -uchar4(uchar(u));
    b *= ushort(60000);
    a -= ushort(60000);
    ++c;
    short2 e = short2(s) - short(i % 2);
    char4 f = char4(char(i % 2 - 128)) + char(1);
    e = -e / short(-1) - short2(abs(short(-s)));
    f /= char4(-2, -1, 1, 2);
    out[i] = float(a.x + b.w + c.z + d.y + e.x + f.y + s * s / 2 + short(s + s) + u * 2);
}

// --------------------------------------------------------------------------- second results

kernel void results_by_reference(FOUR, IDS) {
    const float x = in[i % n] * 1.25f;
    float w, c, pc;
    half hw, hc;
    float2 w2, c2;
    half4 hw4;
    int e, he;
    int3 e3;
    float sum = modf(x, w) + frexp(x, e) + sincos(x, c) + precise::sincos(x, pc);
    sum += float(modf(half(x), hw) + frexp(half(x), he) + sincos(half(x), hc));
    sum += modf(float2(x), w2).y + frexp(float3(x), e3).z + sincos(float2(x), c2).x;
    sum += float(modf(half4(half(x)), hw4).w);
    out[i] = sum + w + c + pc + float(hw + hc) + w2.y + c2.x + float(hw4.w) + float(e + he + e3.z);
}
