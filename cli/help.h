/* help: what follows from the verbs' own tables besides their help texts: the manual pages, assay(1) and one per
 * verb, and what a shell may complete. The shell asks this program: `assay --complete WORD...`, the last of
 * which is the one to complete. */
#pragma once

#include <stdio.h>

#include "verb.h"

/* A verb of a family; NULL if it has none of this name. All verbs are the family `assay`. */
const verb *help_find_verb(const verb *family, const char *name);

/* Writes assay.1 and assay-VERB.1 for each verb to a folder, which is made. */
bool manual_write_all(const verb *all, const char *folder, err *e);

/* Makes the shell ask. bash, zsh or fish; anything else is an error. */
bool completion_print(FILE *out, const char *shell, err *e);

/* What the last word may become, one per line: verbs, options, their values, ops and kernels of the
 * project, experiments. Files are the shell's own. */
bool completion_answer(FILE *out, const verb *all, const char *const *words, size_t word_count,
                       err *e);
