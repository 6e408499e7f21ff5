// start: the entry of a compiled kernel.
#pragma once

namespace assay {

// A launch may be set up while the one before it in the graph runs: here it waits until that one
// has ended and what it stored can be seen. Only then may the launch after this one be set up: more
// than two at a time take each other's room. Where nothing was set up early, both do nothing. A
// kernel with early loads (begin.h) does the same itself.
METAL_FUNC void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
    __asm__ volatile(ASSAY_WAIT_FOR_LAUNCH ::: "memory");
#endif
}

template <class P, class F> METAL_FUNC void start(P p, F kernel, const cuda_arguments &given) {
    if (!(given.flags & CUDA_EARLY))
        wait_for_launch_before();
    const here h(given);
    if (h.is_present())
        call(p, kernel, h);
}

// The sizes of what parameters point or refer to, for the host: 0 for positions.
template <class P, class F> struct size_table {
    uint bytes[sizes<P, F>::count + 1];
    constexpr size_table() : bytes() {
        for (uint i = 0; i < sizes<P, F>::count; ++i)
            bytes[i] = sizes<P, F>::bytes[i];
    }
};

} // namespace assay

// ASSAY_ENTRY: its name, which tools that watch the GPU show. The compiler is told. Of a kernel
// that says how many threads a threadgroup may have, so many must find room in the registers of a
// core.
#define ASSAY_EXPORT ASSAY_EXPORT_AS()
#define ASSAY_EXPORT_FOR(threads) ASSAY_EXPORT_AS(__attribute__((launch_bounds(threads))))
#define ASSAY_EXPORT_AS(...)                                                                       \
    _Pragma("clang attribute pop")                                                                 \
    _Pragma("clang force_cuda_host_device end")                                                    \
    extern "C" __attribute__((global)) __VA_ARGS__ void ASSAY_ENTRY(cuda_arguments given) {        \
        assay::start(assay_params(), assay_function, given);                                       \
    }                                                                                              \
    extern "C" __attribute__((device, used)) const                                                 \
        assay::size_table<assay_params, decltype(+assay_function)>                                 \
            assay_value_bytes = {};
