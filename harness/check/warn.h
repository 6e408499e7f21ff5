/* warn: what is right here and may not be elsewhere.
 *
 * A threadgroup larger than Mesa's compiler has room for on an M1 (harness/agx/agx.h): there such a launch
 * fails, or computes nothing, while newer Apple GPUs, NVIDIA's and the software device run it. Silent where the compiler is not installed, and for threadgroups of up to 384 threads, which always fit.
 * Only what is in the cache already is looked up, which takes less than a millisecond, unless asked to compile.
 *
 * In fast math, a test for NaN or infinity, which Apple's compiler may leave out where clang has not. */
#pragma once

#include "harness/device/launch.h"
#include "harness/device/tape.h"

/* From now on kernels that are not in the cache are compiled: about a second each. */
void warn_agx_compile(bool on);

/* text gets a sentence, or "". */
void warn_launch(const msl_unit *u, const char *kernel, const constant_value *constants,
                 size_t count, size3 group, math_mode math, char *text, size_t size);
/* About the first launch of a tape that there is something to say of. */
void warn_tape(const tape *t, char *text, size_t size);
