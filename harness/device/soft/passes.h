/* passes: what is done to the text of an unoptimised module with names (clang -S -emit-llvm -Xclang
 * -disable-llvm-passes -fno-discard-value-names). The caller frees what they return. */
#pragma once

/* The module with calls of the hooks in shim/cpu/checked.h, which tell checked mode about private variables. */
char *instrument_module(const char *module);

/* The module with the paths of abi.h, which say where each lane is in the structure of its program. NULL
 * if a function has more loops inside each other than a path has room for. */
char *converge_module(const char *module);
