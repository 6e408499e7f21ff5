/* shift_mask: shifts by more than the width of a scalar, as MSL defines them: the count is its
 * log2(width) lowest bits. In C++, and to LLVM, such a result is anything, and a store of it goes. */
#pragma once

#include <stdbool.h>

/* Can the text have such a shift? All counts that are literals below 32 are right. */
bool shift_mask_is_needed(const char *msl);

/* The text of an unoptimised module (clang -S -emit-llvm -Xclang -disable-llvm-passes), with masked
 * counts; the caller frees it. */
char *shift_mask_module(const char *module);
