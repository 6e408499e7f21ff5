/* math_mode: how freely a compiler may treat floating point, as in Metal's compile options.
 *
 * safe: each operation as written, the precise functions. relaxed: operations are contracted and
 * reassociated and the fast functions are used, but infinity and NaN stay what they are. fast: as
 * relaxed, and the compiler assumes that there is no infinity and no NaN. */
#pragma once

#include <stdbool.h>

#include "harness/base/err.h"

typedef enum { MATH_SAFE, MATH_RELAXED, MATH_FAST, MATH_COUNT } math_mode;

const char *math_mode_get_name(math_mode m);                 /* "safe" */
bool math_mode_find(const char *name, math_mode *m, err *e); /* false: names the modes */

/* The flags for clang, on every device that it compiles for, to take the freedom that Metal's
 * compiler has in this mode; NULL ends the list. Denormals, division and square root are the
 * device's own. */
enum { MATH_FLAGS = 8 };
const char *const *math_mode_get_flags(math_mode m);
