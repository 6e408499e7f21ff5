// all_lanes: exchanges that all lanes of a simdgroup take part in. A device that would look first which
// of them are there need not.
#pragma once

#ifdef __ASSAY__
#define EXCHANGE(value, mask) ASSAY_EXCHANGE(value, mask)
#define ANY(condition) ASSAY_ANY(condition)
#else
#define EXCHANGE(value, mask) simd_shuffle_xor(value, mask)
#define ANY(condition) simd_any(condition)
#endif
