/* same_code: are two compiled kernels the same program? */
#pragma once

#include <stdbool.h>

#include "harness/device/device.h"

/* True if both pipelines, of the software device, are the same instructions and data, byte for
 * byte; debugging information does not count. False proves nothing. */
bool soft_is_same_code(const pipeline *a, const pipeline *b);
