/* sampler: picks the next token from logits.
 *
 * The order of the steps is llama.cpp's: penalty on recent tokens, top-k, top-p, min-p,
 * temperature, then a draw. A temperature of 0 is greedy: the largest logit, the lowest id of
 * equals, never a NaN. The same seed and settings give the same tokens on every machine. */
#pragma once

#include <stdint.h>

#include "harness/check/fill.h"

typedef struct {
    double temperature;    /* 0: greedy */
    uint64_t top_k;        /* 0: all */
    double top_p;          /* 1: all */
    double min_p;          /* 0: all */
    double repeat_penalty; /* 1: none */
    uint64_t repeat_last;  /* number of recent tokens penalised */
    uint64_t seed;
} sampler_settings;

/* Greedy; the rest are llama.cpp's defaults. */
#define SAMPLER_DEFAULTS                                                                           \
    { .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repeat_penalty = 1, .repeat_last = 64, .seed = 1 }

typedef struct sampler sampler;
sampler *sampler_new(const sampler_settings *s, uint32_t vocab);
void sampler_free(sampler *s);

/* The plain argmax of the logits, which the device can find by itself. */
bool sampler_is_plain_greedy(const sampler *s);

void sampler_accept(sampler *s, uint32_t token); /* counts for the penalty: prompt and chosen */
uint32_t sampler_choose(sampler *s, const float *logits); /* does not accept it */

/* The id of the largest logit; the lowest of equals; never a NaN. */
uint32_t sampler_find_largest(const float *logits, uint32_t count);
