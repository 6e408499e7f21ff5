/* completion: what makes a shell complete verbs and options, printed from the verbs' own tables. */
#pragma once

#include <stdio.h>

#include "verb.h"

/* shell: bash, zsh or fish; anything else is an error. */
bool completion_print(FILE *out, const verb *const *verbs, size_t count, const char *shell, err *e);

/* What the arguments of a verb may be called, one per line, for the shell to choose from: ops and kernels
 * of the project, or experiments. */
bool completion_print_names(FILE *out, const verb *v, err *e);
