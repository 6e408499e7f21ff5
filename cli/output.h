/* output: stdout, where its reader may go away or its disk be full. */
#ifndef ASSAY_OUTPUT_H
#define ASSAY_OUTPUT_H

#include "harness/base/err.h"

/* Flushes stdout. A reader that hung up is EXIT_CLOSED, which main leaves without a word, as every
 * tool in a pipe does; anything else is EXIT_CANNOT with a sentence. */
bool output_flush(err *e);

#endif
