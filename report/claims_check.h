/* claims_check: claims about errors, decided by the file of `assay check --csv`. */
#pragma once

#include "store.h"

/* rms_pct:NAME is the largest root mean square error of a case over that of its outputs, in percent, of all
 * cases with normal inputs of the op NAME and of kernels whose names contain NAME. A case with a value that is not
 * finite or was never written is infinitely wrong. False if the file has no such case, or for another metric. */
bool claims_find_error(const store_file *check, const char *metric, store_metric *out);
