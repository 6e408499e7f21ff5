// begin: what clang needs to know before the shim when it compiles for Apple GPUs by way of SPIR-V.
//
// The text is HIP to clang (-x hip): that makes functions convergent, as in ../../device/shim/ptx/begin.h.
// LLVM's SPIR-V backend turns functions with the names of OpenCL's built-in ones into instructions.
#pragma once
#pragma clang system_header

#pragma clang force_cuda_host_device begin

#define ASSAY_ATOMIC_ORDER __ATOMIC_RELAXED
#define ASSAY_FENCE __spirv_MemoryBarrier(1, 0x110 | 0x8 | 0x200)

void __spirv_ControlBarrier(unsigned scope, unsigned memory, unsigned semantics);
void __spirv_MemoryBarrier(unsigned memory, unsigned semantics);
unsigned long get_local_linear_id();

#define AGX_LANES(T)                                                                               \
    T sub_group_reduce_add(T);                                                                     \
    T sub_group_reduce_min(T);                                                                     \
    T sub_group_reduce_max(T);                                                                     \
    T sub_group_scan_inclusive_add(T);                                                             \
    T sub_group_scan_exclusive_add(T);
AGX_LANES(float)
AGX_LANES(int)
AGX_LANES(unsigned)
#undef AGX_LANES
// A half is mangled as OpenCL's.
_Float16 sub_group_reduce_add(_Float16) __asm__("_Z20sub_group_reduce_addDh");
_Float16 sub_group_reduce_min(_Float16) __asm__("_Z20sub_group_reduce_minDh");
_Float16 sub_group_reduce_max(_Float16) __asm__("_Z20sub_group_reduce_maxDh");
int sub_group_shuffle(int, unsigned);
int sub_group_shuffle_xor(int, unsigned);
int sub_group_shuffle_up(int, unsigned);
int sub_group_shuffle_down(int, unsigned);
int sub_group_non_uniform_broadcast(int, unsigned);
int sub_group_broadcast_first(int);

float native_rsqrt(float);
float native_sqrt(float);
float native_exp2(float);
float native_log2(float);
float native_sin(float);
float native_cos(float);

// Functions without an LLVM intrinsic: Mesa's libclc has them, under OpenCL's mangled names.
namespace agx_clc {
float acosh(float) __asm__("_Z5acoshf");
float asinh(float) __asm__("_Z5asinhf");
float atanh(float) __asm__("_Z5atanhf");
float tanh(float) __asm__("_Z4tanhf");
float sinh(float) __asm__("_Z4sinhf");
float cosh(float) __asm__("_Z4coshf");
float tan(float) __asm__("_Z3tanf");
float acos(float) __asm__("_Z4acosf");
float asin(float) __asm__("_Z4asinf");
float atan(float) __asm__("_Z4atanf");
float log10(float) __asm__("_Z5log10f");
float exp(float) __asm__("_Z3expf");
float log(float) __asm__("_Z3logf");
float atan2(float, float) __asm__("_Z5atan2ff");
float fmod(float, float) __asm__("_Z4fmodff");
float fdim(float, float) __asm__("_Z4fdimff");
float pow(float, float) __asm__("_Z3powff");
float nextafter(float, float) __asm__("_Z9nextafterff");
int ilogb(float) __asm__("_Z5ilogbf");
float ldexp(float, int) __asm__("_Z5ldexpfi");
} // namespace agx_clc
#define __builtin_acoshf ::agx_clc::acosh
#define __builtin_asinhf ::agx_clc::asinh
#define __builtin_atanhf ::agx_clc::atanh
#define __builtin_tanhf ::agx_clc::tanh
#define __builtin_sinhf ::agx_clc::sinh
#define __builtin_coshf ::agx_clc::cosh
#define __builtin_tanf ::agx_clc::tan
#define __builtin_acosf ::agx_clc::acos
#define __builtin_asinf ::agx_clc::asin
#define __builtin_atanf ::agx_clc::atan
#define __builtin_log10f ::agx_clc::log10
#define __builtin_expf ::agx_clc::exp
#define __builtin_logf ::agx_clc::log
#define __builtin_atan2f ::agx_clc::atan2
#define __builtin_fmodf ::agx_clc::fmod
#define __builtin_fdimf ::agx_clc::fdim
#define __builtin_powf ::agx_clc::pow
#define __builtin_nextafterf ::agx_clc::nextafter
#define __builtin_ilogbf ::agx_clc::ilogb
#define __builtin_ldexpf ::agx_clc::ldexp
