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

// Functions without an LLVM intrinsic: Mesa's libclc has them, under OpenCL's mangled names. The others are
// the compiler's builtins.
#define ASSAY_LIBM(name) ::agx_clc::name
namespace agx_clc {
float acoshf(float) __asm__("_Z5acoshf");
float asinhf(float) __asm__("_Z5asinhf");
float atanhf(float) __asm__("_Z5atanhf");
float tanhf(float) __asm__("_Z4tanhf");
float sinhf(float) __asm__("_Z4sinhf");
float coshf(float) __asm__("_Z4coshf");
float tanf(float) __asm__("_Z3tanf");
float acosf(float) __asm__("_Z4acosf");
float asinf(float) __asm__("_Z4asinf");
float atanf(float) __asm__("_Z4atanf");
float log10f(float) __asm__("_Z5log10f");
float expf(float) __asm__("_Z3expf");
float logf(float) __asm__("_Z3logf");
float atan2f(float, float) __asm__("_Z5atan2ff");
float fmodf(float, float) __asm__("_Z4fmodff");
float fdimf(float, float) __asm__("_Z4fdimff");
float powf(float, float) __asm__("_Z3powff");
float nextafterf(float, float) __asm__("_Z9nextafterff");
int ilogbf(float) __asm__("_Z5ilogbf");
float ldexpf(float, int) __asm__("_Z5ldexpfi");
#define AGX_BUILTIN(name)                                                                          \
    inline __attribute__((always_inline, nodebug)) float name(float x) { return __builtin_##name(x); }
#define AGX_BUILTIN_2(name, T)                                                                     \
    inline __attribute__((always_inline, nodebug)) float name(float x, T *p) { return __builtin_##name(x, p); }
AGX_BUILTIN(cosf)
AGX_BUILTIN(exp2f)
AGX_BUILTIN(log2f)
AGX_BUILTIN(roundf)
AGX_BUILTIN(sinf)
AGX_BUILTIN_2(frexpf, int)
AGX_BUILTIN_2(modff, float)
#undef AGX_BUILTIN
#undef AGX_BUILTIN_2
} // namespace agx_clc
