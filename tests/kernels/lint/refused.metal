// C++ that Apple's compiler refuses, in MSL 3.0; each marked line must be reported in its words, and
// the line after it, which says the same in MSL, must not.
#include <metal_stdlib>
using namespace metal;

struct point {
    float x, y;
    float sum() const noexcept { return x + y; } // noexcept
    float product() const { return x * y; }
    point &me() { return *this; } // reference
    thread point &myself() thread { return *this; }
};

template <typename T> struct pair_of {
    T a, b;
    pair_of(T x, T y) : a(x), b(y) {}
};

float first(const float *x) { return x[0]; } // pointer
float second(thread const float *x) { return x[1]; }

void swap(point &p) { p = {p.y, p.x}; } // reference
void swap_in_place(thread point &p) { p = {p.y, p.x}; }

float total(float (&x)[2]) { return x[0] + x[1]; } // reference
float total_of(thread const float (&x)[2]) { return x[0] + x[1]; }

// A template parameter may bring its space along, and functions have none.
template <typename T> void clear(thread T &x) { x = T(0); }
template <typename P> float load(P p) { return *p; }
typedef float (*function)(float);

float twice(float x) { return 2 * x; }

kernel void refused(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    float a[2] = {1.0f, 2.0f};
    float *p = a; // pointer
    thread float *q = a;
    point s = {a[0], a[1]};
    point &t = s; // reference
    thread point &u = s;
    device float *r = (float *)0 + 0 == p ? out : out; // pointer
    device const float *v = (device const float *)out;
    long long wide = 1; // long long
    long narrow = 1;
    auto plus = [](float x) { return x + 1.0f; }; // lambda
    float area = a[0] * s.x + (a[0]) * (s.y), bits = float(n & i);
    pair_of both(1.0f, 2.0f); // template
    pair_of<float> either(1.0f, 2.0f);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device); // fence
    threadgroup_barrier(mem_flags::mem_device);
    bfloat less = 1; // bfloat
    half same = 1;
    swap(s);
    swap_in_place(s);
    clear(area);
    function f = twice;
    out[i] = s.sum() + s.product() + first(p) + second(q) + total(a) + total_of(a) + t.x + u.x + *r;
    out[i] += float(wide + narrow) + plus(bits) + both.a + either.b + float(less) + float(same);
    out[i] += area + load(v) + s.me().x + s.myself().x + f(1.0f);
}
