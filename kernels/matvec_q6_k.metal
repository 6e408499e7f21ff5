// matvec_q6_k: y = W x, with W (out_dim, in_dim) in Q6_K blocks: the head of most quantised models.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q6_k.h.
#include <metal_stdlib>
using namespace metal;

#include "q6_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q6_k")]] kernel
    decltype(matvec<q6_k, false>) matvec<q6_k, false>;
template [[host_name("multi_token_matvec_q6_k")]] kernel
    decltype(multi_token<q6_k, false>) multi_token<q6_k, false>;
template [[host_name("multi_token_matvec_q6_k_reuse")]] kernel
    decltype(reuse<q6_k, false>) reuse<q6_k, false>;
template [[host_name("multi_token_matvec_q6_k_alone")]] kernel
    decltype(alone<q6_k, false>) alone<q6_k, false>;
