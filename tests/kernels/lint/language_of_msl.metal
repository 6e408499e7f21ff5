// C++ that is not MSL; each marked line must be reported with the rule it names.
#include <metal_stdlib>
using namespace metal;

float ghost(float x); // rule: undefined

inline int factorial(int n) {
    return n < 2 ? 1 : n * factorial(n - 1); // rule: recursion
}

inline int even(int n);
inline int odd(int n) {
    return n == 0 ? 0 : even(n - 1); // rule: recursion
}
inline int even(int n) {
    return n == 0 ? 1 : odd(n - 1);
}

template <typename T> T phantom(T x); // rule: undefined

template <typename T> T countdown(T n) { // rule: recursion
    return n < 1 ? n : countdown(n - 1);
}

// Overloads and templates that end at compile time call other functions.
inline float total_of(float2 v) {
    return v.x + v.y;
}
inline float total_of(float4 v) {
    return total_of(v.xy) + total_of(v.zw);
}
template <int n> float steps(float x) {
    return x + steps<n - 1>(x);
}
template <> float steps<0>(float x) {
    return x;
}

struct shape {
    virtual float area() { return 1; } // rule: language
};

kernel float result(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { // rule: kernel-result
    if (i < 1)
        out[i] = 1;
    return 2;
}

kernel void first_value(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup float total = 0; // rule: threadgroup-value
    int object = 3, mesh = 4, visible = 5;
    if (i == 1)
        goto done; // rule: language
    if (i < 4)
        out[i] = total + ghost(1) + float(factorial(3) + even(2) + object + mesh + visible);
    out[3] += phantom(1.0f) + float(countdown(3)) + total_of(float4(1)) + steps<2>(1);
done: // rule: language
    return;
}

kernel void by_value(device float *out [[buffer(0)]], constant float x [[buffer(1)]], // rule: buffer-value
                     uint i [[thread_position_in_grid]]) {
    if (i < 1)
        out[i] = x;
}

kernel void too_many(device float *out [[buffer(31)]], uint i [[thread_position_in_grid]]) { // rule: buffer-index
    if (i < 1)
        out[i] = 1;
}

struct settings {
    uint n;
};
kernel void struct_by_value(device float *out [[buffer(0)]], settings s [[buffer(1)]], // rule: buffer-value
                            uint i [[thread_position_in_grid]]) {
    if (i < s.n)
        out[i] = 1;
}

float nothing_at_the_end(float x) {
    if (x > 0)
        return x;
} // rule: return-value

kernel void by_value(device half *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { // rule: language
    if (i < 1)
        out[i] = 1;
}

template <typename T>
kernel void of_a_type(device T *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    out[i] = 1;
}

struct sorter {
    static void too_many(device float *out) { out[0] = 1; }
};
kernel void calls(device float *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    too_many(out, i);         // rule: kernel-call
    of_a_type<float>(out, i); // rule: kernel-call
    sorter::too_many(out);
}
