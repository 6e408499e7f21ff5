// matvec_q4_1: y = W x, with W (out_dim, in_dim) in Q4_1 blocks.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q4_1.h.
#include <metal_stdlib>
using namespace metal;

#include "q4_1.h"
#include "matvec_rows.h"

template [[host_name("matvec_q4_1")]] kernel
    decltype(matvec<q4_1, false>) matvec<q4_1, false>;
template [[host_name("multi_token_matvec_q4_1")]] kernel
    decltype(multi_token<q4_1, false>) multi_token<q4_1, false>;
template [[host_name("multi_token_matvec_q4_1_reuse")]] kernel
    decltype(reuse<q4_1, false>) reuse<q4_1, false>;
template [[host_name("multi_token_matvec_q4_1_alone")]] kernel
    decltype(alone<q4_1, false>) alone<q4_1, false>;
