// internals: names of Apple's own headers that published kernels call directly, as declarations.
// shim/internals.h has the same for the software device.
#pragma once

#include "../../shim/aliases.h"

#define ASSAY_ALIAS(name) template <class T, class... More> T __metal_##name(T, More...);
ASSAY_ALIASES(ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS)
ASSAY_ALIAS(ldexp)
ASSAY_ALIAS(frexp)
#undef ASSAY_ALIAS
#undef ASSAY_ALIASES

ushort __metal_get_simdgroup_size(ushort);
ushort __metal_get_thread_index_in_simdgroup(ushort);
