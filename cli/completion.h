/* completion: what a shell may complete, from the verbs' own tables. The shell asks this program:
 * `assay --complete WORD...`, the last of which is the one to complete. */
#pragma once

#include <stdio.h>

#include "verb.h"

/* Makes the shell ask. bash, zsh or fish; anything else is an error. */
bool completion_print(FILE *out, const char *shell, err *e);

/* What the last word may become, one per line: verbs, options, their values, ops and kernels of the
 * project, experiments. Files are the shell's own. */
bool completion_answer(FILE *out, const verb *const *verbs, size_t count, const char *const *words,
                       size_t word_count, err *e);
