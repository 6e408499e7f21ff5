// hooks: where kernels and the shim tell checked mode what happens. Without it each is nothing.
#pragma once

namespace assay {
// What an atomic function does; an update depends on what was there.
enum class atomic_use { load, store, update };
} // namespace assay

#if defined(ASSAY_CHECKED)
#include "checked.h"
#else
#define ASSAY_CAST(...)
#define ASSAY_SPIN ((void)0)
#define ASSAY_CHECK_ATOMIC(at, bytes, use) ((void)0)
#define ASSAY_CHECK_SYNC(flags, order, scope) ((void)0)
#define ASSAY_CHECK(is_wrong, what, value, text) ((void)0)
#define ASSAY_LEAVE
#define ASSAY_CHECK_COMPONENT(i, n) ((void)0)
#define ASSAY_STEP ((void)0)
#define ASSAY_LAST_STEP ((void)0)
#endif
#if defined(ASSAY_COUNTED)
#include "counted.h"
#endif
