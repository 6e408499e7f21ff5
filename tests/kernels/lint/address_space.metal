// Mistakes that C++ without address spaces lets pass. Each line that has one says so.
#include <metal_stdlib>
using namespace metal;

struct scale {
    float factor;
    float apply(float x) const { return x * factor; }
};

static void clear(thread float *x) {
    *x = 0.0f;
}

static float first(constant float *x) {
    return x[0];
}

static float sum(const thread float4 &v) {
    return v.x + v.y + v.z + v.w;
}

kernel void spaces(device float *x [[buffer(0)]], constant float *c [[buffer(1)]],
                   constant scale &s [[buffer(2)]], device float4 *v [[buffer(3)]],
                   threadgroup float *shared [[threadgroup(0)]],
                   uint i [[thread_position_in_grid]]) {
    float local[4];
    clear(&local[i & 3]);
    clear(&x[i & 3]);                      // mistake: device to thread
    clear(shared);                         // mistake: threadgroup to thread
    x[i & 3] = first(x);                   // mistake: device to constant
    device float *p = local;               // mistake: thread to device
    threadgroup float *q = p;              // mistake: device to threadgroup
    device float *r = (device float *)shared; // mistake: a cast between spaces
    x[i & 3] = s.apply(1.0f);              // mistake: a method of thread objects on a constant one
    x[i & 3] += sum(v[i & 3]);             // mistake: a reference to thread memory
    x[i & 3] += first(c) + *q + *r;
}
