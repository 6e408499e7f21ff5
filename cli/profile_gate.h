/* profile_gate: the numbers of a profile that --baseline compares, now and in a file that --csv wrote. */
#pragma once

#include "harness/base/csv.h"
#include "profile_print.h"

/* What must not grow: sectors, instructions, conflicts, idle lanes, private memory, and an NVIDIA GPU's
 * registers and spills, which are NaN where they are not known. */
enum { PROFILE_GATED = 7 };
extern const char *const profile_gated[PROFILE_GATED];
void profile_get_gated(const profile *p, double out[PROFILE_GATED]);

/* Those of a case in a file that --csv wrote; *found: is it there? */
bool profile_read_gated(const csv_file *f, const char *name, double out[PROFILE_GATED], bool *found,
                        err *e);

/* The architecture of this CPU: of the same kernel LLVM makes other instructions for another one. */
const char *profile_get_cpu(void);
/* Was the row counted on a CPU of this architecture? Files of an earlier version do not say. */
bool profile_is_of_this_cpu(const csv_file *f, size_t row);
