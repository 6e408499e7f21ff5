/* warn_agx: is a threadgroup larger than Mesa's compiler has room for on an M1 (harness/agx/agx.h)? There such
 * a launch fails, or computes nothing, while newer Apple GPUs, NVIDIA's and the software device run it.
 *
 * Silent where the compiler is not installed, and for threadgroups of up to 384 threads, which always fit.
 * Only what is in the cache already is looked up, which takes less than a millisecond, unless asked to compile. */
#pragma once

#include "harness/device/launch.h"
#include "harness/device/tape.h"

/* From now on kernels that are not in the cache are compiled: about a second each. */
void warn_agx_compile(bool on);

/* text gets a sentence, or "". */
void warn_agx_launch(const msl_unit *u, const char *kernel, const constant_value *constants,
                     size_t count, size3 group, char *text, size_t size);
/* About the first launch of a tape that is too large. */
void warn_agx_tape(const tape *t, char *text, size_t size);
