// matvec_q4_k: y = W x, with W (out_dim, in_dim) in Q4_K blocks: most matrices of a Q4_K_M file.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q4_k.h.
#include <metal_stdlib>
using namespace metal;

#include "q4_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q4_k")]] kernel
    decltype(matvec<q4_k, false>) matvec<q4_k, false>;
template [[host_name("multi_token_matvec_q4_k")]] kernel
    decltype(multi_token<q4_k, false>) multi_token<q4_k, false>;
template [[host_name("multi_token_matvec_q4_k_reuse")]] kernel
    decltype(reuse<q4_k, false>) reuse<q4_k, false>;
template [[host_name("multi_token_matvec_q4_k_alone")]] kernel
    decltype(alone<q4_k, false>) alone<q4_k, false>;
