// matvec_bf16_accumulate: y += W x, with W (out_dim, in_dim) in bfloats.
//
// As matvec_bf16: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_bf16_accumulate")]] kernel
    decltype(matvec<bf16_single, true>) matvec<bf16_single, true>;
template [[host_name("multi_token_matvec_bf16_accumulate")]] kernel
    decltype(multi_token<bf16_single, true>) multi_token<bf16_single, true>;
template [[host_name("multi_token_matvec_bf16_accumulate_reuse")]] kernel
    decltype(reuse<bf16, true>) reuse<bf16, true>;
template [[host_name("multi_token_matvec_bf16_accumulate_alone")]] kernel
    decltype(alone<bf16, true>) alone<bf16, true>;
