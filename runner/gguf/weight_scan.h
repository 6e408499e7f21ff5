/* weight_scan: finds NaN and infinity in the weights of a file, which make every token nonsense.
 *
 * Fast: of a quantised block only the scales can be non-finite, and only their exponents are looked
 * at. The whole file is read once. */
#pragma once

#include "gguf.h"

/* False with EXIT_WRONG: names the tensor, the row and the block. Tensors in types that no kernel
 * reads are left out. */
bool weight_scan(const gguf *g, err *e);
