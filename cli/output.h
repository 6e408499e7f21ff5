/* output: stdout, where its reader may go away or its disk be full, and what JSON begins with. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"
#include "harness/base/json.h"
#include "harness/device/device.h"

/* Flushes stdout. A reader that hung up is EXIT_CLOSED, which main leaves without a word, as every
 * tool in a pipe does; anything else is EXIT_CANNOT with a sentence. */
bool output_flush(err *e);

/* The beginning of the one JSON object that a verb prints: the program, the name of the verb, the
 * device (f may be NULL) and the seed. */
json output_open_json(FILE *out, const char *name, const device_facts *f, uint64_t seed);
/* The same for those that print the rest by hand: what comes next begins with a comma. */
void output_start_json(FILE *out, const char *name, const device_facts *f, uint64_t seed);
