// Mistakes that C++ lets pass and MSL does not.
#include <metal_stdlib>
using namespace metal;

static float scratch = 1.0f; // mistake: program scope is constant

kernel void language(device float *x [[buffer(0)]], constant uint &n [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    x[i] = max(x[i], 1); // mistake: ambiguous
    x[i] += min(n, 3);   // mistake: ambiguous
    double d = x[i];     // mistake: no double
    x[i] = float(d) + scratch;
}
