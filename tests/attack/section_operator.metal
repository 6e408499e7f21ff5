// The same by a pragma in a macro.
// fast: 1 '#pragma clang section
// checked: 1 '#pragma clang section
#include <metal_stdlib>
using namespace metal;
#define HIDDEN _Pragma("clang section rodata=\".text\"")
HIDDEN
constant uchar code[] = {0x0f, 0x05, 0xc3};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    ((void (*)())code)();
    out[i] = 1;
}
