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
    int object = 3;
    if (i == 1)
        goto done; // rule: language
    if (i < 4)
        out[i] = total + ghost(1) + float(factorial(3) + even(2) + object);
done:
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
