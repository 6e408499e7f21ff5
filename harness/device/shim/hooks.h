// hooks: where kernels and the shim tell checked mode what happens. Without it each is nothing.
#pragma once

namespace assay {
// What an atomic function does; an update depends on what was there.
enum class atomic_use { load, store, update };
} // namespace assay

#if defined(ASSAY_CHECKED)
#include "checked.h"
#else
#define ASSAY_CHECK_ATOMIC(at, bytes, use) ((void)0)
#define ASSAY_CHECK_COMPONENT(i, n) ((void)0)
#define ASSAY_STEP ((void)0)
#endif

#if !defined(ASSAY_CHECKED) || defined(ASSAY_CHECKED_LESS)
#define ASSAY_NAME(variable) variable
#define ASSAY_BIND(variable) ((void)0)
#endif
