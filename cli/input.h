/* input: all of standard input, any bytes. */
#pragma once

#include <stddef.h>

#include "harness/base/err.h"

/* At most `most` bytes; more are an error. NUL-terminated after them; the caller frees the text.
 */
char *input_read(size_t most, size_t *bytes, err *e);
