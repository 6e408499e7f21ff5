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

/* Shared by its files: */

void describe_set_dims(description *d, const uint32_t *sizes);
/* The file of an argument: "x_{rows}.npy" with the size for its name, below the description's
 * folder. */
bool describe_find_file(const description *d, const described_argument *a, char *path, size_t size,
                        err *e);
/* Compiles lines of C. */
bool describe_compile(const description *d, described_rule *r, err *e);
/* The oracle of its launches, whose context it is. */
void describe_oracle(const launch *l, oracle_io *io);
