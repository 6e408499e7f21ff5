/* environment: does a text ask who reads it?
 *
 * A kernel that asks which compiler, processor, system or harness it is compiled for, or where and
 * when, can be one kernel when it is checked and another when it is used. What the language itself
 * defines (__METAL_VERSION__, __HAVE_BFLOAT__, __METAL_MACOS__, TARGET_OS_...) and what a project
 * defines may be asked for.
 *
 * Looks at the words of the file and of all that it includes, directives too, as they are written:
 * a branch that is left out here is taken elsewhere. */
#pragma once

#include "harness/base/remark.h"
#include "harness/device/msl/msl.h"

/* NULL for the unit: of a file that cannot be parsed, only the file itself. */
void environment_check(const char *path, const msl_unit *u, const msl_extras *extras,
                       remark_list *out);
