// matvec_q4_k_accumulate: y += W x, with W (out_dim, in_dim) in Q4_K blocks.
//
// As matvec_q4_k: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "q4_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q4_k_accumulate")]] kernel
    decltype(matvec<q4_k, true>) matvec<q4_k, true>;
template [[host_name("multi_token_matvec_q4_k_accumulate")]] kernel
    decltype(multi_token<q4_k, true>) multi_token<q4_k, true>;
template [[host_name("multi_token_matvec_q4_k_accumulate_reuse")]] kernel
    decltype(reuse<q4_k, true>) reuse<q4_k, true>;
template [[host_name("multi_token_matvec_q4_k_accumulate_alone")]] kernel
    decltype(alone<q4_k, true>) alone<q4_k, true>;
