/* llama: the family of llama models (SmolLM and its kin): grouped-query attention with rotary
 * positions over a cache, gated feed-forward, RMS norms. */
#pragma once

#include "runner/model/family.h"

extern const model_family llama_family;
