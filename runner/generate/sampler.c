#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

typedef struct {
    float logit;
    uint32_t id;
} candidate;

struct sampler {
    sampler_settings settings;
    uint32_t vocab;
    rng random;
    candidate *candidates; /* (vocab) */
    double *weights;       /* (vocab) */
    uint32_t *recent;      /* the last repeat_last tokens, in a ring */
    size_t seen;
};

sampler *sampler_new(const sampler_settings *settings, uint32_t vocab) {
    sampler *s = array_new(1, sizeof *s);
    s->settings = *settings;
    s->vocab = vocab;
    s->random = rng_new(settings->seed, "sampler");
    s->candidates = array_new(vocab, sizeof *s->candidates);
    s->weights = array_new(vocab, sizeof *s->weights);
    s->recent = array_new(settings->repeat_last + 1, sizeof *s->recent);
    return s;
}

void sampler_free(sampler *s) {
    if (!s)
        return;
    free(s->candidates);
    free(s->weights);
    free(s->recent);
    free(s);
}

static bool has_penalty(const sampler *s) {
    return s->settings.repeat_penalty != 1 && s->settings.repeat_last > 0;
}

bool sampler_is_plain_greedy(const sampler *s) {
    return s->settings.temperature == 0 && !has_penalty(s);
}

void sampler_accept(sampler *s, uint32_t token) {
    if (s->settings.repeat_last > 0)
        s->recent[s->seen++ % s->settings.repeat_last] = token;
}

uint32_t sampler_find_largest(const float *logits, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

/* Each token that was seen once, however often. */
static void penalise(sampler *s) {
    size_t n = s->seen < s->settings.repeat_last ? s->seen : s->settings.repeat_last;
    float penalty = (float)s->settings.repeat_penalty;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = s->recent[i];
        bool is_first = id < s->vocab;
        for (size_t j = 0; j < i && is_first; j++)
            is_first = s->recent[j] != id;
        if (is_first)
            s->candidates[id].logit *= s->candidates[id].logit > 0 ? 1 / penalty : penalty;
    }
}

/* Descending; of equals the lower id first. */
static int compare_candidates(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit < b->logit ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The first of the order of compare_candidates. */
static candidate find_best(const sampler *s) {
    candidate best = s->candidates[0];
    for (uint32_t i = 1; i < s->vocab; i++)
        if (s->candidates[i].logit > best.logit)
            best = s->candidates[i];
    return best;
}

/* What is below cannot be drawn: min-p drops it; or its weight, relative to the largest, is less than
 * half of the last bit of a sum that starts with 1, and adding the weights in descending order gives
 * the same sum without it. */
static double find_floor(const sampler *s, candidate best) {
    enum { NO_BITS = 37 }; /* e^-37 < 2^-53 */
    const sampler_settings *o = &s->settings;
    if (o->top_p >= 1 && o->min_p > 0)
        return (double)best.logit + log(o->min_p);
    return (double)best.logit - (double)NO_BITS * (o->top_p < 1 ? 1 : o->temperature);
}

static size_t drop_below(sampler *s, double floor) {
    size_t kept = 0;
    for (uint32_t i = 0; i < s->vocab; i++)
        if ((double)s->candidates[i].logit >= floor)
            s->candidates[kept++] = s->candidates[i];
    return kept;
}

/* A heap of which each parent comes after its children in the order of compare_candidates. */
static void sift_down(candidate *heap, size_t count, size_t at) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare_candidates(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (compare_candidates(&heap[at], &heap[child]) >= 0)
            return;
        candidate moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* The first `most` of `count` candidates, in order. */
static size_t keep_top_k(sampler *s, size_t count, size_t most) {
    candidate *heap = s->candidates;
    size_t kept = most > 0 && most < count ? most : count;
    if (kept < count)
        for (size_t i = kept / 2; i-- > 0;)
            sift_down(heap, kept, i);
    for (size_t i = kept; i < count; i++)
        if (heap[i].logit >= heap[0].logit && compare_candidates(&heap[i], &heap[0]) < 0) {
            heap[0] = heap[i];
            sift_down(heap, kept, 0);
        }
    qsort(heap, kept, sizeof *heap, compare_candidates);
    return kept;
}

/* Weights relative to the largest, which is the first; returns their sum. */
static double weigh(sampler *s, size_t count, double temperature) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        s->weights[i] =
            exp(((double)s->candidates[i].logit - (double)s->candidates[0].logit) / temperature);
        sum += s->weights[i];
    }
    return sum;
}

static size_t keep_top_p(sampler *s, size_t count) {
    if (s->settings.top_p >= 1)
        return count;
    double sum = weigh(s, count, 1), running = 0;
    for (size_t i = 0; i < count; i++) {
        running += s->weights[i];
        if (running >= s->settings.top_p * sum)
            return i + 1; /* the one that crosses the line stays */
    }
    return count;
}

static size_t keep_min_p(const sampler *s, size_t count) {
    if (s->settings.min_p <= 0)
        return count;
    double floor = (double)s->candidates[0].logit + log(s->settings.min_p);
    size_t kept = 1;
    while (kept < count && (double)s->candidates[kept].logit >= floor)
        kept++;
    return kept;
}

static uint32_t draw(sampler *s, size_t count) {
    double sum = weigh(s, count, s->settings.temperature), running = 0;
    double at = rng_uniform(&s->random) * sum;
    for (size_t i = 0; i + 1 < count; i++) {
        running += s->weights[i];
        if (running > at)
            return s->candidates[i].id;
    }
    return s->candidates[count - 1].id;
}

uint32_t sampler_choose(sampler *s, const float *logits) {
    if (sampler_is_plain_greedy(s))
        return sampler_find_largest(logits, s->vocab);
    for (uint32_t i = 0; i < s->vocab; i++)
        s->candidates[i] = (candidate){isnan(logits[i]) ? -INFINITY : logits[i], i};
    if (has_penalty(s))
        penalise(s);
    candidate best = find_best(s);
    if (s->settings.temperature == 0 || !isfinite(best.logit))
        return best.id;
    size_t count = drop_below(s, find_floor(s, best));
    count = keep_top_k(s, count, s->settings.top_k);
    count = keep_top_p(s, count);
    count = keep_min_p(s, count);
    return draw(s, count);
}
