// Everything here is right MSL that a linter could stumble over: no message is wanted.
#include <metal_stdlib>
using namespace metal;

constant uint width [[function_constant(0)]];
constant bool has_scale [[function_constant(1)]];
constant float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
constexpr constant int levels[2] = {-8, 7};

struct block {
    half d;
    uchar qs[16];
};

struct settings {
    uint count;
    float scale;
    packed_float3 axis;
};

struct view {
    device const float *data;
    uint count;
    float at(uint i) const { return i < count ? data[i] : 0.0f; }
    float first() const device { return data[0]; }
};

static float pick(constant float *values, uint i) {
    return values[i & 3];
}

static float total(float4 v) {
    return dot(v, float4(1.0f));
}

struct half_block {
    float4 low, high;
    float total() const { return dot(low, high); }
};

static half_block load_half(device const float *x) {
    return {float4(x[0]), float4(x[1])};
}

static float add_halves(thread const half_block &h, const float bias) {
    return dot(h.low, h.high) + bias;
}

template <typename T> T square(T x) {
    return x * x;
}

template <typename T> static void swap_values(threadgroup T &a, threadgroup T &b) {
    T t = a;
    a = b;
    b = t;
}

static void unpack(device const block &b, thread float *out) {
    for (short k = 0; k < 16; k++)
        out[k] = float(b.d) * ((b.qs[k] & 0xF) + levels[0]);
}

