/* completion: what makes a shell complete verbs and options, printed from the verbs' own tables. */
#pragma once

#include <stdio.h>

#include "verb.h"

/* shell: bash, zsh or fish; anything else is an error. */
bool completion_print(FILE *out, const verb *const *verbs, size_t count, const char *shell, err *e);
