// matvec_q8_0_accumulate: y += W x, with W (out_dim, in_dim) in Q8_0 blocks.
//
// As matvec_q8_0: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "q8_0.h"
#include "matvec_rows.h"

template [[host_name("matvec_q8_0_accumulate")]] kernel
    decltype(matvec<q8_0, true>) matvec<q8_0, true>;
template [[host_name("multi_token_matvec_q8_0_accumulate")]] kernel
    decltype(multi_token<q8_0, true>) multi_token<q8_0, true>;
template [[host_name("multi_token_matvec_q8_0_accumulate_reuse")]] kernel
    decltype(reuse<q8_0, true>) reuse<q8_0, true>;
template [[host_name("multi_token_matvec_q8_0_accumulate_alone")]] kernel
    decltype(alone<q8_0, true>) alone<q8_0, true>;
