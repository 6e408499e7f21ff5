// matvec_q5_k: y = W x, with W (out_dim, in_dim) in Q5_K blocks: most matrices of a Q5_K_M file.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q5_k.h.
#include <metal_stdlib>
using namespace metal;

#include "q4_k.h"
#include "q5_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q5_k")]] kernel
    decltype(matvec<q5_k, false>) matvec<q5_k, false>;
template [[host_name("multi_token_matvec_q5_k")]] kernel
    decltype(multi_token<q5_k, false>) multi_token<q5_k, false>;
template [[host_name("multi_token_matvec_q5_k_reuse")]] kernel
    decltype(reuse<q5_k, false>) reuse<q5_k, false>;
template [[host_name("multi_token_matvec_q5_k_alone")]] kernel
    decltype(alone<q5_k, false>) alone<q5_k, false>;
