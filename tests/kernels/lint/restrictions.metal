// C++ and clang's extensions that MSL has not, of which the strict parse is the first to know.
#include <metal_stdlib>
using namespace metal;

int main() { return 0; } // main
constant uint count [[function_constant(0)]];
constant uint most = 4;

kernel void memory(device atomic_ulong *most_of_all [[buffer(0)]],
                   device float *out [[buffer(1)]],
                   threadgroup float *scratch, // threadgroup
                   threadgroup float *more [[threadgroup(1)]],
                   uint i [[thread_position_in_threadgroup]]) {
    atomic_fetch_add_explicit(most_of_all, 1ul, memory_order_relaxed); // ulong
    atomic_max_explicit(most_of_all, 1ul, memory_order_relaxed);
    threadgroup float tile[count]; // variable length
    threadgroup float fixed[most];
    float sums[i + 1];             // variable length
    float none[0];                 // zero
    thread_local float own = 1;    // thread_local
    register float first = 1;      // register
    static float last = 1;         // static
    long double wide = 1;          // long double
    half integer = 2h;             // suffix
    sums[i] = scratch[i] + more[i] + own + first + last + float(wide) + float(integer);
    tile[i] = fixed[i] = sums[i] + float(sizeof none);
again: // label
    out[i] = tile[i];
}
