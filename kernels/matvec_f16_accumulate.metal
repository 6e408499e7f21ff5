// matvec_f16_accumulate: y += W x, with W (out_dim, in_dim) in halves.
//
// As matvec_f16: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_f16_accumulate")]] kernel
    decltype(matvec<f16_single, true>) matvec<f16_single, true>;
template [[host_name("multi_token_matvec_f16_accumulate")]] kernel
    decltype(multi_token<f16_single, true>) multi_token<f16_single, true>;
template [[host_name("multi_token_matvec_f16_accumulate_reuse")]] kernel
    decltype(reuse<f16, true>) reuse<f16, true>;
template [[host_name("multi_token_matvec_f16_accumulate_alone")]] kernel
    decltype(alone<f16, true>) alone<f16, true>;
