/* rwkv7: the family of RWKV-7 ("Goose") models: a recurrence instead of attention. A layer keeps a
 * matrix per head and the last token's norms; its cost and memory do not grow with the text. */
#pragma once

#include "runner/model/family.h"

extern const model_family rwkv7_family;
