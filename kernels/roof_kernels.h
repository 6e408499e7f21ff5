/* roof_kernels: the kernels that harness/measure/roof.h measures a device with. */
#pragma once

#include "harness/measure/roof.h"

extern const roof_kernels bandwidth_roof_kernels;
