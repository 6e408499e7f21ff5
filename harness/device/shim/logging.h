// logging: os_log of MSL 3.2, so that kernels with it compile. What they log goes nowhere.
#pragma once
#pragma clang system_header

#include "types.h"

namespace metal {

struct os_log {
    constexpr os_log(const char *, const char *) {}
    template <class... More> METAL_FUNC void log(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_debug(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_info(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_error(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_fault(const char *, More...) const {}
};

} // namespace metal
