// matvec_q5_1: y = W x, with W (out_dim, in_dim) in Q5_1 blocks.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q5_1.h.
#include <metal_stdlib>
using namespace metal;

#include "q5_1.h"
#include "matvec_rows.h"

template [[host_name("matvec_q5_1")]] kernel
    decltype(matvec<q5_1, false>) matvec<q5_1, false>;
template [[host_name("multi_token_matvec_q5_1")]] kernel
    decltype(multi_token<q5_1, false>) multi_token<q5_1, false>;
template [[host_name("multi_token_matvec_q5_1_reuse")]] kernel
    decltype(reuse<q5_1, false>) reuse<q5_1, false>;
template [[host_name("multi_token_matvec_q5_1_alone")]] kernel
    decltype(alone<q5_1, false>) alone<q5_1, false>;
