/* llama: the family of llama models (SmolLM and its kin): grouped-query attention with rotary
 * positions over a cache, gated feed-forward, RMS norms. */
#ifndef ASSAY_LLAMA_H
#define ASSAY_LLAMA_H

#include "model_family.h"

extern const model_family llama_family;

#endif
