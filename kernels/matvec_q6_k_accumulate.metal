// matvec_q6_k_accumulate: y += W x, with W (out_dim, in_dim) in Q6_K blocks.
//
// As matvec_q6_k: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "q6_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q6_k_accumulate")]] kernel
    decltype(matvec<q6_k, true>) matvec<q6_k, true>;
template [[host_name("multi_token_matvec_q6_k_accumulate")]] kernel
    decltype(multi_token<q6_k, true>) multi_token<q6_k, true>;
template [[host_name("multi_token_matvec_q6_k_accumulate_reuse")]] kernel
    decltype(reuse<q6_k, true>) reuse<q6_k, true>;
template [[host_name("multi_token_matvec_q6_k_accumulate_alone")]] kernel
    decltype(alone<q6_k, true>) alone<q6_k, true>;
