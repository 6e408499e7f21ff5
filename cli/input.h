/* input: all of standard input, any bytes. */
#ifndef ASSAY_INPUT_H
#define ASSAY_INPUT_H

#include <stddef.h>

#include "harness/base/err.h"

/* At most `most` bytes; more are an error. NUL-terminated after them; the caller frees the text.
 */
char *input_read(size_t most, size_t *bytes, err *e);

#endif
