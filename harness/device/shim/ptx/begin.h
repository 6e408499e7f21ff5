// begin: what clang needs to know before the shim when it compiles for NVIDIA GPUs.
//
// The text is CUDA to clang (-x cuda): only so are functions convergent, which keeps the optimiser
// from moving barriers and lane exchanges into branches. force_cuda_host_device makes every function
// of the shim and of the kernel one that the GPU can call; start.h ends it.
//
// The math functions that have no instruction are those of libdevice: math.h asks for them by the
// names of the compiler's builtins, which have no lowering there.
#pragma once
#pragma clang system_header

#pragma clang force_cuda_host_device begin

#define ASSAY_LIBDEVICE(name) extern "C" float __nv_##name(float)
#define ASSAY_LIBDEVICE_2(name) extern "C" float __nv_##name(float, float)
ASSAY_LIBDEVICE(acosf);
ASSAY_LIBDEVICE(acoshf);
ASSAY_LIBDEVICE(asinf);
ASSAY_LIBDEVICE(asinhf);
ASSAY_LIBDEVICE(atanf);
ASSAY_LIBDEVICE(atanhf);
ASSAY_LIBDEVICE(cosf);
ASSAY_LIBDEVICE(coshf);
ASSAY_LIBDEVICE(exp2f);
ASSAY_LIBDEVICE(expf);
ASSAY_LIBDEVICE(log10f);
ASSAY_LIBDEVICE(log2f);
ASSAY_LIBDEVICE(logf);
ASSAY_LIBDEVICE(roundf);
ASSAY_LIBDEVICE(sinf);
ASSAY_LIBDEVICE(sinhf);
ASSAY_LIBDEVICE(tanf);
ASSAY_LIBDEVICE(tanhf);
ASSAY_LIBDEVICE_2(atan2f);
ASSAY_LIBDEVICE_2(fdimf);
ASSAY_LIBDEVICE_2(fmodf);
ASSAY_LIBDEVICE_2(nextafterf);
ASSAY_LIBDEVICE_2(powf);
extern "C" int __nv_ilogbf(float);
extern "C" float __nv_ldexpf(float, int);
extern "C" float __nv_frexpf(float, int *);
extern "C" float __nv_modff(float, float *);
#undef ASSAY_LIBDEVICE
#undef ASSAY_LIBDEVICE_2

#define __builtin_acosf __nv_acosf
#define __builtin_acoshf __nv_acoshf
#define __builtin_asinf __nv_asinf
#define __builtin_asinhf __nv_asinhf
#define __builtin_atanf __nv_atanf
#define __builtin_atan2f __nv_atan2f
#define __builtin_atanhf __nv_atanhf
#define __builtin_cosf __nv_cosf
#define __builtin_coshf __nv_coshf
#define __builtin_exp2f __nv_exp2f
#define __builtin_expf __nv_expf
#define __builtin_fdimf __nv_fdimf
#define __builtin_fmodf __nv_fmodf
#define __builtin_frexpf __nv_frexpf
#define __builtin_ilogbf __nv_ilogbf
#define __builtin_ldexpf __nv_ldexpf
#define __builtin_log10f __nv_log10f
#define __builtin_log2f __nv_log2f
#define __builtin_logf __nv_logf
#define __builtin_modff __nv_modff
#define __builtin_nextafterf __nv_nextafterf
#define __builtin_powf __nv_powf
#define __builtin_roundf __nv_roundf
#define __builtin_sinf __nv_sinf
#define __builtin_sinhf __nv_sinhf
#define __builtin_tanf __nv_tanf
#define __builtin_tanhf __nv_tanhf

// MSL's atomics are relaxed; the instructions of other orders are not known to every clang.
#define ASSAY_ATOMIC_ORDER __ATOMIC_RELAXED
// clang has no lowering for the fence of C++ here.
#define ASSAY_FENCE __nvvm_membar_gl()

// What start.h does before a kernel, within one (kernels/prefetch.h), after loads of the buffers whose bits
// are set: the host reads the comment in the PTX, and lets the kernel begin without waiting
// (CUDA_EARLY) if no launch before it in the graph writes one of them. A launch may not end before the
// one before it, so at least one thread must come here.
#define ASSAY_WAIT_FOR_LAUNCH "griddepcontrol.wait; griddepcontrol.launch_dependents;"
#if __CUDA_ARCH__ >= 900
#define ASSAY_EARLY_LOADS(buffers)                                                                 \
    __asm__ volatile(ASSAY_WAIT_FOR_LAUNCH " // assay early %0" ::"n"(buffers) : "memory")
#define ASSAY_EARLY_ROWS(buffers)                                                                  \
    __asm__ volatile(ASSAY_WAIT_FOR_LAUNCH " // assay early rows %0" ::"n"(buffers) : "memory")
#endif

// It has an instruction that adds to a float in memory.
#define ASSAY_ADDS_FLOATS 1
