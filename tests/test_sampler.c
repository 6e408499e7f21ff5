/* The sampler: which token each setting can choose, and how often. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>

#include "runner/generate/sampler.h"

enum { VOCAB = 6 };

/* e^2 : e^1 : e^0 : ... */
static const float logits[VOCAB] = {0, 2, 1, -1, -2, -30};

/* How often each token is chosen of 4000 draws. */
static void count_choices(const sampler_settings *settings, const float *values, int *counts) {
    sampler *s = sampler_new(settings, VOCAB);
    for (int i = 0; i < VOCAB; i++)
        counts[i] = 0;
    for (int i = 0; i < 4000; i++)
        counts[sampler_choose(s, values)]++;
    sampler_free(s);
}

/* Everything off but the temperature. */
static sampler_settings get_open(double temperature) {
    sampler_settings s = SAMPLER_DEFAULTS;
    s.temperature = temperature;
    s.top_k = 0;
    s.top_p = 1;
    s.min_p = 0;
    return s;
}

TEST temperature_zero_takes_the_largest_and_of_equals_the_lowest(void) {
    const float ties[VOCAB] = {1, 3, 3, 2, 3, 0};
    sampler_settings greedy = SAMPLER_DEFAULTS;
    sampler *s = sampler_new(&greedy, VOCAB);
    ASSERT(sampler_is_plain_greedy(s));
    ASSERT_EQ(1, sampler_choose(s, logits));
    ASSERT_EQ(1, sampler_choose(s, ties));
    sampler_free(s);
    PASS();
}

TEST nan_is_never_chosen(void) {
    const float holes[VOCAB] = {NAN, -5, NAN, -4, -6, NAN},
                all[VOCAB] = {NAN, NAN, NAN, NAN, NAN, NAN};
    sampler_settings drawn = get_open(1), greedy = SAMPLER_DEFAULTS;
    int counts[VOCAB];
    count_choices(&drawn, holes, counts);
    ASSERT_EQ(0, counts[0] + counts[2] + counts[5]);
    count_choices(&greedy, holes, counts);
    ASSERT_EQ(4000, counts[3]);
    count_choices(&drawn, all, counts); /* something is chosen, and nothing crashes */
    ASSERT_EQ(4000, counts[0]);
    PASS();
}

TEST draws_follow_the_probabilities(void) {
    sampler_settings open = get_open(1);
    int counts[VOCAB];
    count_choices(&open, logits, counts);
    double sum = exp(0) + exp(2) + exp(1) + exp(-1) + exp(-2) + exp(-30);
    for (int i = 0; i < VOCAB; i++) {
        double p = exp((double)logits[i]) / sum, spread = sqrt(4000 * p * (1 - p));
        ASSERT(fabs(counts[i] - 4000 * p) <= 5 * spread + 1);
    }
    PASS();
}

TEST a_low_temperature_sharpens(void) {
    sampler_settings cold = get_open(0.25), hot = get_open(4);
    int cold_counts[VOCAB], hot_counts[VOCAB];
    count_choices(&cold, logits, cold_counts);
    count_choices(&hot, logits, hot_counts);
    ASSERT(cold_counts[1] > 3800); /* e^8 : e^4 */
    ASSERT(hot_counts[1] < 2000 && hot_counts[3] > 100);
    PASS();
}

TEST top_k_top_p_and_min_p_cut_the_tail(void) {
    sampler_settings s = get_open(1);
    int counts[VOCAB];
    s.top_k = 2;
    count_choices(&s, logits, counts);
    ASSERT_EQ(4000, counts[1] + counts[2]);
    ASSERT(counts[2] > 0);
    s = get_open(1);
    s.top_p = 0.7; /* the first has 0.64: the one that crosses the line stays */
    count_choices(&s, logits, counts);
    ASSERT_EQ(4000, counts[1] + counts[2]);
    ASSERT(counts[2] > 0);
    s.top_p = 0.6;
    count_choices(&s, logits, counts);
    ASSERT_EQ(4000, counts[1]);
    s = get_open(1);
    s.min_p = 0.13; /* e^-2 = 0.135 stays, e^-3 goes */
    count_choices(&s, logits, counts);
    ASSERT_EQ(4000, counts[0] + counts[1] + counts[2]);
    ASSERT(counts[0] > 0);
    PASS();
}

TEST what_was_seen_is_penalised_once_and_forgotten_again(void) {
    sampler_settings settings = SAMPLER_DEFAULTS;
    settings.repeat_penalty = 4;
    settings.repeat_last = 2;
    sampler *s = sampler_new(&settings, VOCAB);
    ASSERT_FALSE(sampler_is_plain_greedy(s));
    ASSERT_EQ(1, sampler_choose(s, logits));
    sampler_accept(s, 1);
    sampler_accept(s, 1); /* 2 / 4, not 2 / 16 */
    ASSERT_EQ(2, sampler_choose(s, logits));
    const float close[VOCAB] = {0.4f, 2, -1, -1, -1, -1};
    ASSERT_EQ(1, sampler_choose(s, close));
    sampler_accept(s, 0);
    sampler_accept(s, 0); /* the ring holds two: 1 is forgotten */
    ASSERT_EQ(1, sampler_choose(s, logits));
    const float negative[VOCAB] = {-1, -2, -3, -9, -9, -9};
    ASSERT_EQ(1, sampler_choose(s, negative)); /* -1 * 4 is below -2 */
    sampler_free(s);
    PASS();
}

