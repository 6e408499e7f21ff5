/* ask: what an oracle is given and what it gives. */
#ifndef ASSAY_ASK_H
#define ASSAY_ASK_H

#include "harness/device/launch.h"
#include "snapshot.h"

/* Gives the oracle of a launch the contents before it and lets it fill what they should become. If
 * the pipeline flushes denormals and there are some among the inputs, asks again with zeros in
 * their place: that is expected.flushed. Free io either way. */
bool ask_oracle(const launch *l, const snapshot *before, oracle_io *io, err *e);
void ask_free(oracle_io *io);

#endif
