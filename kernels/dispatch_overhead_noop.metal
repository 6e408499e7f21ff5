// dispatch_overhead_noop: the least a launch can do and still prove that it ran.
#include <metal_stdlib>
using namespace metal;

// One thread adds 1 to a counter. Moves 8 bytes. It exists to time launches: each depends on the
// previous one through the counter, so a chain of them cannot overlap and the counter proves that
// all ran.
kernel void dispatch_overhead_noop(device uint *out [[buffer(0)]]) {
    out[0] = out[0] + 1;
}
