/* instrument: tells checked mode about private variables.
 *
 * A kernel's variables are found in the text of its module as clang makes it, before any
 * optimisation. There every declaration of the language is the same: an alloca for the variable,
 * and, because clang is asked to fill variables that have no value with a pattern, instructions
 * with the note "auto-init" where such a variable comes to life. */
#pragma once

/* The module with calls of the hooks in shim/cpu/checked.h; the caller frees it. */
char *instrument_module(const char *module);
