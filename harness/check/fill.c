/* fill: see fill.h. Owns the random numbers of every case.
 *
 * Normal numbers are sums of twelve uniform ones (mean 6, variance 1), not made with log and cos,
 * whose last bits differ between machines: a seed must replay everywhere. */
#include "fill.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"

static uint64_t mix(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

rng rng_new(uint64_t seed, const char *name) {
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    uint64_t state = mix(&seed) ^ hash;
    rng r;
    for (int i = 0; i < 4; i++)
        r.state[i] = mix(&state);
    return r;
}

uint64_t rng_draw_seed(void) {
    uint64_t seed = os_now_ns() ^ (uint64_t)getpid() << 40;
    uint32_t drawn = (uint32_t)(mix(&seed) >> 32), more = 0;
    FILE *f = fopen("/dev/urandom", "rb");
    if (f && fread(&more, sizeof more, 1, f) == 1)
        drawn ^= more;
    if (f)
        fclose(f);
    return drawn;
}

static uint64_t rotate_left(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

uint64_t rng_next(rng *r) { /* xoshiro256** */
    uint64_t *s = r->state, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double rng_uniform(rng *r) {
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(rng *r) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rng_uniform(r);
    return sum;
}

uint32_t rng_below(rng *r, uint32_t n) {
    assert(n > 0);
    return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static float draw_uniform(rng *r) { /* 24 bits: every value is a float, and 1 is never reached */
    return (float)(rng_next(r) >> 40) * 0x1p-23f - 1;
}

static float draw_zero(rng *r) {
    (void)r;
    return 0;
}

static float draw_normal(rng *r) {
    double value = rng_normal(r);
    return (float)(rng_below(r, 100) == 0 ? 30 * value : value);
}

static float draw_denormal(rng *r) { /* sign and mantissa at random, exponent 0 */
    uint32_t bits = (uint32_t)(rng_next(r) >> 32) & 0x807FFFFF;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float draw_negative(rng *r) { /* 0.5e12 to 2e12 */
    return (float)(-1e12 * (0.5 + 1.5 * rng_uniform(r)));
}

static float draw_large(rng *r) {
    float drawn = draw_negative(r);
    return rng_below(r, 2) ? -drawn : drawn;
}

/* Magnitudes between those of the other distributions, values that repeat, in other inputs too, and zeros
 * of both signs. */
static float draw_mixed(rng *r) {
    static const float common[] = {0, -0.0f, 1, -1};
    if (rng_below(r, 4) == 0)
        return common[rng_below(r, 4)];
    return (float)(rng_normal(r) * ldexp(1, (int)rng_below(r, 71) - 30));
}

static float draw_tie(rng *r) {
    const float drawn = ((float)rng_below(r, 9) - 4) / 4;
    return drawn == 0 && rng_below(r, 2) ? -0.0f : drawn;
}

static float draw_nan(rng *r) {
    const uint32_t bits = rng_below(r, 2) ? 0x7FC00000 : 0xFFC00000;
    float value;
    memcpy(&value, &bits, sizeof value);
    return rng_below(r, 8) ? draw_mixed(r) : value;
}

/* What looks like zeros at its start is not, and the errors of a few large terms do not average
 * out. */
static void fill_uneven(rng *r, float *out, size_t count) {
    enum { MOST_ZEROS = 32 };
    size_t room = count < 2 * MOST_ZEROS ? count / 2 : MOST_ZEROS;
    size_t zeros = room > 0 ? 1 + rng_below(r, (uint32_t)room) : 0;
    for (size_t i = 0; i < count; i++)
        out[i] = i < zeros ? 0 : (float)(rng_normal(r) / (double)(1u << rng_below(r, 13)));
}

/* Values that differ by up to an eighth. That is less than the spacing of halves at a sum of a few
 * hundred of them, so that each step of such a sum is rounded the same way, and it stops growing after
 * a few thousand. It is more than the spacing of floats at a sum of 2^19 of them: if the values were
 * equal, steps of floats would be rounded the same way, too, and the error of an honest sum would grow
 * as its length, not as the root of it (compare.c). The bits below those of a bfloat and of a half are 0:
 * rounded to one, each value becomes smaller, and what it loses adds up, too. */
static void fill_level(rng *r, float *out, size_t count) {
    const double level = 0.5 + 0.5 * rng_uniform(r);
    for (size_t i = 0; i < count; i++) {
        const float value = (float)(level * (1 + 0.125 * rng_uniform(r)) + (i == 0 ? 1.1 : 0));
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits &= ~0x9000u;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static void fill_small(rng *r, float *out, size_t count) {
    const double scale = rng_below(r, 2) ? 1e-3 : 1e-2;
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(scale * rng_normal(r));
}

static void fill_rows(rng *r, float *out, size_t count) {
    static const double magnitudes[] = {1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
    double scale = 1;
    for (size_t i = 0, left = 0; i < count; i++, left--) {
        if (left == 0) {
            left = (size_t)64 << rng_below(r, 5);
            scale = magnitudes[rng_below(r, 7)];
        }
        out[i] = (float)(scale * rng_normal(r));
    }
}

static void fill_equal(rng *r, float *out, size_t count) {
    const float value = (rng_below(r, 2) ? -0.25f : 0.25f) * (float)(1u << rng_below(r, 4));
    for (size_t i = 0; i < count; i++)
        out[i] = value;
}

static void fill_outlier(rng *r, float *out, size_t count) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)rng_normal(r);
    if (count > 0)
        out[rng_below(r, (uint32_t)count)] = (float)(1000 * (1 + rng_uniform(r)));
}

/* Each value by itself, or all of them. */
static const struct {
    const char *name;
    float (*draw)(rng *r);
    void (*fill)(rng *r, float *out, size_t count);
} inputs[INPUT_COUNT] = {
    [INPUT_UNIFORM] = {"uniform", draw_uniform, NULL},
    [INPUT_NORMAL] = {"normal", draw_normal, NULL},
    [INPUT_ZEROS] = {"zeros", draw_zero, NULL},
    [INPUT_DENORMALS] = {"denormals", draw_denormal, NULL},
    [INPUT_LARGE] = {"large", draw_large, NULL},
    [INPUT_NEGATIVE] = {"negative", draw_negative, NULL},
    [INPUT_UNEVEN] = {"uneven", NULL, fill_uneven},
    [INPUT_LEVEL] = {"level", NULL, fill_level},
    [INPUT_MIXED] = {"mixed", draw_mixed, NULL},
    [INPUT_SMALL] = {"small", NULL, fill_small},
    [INPUT_ROWS] = {"rows", NULL, fill_rows},
    [INPUT_TIES] = {"ties", draw_tie, NULL},
    [INPUT_EQUAL] = {"equal", NULL, fill_equal},
    [INPUT_OUTLIER] = {"outlier", NULL, fill_outlier},
    [INPUT_NAN] = {"nan", draw_nan, NULL},
};

const char *distribution_get_name(distribution d) {
    assert(d < INPUT_COUNT);
    return inputs[d].name;
}

bool distribution_find(const char *name, distribution *d) {
    for (distribution i = 0; i < INPUT_COUNT; i++)
        if (strcmp(inputs[i].name, name) == 0) {
            *d = i;
            return true;
        }
    return false;
}

void fill_f32(rng *r, distribution d, float *out, size_t count) {
    assert(d < INPUT_COUNT);
    if (inputs[d].fill)
        inputs[d].fill(r, out, count);
    for (size_t i = 0; i < count && inputs[d].draw; i++)
        out[i] = inputs[d].draw(r);
}
