/* ir_escape: variables whose address can be used after their life: it was stored in a variable that
 * lives longer, or leaves the function. */
#pragma once

#include "ir_calls.h"

/* Sets variable.escapes; these variables stand where arrays do, and no other takes their place. */
void ir_find_escapes(ir_routines *all);
