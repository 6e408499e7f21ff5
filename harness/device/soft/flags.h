/* flags: what clang and the linker are told about every kernel of the software device, and what the CPU
 * must have for it. */
#pragma once

#include "harness/base/err.h"
#include "harness/base/sha256.h"

#if defined(__APPLE__) && defined(__aarch64__)
#define SOFT_TARGET "-arch", "arm64"
#elif defined(__APPLE__)
#define SOFT_TARGET "-arch", "x86_64"
#elif defined(__aarch64__)
#define SOFT_TARGET "--target=aarch64-linux-gnu"
#else
#define SOFT_TARGET "--target=x86_64-linux-gnu"
#endif

typedef enum {
    FLAGS_COMMON,
    FLAGS_TENSORS, /* for texts that use Metal 4's tensor operations */
    FLAGS_FAST,
    FLAGS_CHECKED,
    FLAGS_COUNTED,
    FLAGS_LINK,
    FLAGS_KINDS
} soft_flags;
enum { MOST_FLAGS = 96 }; /* of any command: common, tensors and those of one build */

/* Puts the flags at argv[n] and what follows; returns the new n. */
int soft_flags_add(soft_flags kind, const char **argv, int n);
void soft_flags_hash(sha256 *h); /* all of them */

/* What not every CPU of its kind has and kernels ask for (shim/cpu/bytes.h); NULL: nothing. */
const char *soft_flags_find_cpu(void);
bool soft_flags_check_cpu(err *e); /* does it run what these flags make? */
