#include "quant_search.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A part in which nothing is larger is zero. */
static const float nothing = 1e-15f;

long quant_round(float value, long low, long high) {
    float whole = nearbyintf(value);
    return !(whole > (float)low) ? low : whole > (float)high ? high : (long)whole;
}

/* With a minimum ------------------------------------------------------------------------------ */

/* What a part is measured with; sums go over all of its values. */
typedef struct {
    const float *x;
    float weights[QUANT_PART];
    float sum_w, sum_x; /* of weights, and of weighted values */
    float low, high;    /* of x; low is at most 0 */
} part;

static part measure(const float *x) {
    part p = {.x = x, .low = x[0], .high = x[0]};
    float squares = 0;
    for (int i = 0; i < QUANT_PART; i++)
        squares += x[i] * x[i];
    float mean = sqrtf(squares / (float)QUANT_PART);
    for (int i = 0; i < QUANT_PART; i++) {
        p.weights[i] = mean + fabsf(x[i]);
        p.sum_w += p.weights[i];
        p.sum_x += p.weights[i] * x[i];
        p.low = x[i] < p.low ? x[i] : p.low;
        p.high = x[i] > p.high ? x[i] : p.high;
    }
    p.low = p.low > 0 ? 0 : p.low;
    return p;
}

static float find_error(const part *p, const long *n, float scale, float low) {
    float error = 0;
    for (int i = 0; i < QUANT_PART; i++) {
        float difference = scale * (float)n[i] + low - p->x[i];
        error += p->weights[i] * (difference * difference);
    }
    return error;
}

/* The scale and the lowest value that fit these numbers best; false where they do not tell. */
static bool fit(const part *p, const long *n, float *scale, float *low) {
    float sum = 0, squares = 0, products = 0;
    for (int i = 0; i < QUANT_PART; i++) {
        float w = p->weights[i], l = (float)n[i];
        sum += w * l;
        squares += w * l * l;
        products += w * l * p->x[i];
    }
    float d = p->sum_w * squares - sum * sum;
    if (!(d > 0))
        return false;
    *scale = (p->sum_w * products - p->sum_x * sum) / d;
    *low = (squares * p->sum_x - sum * products) / d;
    if (*low > 0) {
        *low = 0;
        *scale = products / squares;
    }
    return true;
}

static void quantise(const part *p, float low, float inverse, long top, long *n) {
    for (int i = 0; i < QUANT_PART; i++)
        n[i] = quant_round(inverse * (p->x[i] - low), 0, top);
}

float quant_find_scale_and_min(const float *x, const quant_search *how, long *n, float *minimum) {
    part p = measure(x);
    float low = p.low, top = (float)how->top;
    if (p.high == p.low) {
        memset(n, 0, QUANT_PART * sizeof *n);
        *minimum = -low;
        return 0;
    }
    float scale = 1 / (top / (p.high - low));
    quantise(&p, low, top / (p.high - low), how->top, n);
    float best = find_error(&p, n, scale, low);
    for (int step = 0; step <= how->steps; step++) {
        long tried[QUANT_PART];
        float new_scale, new_low;
        /* From the best minimum so far: the range moves with it. */
        float inverse = (how->first + 0.1f * (float)step + top) / (p.high - low);
        quantise(&p, low, inverse, how->top, tried);
        if (!fit(&p, tried, &new_scale, &new_low))
            continue;
        float error = find_error(&p, tried, new_scale, new_low);
        if (!(error < best))
            continue;
        memcpy(n, tried, sizeof tried);
        best = error;
        scale = new_scale;
        low = new_low;
    }
    *minimum = -low;
    return scale;
}

/* Without ------------------------------------------------------------------------------------- */

/* Numbers from -32 to 31 for an inverse scale, and the two sums that tell how well they fit. */
static void try_inverse(const float *x, float inverse, long *l, float *products, float *squares) {
    *products = *squares = 0;
    for (int i = 0; i < QUANT_SMALL_PART; i++) {
        float w = x[i] * x[i];
        l[i] = quant_round(inverse * x[i], -32, 31);
        *products += w * x[i] * (float)l[i];
        *squares += w * (float)l[i] * (float)l[i];
    }
}

float quant_find_scale(const float *x, long *n) {
    float extreme = 0, largest = 0, products, squares;
    for (int i = 0; i < QUANT_SMALL_PART; i++)
        if (fabsf(x[i]) > largest) {
            largest = fabsf(x[i]);
            extreme = x[i];
        }
    memset(n, 0, QUANT_SMALL_PART * sizeof *n);
    if (largest < nothing)
        return 0;
    try_inverse(x, -32 / extreme, n, &products, &squares);
    float scale = squares != 0 ? products / squares : 0, best = scale * products;
    for (int step = -9; step <= 9; step++) {
        long tried[QUANT_SMALL_PART];
        if (step == 0)
            continue;
        try_inverse(x, -(32 + 0.1f * (float)step) / extreme, tried, &products, &squares);
        if (!(squares > 0 && products * products > best * squares))
            continue;
        memcpy(n, tried, sizeof tried);
        scale = products / squares;
        best = scale * products;
    }
    for (int i = 0; i < QUANT_SMALL_PART; i++)
        n[i] += 32;
    return scale;
}
