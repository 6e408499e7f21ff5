/* quant_search: the scales of the K formats, searched as ggml's reference quantisation does.
 *
 * The rounding of every sum decides which of two near encodings wins, so all arithmetic is that of
 * floats in a fixed order: files come out the same byte for byte. */
#pragma once

/* The nearest whole number, ties to even, from low to high; NaN gives low. */
long quant_round(float value, long low, long high);

enum { QUANT_PART = 32, QUANT_SMALL_PART = 16 };

/* How a part with a minimum is searched: numbers from 0 to top, and inverse scales from
 * (top + first) / range in `steps` further steps of 0.1. */
typedef struct {
    long top;
    float first;
    int steps;
} quant_search;

/* x (QUANT_PART) is about n scale - minimum with the least squared error, weighted by magnitude. Returns
 * the scale; *minimum is not negative. */
float quant_find_scale_and_min(const float *x, const quant_search *how, long *n, float *minimum);

/* x (QUANT_SMALL_PART) is about (n - 32) scale, with n from 0 to 63. Returns the scale, which may
 * be negative; 0 where all are about zero. */
float quant_find_scale(const float *x, long *n);
