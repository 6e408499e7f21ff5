/* doctor_probes: small questions that only the device itself can answer, each asked in a process of
 * its own: `assay doctor --probe NAME --device D`. */
#pragma once

#include "harness/base/err.h"

/* Prints what the device does, in a sentence. EXIT_WRONG: it does what Assay does not expect. */
exit_code doctor_probe(const char *name, const char *device_name, err *e);
