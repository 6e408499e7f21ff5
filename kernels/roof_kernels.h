/* roof_kernels: the kernels that harness/measure/roof.h measures a device with. */
#ifndef ASSAY_ROOF_KERNELS_H
#define ASSAY_ROOF_KERNELS_H

#include "harness/measure/roof.h"

extern const roof_kernels bandwidth_roof_kernels;

#endif
