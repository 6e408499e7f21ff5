// matvec_q5_0: y = W x, with W (out_dim, in_dim) in Q5_0 blocks.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q5_0.h.
#include <metal_stdlib>
using namespace metal;

#include "q5_0.h"
#include "matvec_rows.h"

template [[host_name("matvec_q5_0")]] kernel
    decltype(matvec<q5_0, false>) matvec<q5_0, false>;
template [[host_name("multi_token_matvec_q5_0")]] kernel
    decltype(multi_token<q5_0, false>) multi_token<q5_0, false>;
template [[host_name("multi_token_matvec_q5_0_reuse")]] kernel
    decltype(reuse<q5_0, false>) reuse<q5_0, false>;
template [[host_name("multi_token_matvec_q5_0_alone")]] kernel
    decltype(alone<q5_0, false>) alone<q5_0, false>;
