/* math_mode: see math_mode.h. */
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
