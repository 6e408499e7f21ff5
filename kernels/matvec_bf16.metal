// matvec_bf16: y = W x, with W (out_dim, in_dim) in bfloats: what models are trained in.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in floats.h.
// The first two take rows of any length and read one weight at a time; the others read four and
// take rows that are whole float4s.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_bf16")]] kernel
    decltype(matvec<bf16_single, false>) matvec<bf16_single, false>;
template [[host_name("multi_token_matvec_bf16")]] kernel
    decltype(multi_token<bf16_single, false>) multi_token<bf16_single, false>;
template [[host_name("multi_token_matvec_bf16_reuse")]] kernel
    decltype(reuse<bf16, false>) reuse<bf16, false>;
template [[host_name("multi_token_matvec_bf16_alone")]] kernel
    decltype(alone<bf16, false>) alone<bf16, false>;
