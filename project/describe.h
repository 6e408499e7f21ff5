/* describe: ops described by a text instead of a C file. Its grammar is in the manual page
 * assay-op(5), docs/assay-op.5.
 *
 * The text is read (harness/check/description.h), and the op that comes
 * of it builds its cases and computes its expected values by evaluating expressions. Only `oracle {`,
 * lines of C, goes through a compiler. */
#pragma once

#include "harness/check/description.h"

/* The op of a description, which stays for the rest of the process; NULL with e set, which names
 * file and line. */
const op *describe_load(const char *path, const char *text, err *e);
