// begin: what clang needs to know before the shim when it compiles for NVIDIA GPUs.
//
// The text is CUDA to clang (-x cuda): only so are functions convergent, which keeps the optimiser
// from moving barriers and lane exchanges into branches. force_cuda_host_device makes every function
// of the shim and of the kernel one that the GPU can call; start.h ends it.
//
// The math functions that have no instruction are those of libdevice: the compiler's builtins have no
// lowering there.
#pragma once
#pragma clang system_header

#pragma clang force_cuda_host_device begin

#define ASSAY_LIBM(name) __nv_##name
extern "C" {
float __nv_acosf(float), __nv_acoshf(float), __nv_asinf(float), __nv_asinhf(float), __nv_atanf(float),
    __nv_atanhf(float), __nv_cosf(float), __nv_coshf(float), __nv_exp2f(float), __nv_expf(float),
    __nv_log10f(float), __nv_log2f(float), __nv_logf(float), __nv_roundf(float), __nv_sinf(float),
    __nv_sinhf(float), __nv_tanf(float), __nv_tanhf(float);
float __nv_atan2f(float, float), __nv_fdimf(float, float), __nv_fmodf(float, float),
    __nv_nextafterf(float, float), __nv_powf(float, float);
float __nv_ldexpf(float, int), __nv_frexpf(float, int *), __nv_modff(float, float *);
int __nv_ilogbf(float);
}

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
