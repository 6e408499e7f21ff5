// matvec_f32_accumulate: y += W x, with W (out_dim, in_dim) in floats.
//
// As matvec_f32: see there. The sum goes where it is wanted, with no launch of its own.
#include <metal_stdlib>
using namespace metal;

#include "floats.h"
#include "matvec_rows.h"

template [[host_name("matvec_f32_accumulate")]] kernel
    decltype(matvec<f32_single, true>) matvec<f32_single, true>;
template [[host_name("multi_token_matvec_f32_accumulate")]] kernel
    decltype(multi_token<f32_single, true>) multi_token<f32_single, true>;
template [[host_name("multi_token_matvec_f32_accumulate_reuse")]] kernel
    decltype(reuse<f32, true>) reuse<f32, true>;
template [[host_name("multi_token_matvec_f32_accumulate_alone")]] kernel
    decltype(alone<f32, true>) alone<f32, true>;
