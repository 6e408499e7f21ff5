/* stack_use: does a compiled kernel's private memory fit on a fiber's stack? */
#pragma once

#include <stdbool.h>

#include "harness/base/err.h"

/* Reads and removes the list that the compiler wrote beside the object. */
bool stack_check(const char *object, const char *name, err *e);
