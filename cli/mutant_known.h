/* mutant_known: which mutants are known to survive `assay mutants`. */
#pragma once

#include "harness/check/mutants.h"

/* The list of mutants that are known to survive, and why:
 *     @ file.metal function
 *     - the original line
 *     + the line with its mutation
 *     = why nothing changes, for reasons that no compiler can know
 *     ! or, in place of that: why nothing catches the mistake; it counts as a survivor
 * Blanks and lines that begin with # are ignored.
 *
 * Finds the reason, with its = or ! in front; NULL if there is none. The caller frees it. */
char *mutant_find_known(const char *list, const mutant *m);
