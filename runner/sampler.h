/* sampler: picks the next token from logits.
 *
 * The order of the steps is llama.cpp's: penalty on what was seen, top-k, top-p, min-p,
 * temperature, then a draw. A temperature of 0 is greedy: the largest logit, of equals the lowest
 * id, and NaN never. The same seed and settings give the same tokens on every machine. */
#ifndef ASSAY_SAMPLER_H
#define ASSAY_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "harness/check/fill.h"

typedef struct {
    double temperature;    /* 0: greedy */
    uint32_t top_k;        /* 0: all */
    double top_p;          /* 1: all */
    double min_p;          /* 0: all */
    double repeat_penalty; /* 1: none */
    uint32_t repeat_last;  /* how many tokens back the penalty looks */
    uint64_t seed;
} sampler_settings;

/* Greedy; the rest as llama.cpp has it. */
sampler_settings sampler_get_defaults(void);

typedef struct sampler sampler;
sampler *sampler_new(const sampler_settings *s, uint32_t vocab);
void sampler_free(sampler *s);

/* The argmax of the logits as they are: nothing here is needed, the device can choose. */
bool sampler_is_plain_greedy(const sampler *s);

void sampler_accept(sampler *s, uint32_t token);          /* it was seen: prompt and chosen */
uint32_t sampler_choose(sampler *s, const float *logits); /* does not accept it */

/* The largest logit; of equals the lowest; NaN never wins. */
uint32_t sampler_find_largest(const float *logits, uint32_t count);

#endif
