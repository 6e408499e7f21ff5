// matvec_q5_1_accumulate: y += W x, with W (out_dim, in_dim) in Q5_1 blocks.
//
// As matvec_q5_1: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "q5_1.h"
#include "matvec_rows.h"

template [[host_name("matvec_q5_1_accumulate")]] kernel
    decltype(matvec<q5_1, true>) matvec<q5_1, true>;
template [[host_name("multi_token_matvec_q5_1_accumulate")]] kernel
    decltype(multi_token<q5_1, true>) multi_token<q5_1, true>;
template [[host_name("multi_token_matvec_q5_1_accumulate_reuse")]] kernel
    decltype(reuse<q5_1, true>) reuse<q5_1, true>;
template [[host_name("multi_token_matvec_q5_1_accumulate_alone")]] kernel
    decltype(alone<q5_1, true>) alone<q5_1, true>;