TEST the_same_seed_gives_the_same_choices(void) {
    sampler_settings settings = get_open(1), other = settings;
    other.seed = 2;
    sampler *a = sampler_new(&settings, VOCAB), *b = sampler_new(&settings, VOCAB),
            *c = sampler_new(&other, VOCAB);
    int different = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t choice = sampler_choose(a, logits);
        ASSERT_EQ(choice, sampler_choose(b, logits));
        different += choice != sampler_choose(c, logits);
    }
    ASSERT(different > 20);
    sampler_free(a);
    sampler_free(b);
    sampler_free(c);
    PASS();
}

/* The same choice by sorting all candidates, with the sampler's random numbers. */
enum { MANY = 1500 };
static const float *sorted_by;

static int compare_ids(const void *left, const void *right) {
    const uint32_t *a = left, *b = right;
    if (sorted_by[*a] != sorted_by[*b])
        return sorted_by[*a] < sorted_by[*b] ? 1 : -1;
    return *a < *b ? -1 : *a > *b;
}

static double add_weights(const uint32_t *ids, size_t count, double temperature, double *sums) {
    double sum = 0, largest = (double)sorted_by[ids[0]];
    for (size_t i = 0; i < count; i++)
        sums[i] = sum += exp(((double)sorted_by[ids[i]] - largest) / temperature);
    return sum;
}

static uint32_t choose_by_sorting(const sampler_settings *o, const float *values, rng *random) {
    uint32_t ids[MANY];
    double sums[MANY];
    size_t count = o->top_k > 0 && o->top_k < MANY ? o->top_k : MANY, i = 0;
    for (uint32_t id = 0; id < MANY; id++)
        ids[id] = id;
    sorted_by = values;
    qsort(ids, MANY, sizeof *ids, compare_ids);
    if (o->top_p < 1) {
        double sum = add_weights(ids, count, 1, sums);
        while (sums[i] < o->top_p * sum)
            i++;
        count = i + 1;
    }
    double floor = (double)values[ids[0]] + (o->min_p > 0 ? log(o->min_p) : -INFINITY);
    while ((double)values[ids[count - 1]] < floor)
        count--;
    double at = add_weights(ids, count, o->temperature, sums) * rng_uniform(random);
    for (i = 0; i + 1 < count && !(sums[i] > at);)
        i++;
    return ids[i];
}

TEST selecting_chooses_as_sorting_does(void) {
    static const uint32_t top_k[] = {0, 1, 2, 40, MANY - 1, MANY};
    static const double top_p[] = {1, 0.95, 0.3}, min_p[] = {0, 0.05, 1},
                        temperature[] = {0.8, 3, 0.05};
    float values[MANY];
    for (int i = 0; i < 6 * 3 * 3 * 3; i++) {
        sampler_settings o = {.temperature = temperature[i % 3],
                              .top_p = top_p[i / 3 % 3],
                              .min_p = min_p[i / 9 % 3],
                              .top_k = top_k[i / 27],
                              .repeat_penalty = 1,
                              .seed = (uint64_t)i};
        sampler *s = sampler_new(&o, MANY);
        rng fill = rng_new((uint64_t)i, "logits"), random = rng_new(o.seed, "sampler");
        for (int round = 0; round < 8; round++) {
            double scale = round % 2 ? 60 : 2; /* few in reach of the largest, or all of them */
            for (int j = 0; j < MANY; j++) {
                double value = scale * rng_uniform(&fill);
                values[j] = (float)(round % 4 < 2 ? value : floor(value)); /* many are equal */
            }
            values[round] = -INFINITY;
            ASSERT_EQ(choose_by_sorting(&o, values, &random), sampler_choose(s, values));
        }
        sampler_free(s);
    }
    PASS();
}

SUITE(sampler_suite) {
    RUN_TEST(temperature_zero_takes_the_largest_and_of_equals_the_lowest);
    RUN_TEST(nan_is_never_chosen);
    RUN_TEST(draws_follow_the_probabilities);
    RUN_TEST(a_low_temperature_sharpens);
    RUN_TEST(top_k_top_p_and_min_p_cut_the_tail);
    RUN_TEST(what_was_seen_is_penalised_once_and_forgotten_again);
    RUN_TEST(the_same_seed_gives_the_same_choices);
    RUN_TEST(selecting_chooses_as_sorting_does);
}
