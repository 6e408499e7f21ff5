// matvec_f16: y = W x, with W (out_dim, in_dim) in halves: what a file keeps of rows that are not
// whole blocks.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in floats.h.
// The first two take rows of any length and read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_f16")]] kernel
    decltype(matvec<f16_single, false>) matvec<f16_single, false>;
template [[host_name("multi_token_matvec_f16")]] kernel
    decltype(multi_token<f16_single, false>) multi_token<f16_single, false>;
template [[host_name("multi_token_matvec_f16_reuse")]] kernel
    decltype(reuse<f16, false>) reuse<f16, false>;
template [[host_name("multi_token_matvec_f16_alone")]] kernel
    decltype(alone<f16, false>) alone<f16, false>;
