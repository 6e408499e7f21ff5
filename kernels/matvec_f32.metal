// matvec_f32: y = W x, with W (out_dim, in_dim) in floats: no decoding at all, the roof of the
// other formats.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in floats.h.
// The first two take rows of any length and read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_f32")]] kernel
    decltype(matvec<f32_single, false>) matvec<f32_single, false>;
template [[host_name("multi_token_matvec_f32")]] kernel
    decltype(multi_token<f32_single, false>) multi_token<f32_single, false>;
template [[host_name("multi_token_matvec_f32_reuse")]] kernel
    decltype(reuse<f32, false>) reuse<f32, false>;
template [[host_name("multi_token_matvec_f32_alone")]] kernel
    decltype(alone<f32, false>) alone<f32, false>;
