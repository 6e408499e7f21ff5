/* ask: calls an oracle: its inputs and its expected values. */
#pragma once

#include "harness/device/launch.h"
#include "snapshot.h"

/* Calls the oracle of a launch with the contents before it, to fill in what they should become. If
 * the pipeline flushes denormals and the inputs contain some, calls it again with zeros in their
 * place: that is expected.flushed. Free io either way. */
bool ask_oracle(const launch *l, const snapshot *before, oracle_io *io, err *e);
void ask_free(oracle_io *io);
