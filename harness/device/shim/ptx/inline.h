// inline: stands between the shim and the kernel's text. Not in metal.h, because precompiled headers
// cannot end inside of an attribute push.
//
// The kernel's own functions become part of the entry: a pointer keeps the space that it points to,
// and nothing else is left of them. ASSAY_EXPORT (start.h) ends it.
#pragma once
#pragma clang attribute push(__attribute__((always_inline, internal_linkage)), apply_to = function)
