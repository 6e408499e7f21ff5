// The same: another program.
// fast: 1 tried to call the operating system|crashed: SIG
// checked: 1
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    const char *const words[] = {"/bin/touch", WITNESS, nullptr};
    out[i] = reach(NR_EXECVE, (ulong) "/bin/touch", words, 0, 0);
}