[[max_total_threads_per_threadgroup(256)]]
kernel void shapes(device const block *blocks [[buffer(0)]], device float *y [[buffer(1)]],
                   constant settings &s [[buffer(2)]], constant float *c [[buffer(3)]],
                   device atomic_uint *counter [[buffer(4)]], device half4 *h [[buffer(5)]],
                   device const float *scale [[buffer(6), function_constant(has_scale)]],
                   threadgroup float *shared [[threadgroup(0)]],
                   uint3 group [[threadgroup_position_in_grid]],
                   ushort3 within [[thread_position_in_threadgroup]],
                   ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float tile[32][4];
    settings local = s;
    block global = blocks[group.x];
    float values[16];
    unpack(blocks[group.x], values);
    uint i = group.x * 32 + within.x;
    if (i >= local.count)
        return;
    float4 v = float4(values[0], values[1], values[2], values[3]);
    half4 narrow = (half4)v * 2.0h;
    h[i] = narrow;
    float4 wide = float4(h[i]) + static_cast<float4>(narrow);
    int4 whole = int4(wide);
    uint bits = as_type<uint>(wide.x) ^ uint(whole.x);
    tile[lane][0] = total(wide) + pick(c, i) + pick(table, i) + float(global.d);
    shared[within.x] = simd_sum(tile[lane][0]);
    if (lane == 0) {
        threadgroup float once;
        once = shared[0];
        swap_values(once, tile[0][1]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    float3 axis = float3(local.axis);
    view seen = {y, local.count};
    float best = max(max(shared[0], 0.0f), square(seen.at(i)));
    best = fmax(best, dot(axis, float3(1.0f, 0.0f, 0.0f))) * (has_scale ? scale[0] : 1.0f);
    atomic_fetch_add_explicit(counter, bits & 1u, memory_order_relaxed);
    thread const half_block &kept = load_half(y);
    best += add_halves(load_half(y), 1.0f) + add_halves(kept, 2.0f) + load_half(y).total();
    y[i * width] = select(best, 0.0f, max(-INFINITY, best) < 0);
}

kernel void multiplies(device const float *a [[buffer(0)]], device float *c [[buffer(1)]],
                       uint group [[threadgroup_position_in_grid]]) {
    simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_load(x, a + group * 64, 8);
    simdgroup_load(y, a, 8, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(z, x, y, z);
    simdgroup_store(z, c + group * 64, 8);
}

template <typename T, int n>
kernel void generic(device T *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup T tile[n];
    tile[i] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = tile[n - 1 - i];
}

template [[host_name("generic_half")]] kernel void generic<half, 32>(device half *x [[buffer(0)]],
                                                                     uint i
                                                                     [[thread_position_in_threadgroup]]);

// The launch has exactly as many threads as there are elements.
kernel void exact(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] = 1.0f; // NOLINT(missing-guard)
}

// A struct of arrays of structs is made, copied and assigned.
struct pair {
    float a, b;
};
template <uint n> struct pairs {
    pair all[n][2];
    device const float *from[n];
    void take(uint i) {
        for (uint k = 0; k < n; k++)
            all[k][0].a = from[k][i];
    }
};

kernel void arrays_of_structs(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
    pairs<2> now;
    now.from[0] = now.from[1] = x;
    now.take(i);
    pairs<2> next = now;
    next.take(i + 1);
    now = next;
    y[i] = now.all[1][0].a;
}

// A template of a kernel is a kernel, also one that nothing instantiates.
template <typename T>
kernel void not_instantiated(device T *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    threadgroup T shared[32];
    shared[i] = y[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = shared[31 - i];
}

// Constructors with address spaces, called for temporaries, also of bfloat.
template <typename T> struct complex_of {
    T real, imag;
    constexpr complex_of(T r, T i) thread : real(r), imag(i) {}
    constexpr complex_of(T r) thread : real(r), imag(T(0)) {}
    constexpr complex_of() thread : real(T(0)), imag(T(0)) {}
    constexpr complex_of() threadgroup : real(T(0)), imag(T(0)) {}
};
template <typename T> constexpr complex_of<T> operator*(complex_of<T> a, complex_of<T> b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
kernel void complex_numbers(device complex_of<float> *x [[buffer(0)]],
                            device complex_of<bfloat> *y [[buffer(1)]],
                            uint i [[thread_position_in_threadgroup]]) {
    x[i] = x[i] * complex_of<float>(2.0f) * x[i];
    y[i] = y[i] * y[i];
}

// What the language and a project define may be asked for; and a comment may say __clang__.
#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 220 && !defined(MY_PROJECT_HAS_BF16)
#ifdef __HAVE_BFLOAT__
#define MY_PROJECT_BF16 bfloat
#endif
#endif
#if defined(__METAL_MACOS__) || TARGET_OS_OSX || __METAL__ || __cpp_variable_templates
#define MY_PROJECT_WIDTH 32
#else
#define MY_PROJECT_WIDTH 16
#endif
constant char said[] = "__FILE__ \" __linux__";

// A member that is a struct with pointers, and is assigned by the constructor.
struct rows_of {
    device const float *rows;
    uint stride;
};
struct reader {
    rows_of from;
    METAL_FUNC reader(rows_of r) { from = r; }
    METAL_FUNC float get(uint i) const { return from.rows[i * from.stride]; }
};
kernel void members(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    const rows_of r = {x, 2};
    if (i < n)
        y[i] = reader(r).get(i);
}

// Literals of every type; what looks like a label and is none; memory that depends on a constant.
struct fields {
    uint low : 4, high : 4;
    enum : uint { size = 8 };
    uint : size;
};
constant uint twice_the_width = width * 2;
constant uint most = fields::size;
kernel void literals(device float *y [[buffer(0)]], device atomic_ulong *top [[buffer(1)]],
                     constant fields &f [[buffer(2)]], uint i [[thread_position_in_threadgroup]]) {
    float x = 2.0bf + 1.bf + .5BF;
    half h = 2.0h + 1.H + 0x1p-3h;
    float values[most];
    switch (f.low) {
    case fields::size: x = f.high > 1 ? (float)h : 1.0F; break;
    default: x += 0x1bf;
    }
    for (uint k = i; k < twice_the_width; k++)
        values[k % most] = x;
    atomic_max_explicit(top, 1ul, memory_order_relaxed);
    y[i] = values[i % most];
}
