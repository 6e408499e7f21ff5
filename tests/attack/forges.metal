// An answer of the device, made by the kernel itself: done, in no time. It is written to the first pipe.
// fast: 0 9999|1 in place of the device|1 tried to call|1 crashed|1 ended the process
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
#ifdef ON_AARCH64
enum { NR_FSTAT = 80, NR_WRITE = 64, MODE_AT = 16 };
#else
enum { NR_FSTAT = 5, NR_WRITE = 1, MODE_AT = 24 };
#endif
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    ulong status[32], answer[36] = {1};
    out[i] = find_call() ? 0 : 9999;
    for (int file = 3; file < 64; file++) {
        if (reach(NR_FSTAT, file, (ulong)status, 0, 0) == 0 &&
            (*(thread uint *)((thread uchar *)status + MODE_AT) & 0xF000) == 0x1000) {
            out[i] = reach(NR_WRITE, file, (ulong)answer, sizeof answer, 0);
            return;
        }
    }
}
