// matvec_q8_0: y = W x, with W (out_dim, in_dim) in Q8_0 blocks: the head of a small model, whose
// embeddings want more than 4 bits.
//
// What a thread and a threadgroup do is said in matvec_rows.h; the format is in q8_0.h.
#include <metal_stdlib>
using namespace metal;

#include "q8_0.h"
#include "matvec_rows.h"

template [[host_name("matvec_q8_0")]] kernel
    decltype(matvec<q8_0, false>) matvec<q8_0, false>;
template [[host_name("multi_token_matvec_q8_0")]] kernel
    decltype(multi_token<q8_0, false>) multi_token<q8_0, false>;
template [[host_name("multi_token_matvec_q8_0_reuse")]] kernel
    decltype(reuse<q8_0, false>) reuse<q8_0, false>;
template [[host_name("multi_token_matvec_q8_0_alone")]] kernel
    decltype(alone<q8_0, false>) alone<q8_0, false>;
