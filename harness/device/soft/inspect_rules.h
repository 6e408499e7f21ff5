/* inspect_rules: what a kernel may call, and how one that wants more is refused. For inspect.c and
 * inspect_elf.c. */
#pragma once

#include <stdbool.h>

#include "harness/base/err.h"

#define INSPECT_CALLS "uses '"
#define INSPECT_STARTS "has code that runs when it is loaded (a constructor)"
#define INSPECT_CHOSEN "has a function that is chosen when it is loaded"
#define INSPECT_LIBRARY "wants another library"
#define INSPECT_CODE "has code in a section of its own"
#define INSPECT_DATA "has data that could be run as code"
#define INSPECT_SYSTEM "calls the operating system"

bool inspect_is_allowed(const char *name);
bool inspect_refuse(const char *kernel, const char *why, const char *what, err *e); /* false */
