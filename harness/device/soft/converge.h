/* converge: makes compiled code say where each lane is in the structure of its program. */
#pragma once

/* module: the text of an unoptimised module with names (clang -S -emit-llvm -Xclang -disable-llvm-passes
 * -fno-discard-value-names). Returns the text with the paths of abi.h; the caller frees it. NULL if a
 * function has more loops inside each other than a path has room for. */
char *converge_module(const char *module);
