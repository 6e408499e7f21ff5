// matvec_q5_k_accumulate: y += W x, with W (out_dim, in_dim) in Q5_K blocks.
//
// As matvec_q5_k: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "q4_k.h"
#include "q5_k.h"
#include "matvec_rows.h"

template [[host_name("matvec_q5_k_accumulate")]] kernel
    decltype(matvec<q5_k, true>) matvec<q5_k, true>;
template [[host_name("multi_token_matvec_q5_k_accumulate")]] kernel
    decltype(multi_token<q5_k, true>) multi_token<q5_k, true>;
template [[host_name("multi_token_matvec_q5_k_accumulate_reuse")]] kernel
    decltype(reuse<q5_k, true>) reuse<q5_k, true>;
template [[host_name("multi_token_matvec_q5_k_accumulate_alone")]] kernel
    decltype(alone<q5_k, true>) alone<q5_k, true>;
