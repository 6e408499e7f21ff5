#include "math_mode.h"

#include <assert.h>
#include <string.h>

static const char *const names[MATH_COUNT] = {
    [MATH_SAFE] = "safe", [MATH_RELAXED] = "relaxed", [MATH_FAST] = "fast"};

const char *math_mode_get_name(math_mode m) {
    assert(m < MATH_COUNT);
    return names[m];
}

bool math_mode_find(const char *name, math_mode *m, err *e) {
    for (math_mode i = 0; i < MATH_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *m = i;
            return true;
        }
    return err_set(e, EXIT_USAGE,
                   "no math mode is called '%.40s'; there are safe, relaxed and fast", name);
}

/* Fuse, reassociate, multiply by a reciprocal, take 0 for -0, use approximate functions; under fast
 * math also assume that there is no infinity and no NaN. Not -ffast-math: for a CPU that would also
 * link code which switches flushing on for the whole process. */
#define RELAXED                                                                                    \
    "-ffp-contract=fast", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros",          \
        "-fno-trapping-math", "-fapprox-func", "-DASSAY_FAST_MATH=1"

const char *const *math_mode_get_flags(math_mode m) {
    static const char *const flags[MATH_COUNT][MATH_FLAGS + 1] = {
        [MATH_SAFE] = {"-ffp-contract=off"},
        [MATH_RELAXED] = {RELAXED},
        [MATH_FAST] = {RELAXED, "-ffinite-math-only"}};
    assert(m < MATH_COUNT);
    return flags[m];
}
