/* oracle: what the kernels of products should compute. */
#pragma once

#include "harness/device/launch.h"

void product_oracle(const launch *l, oracle_io *io);
