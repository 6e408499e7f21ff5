/* matvec_ladder: every kernel that takes one token and a Q4_0 matrix, on the shapes of SmolLM-135M
 * and of a 7B model. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/array.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

EXPERIMENT(
    matvec_ladder, .order = 50, .question = "Which variant of the Q4_0 matvec wins on which shape?",
    .claim = "none by shape was published; each variant was said to beat the one before",
    .how = "median GPU time of a launch in a chain; cold rotates over copies larger than the "
           "caches; all variants of a shape that take it, for at most 8 tokens at a time, "
           "interleaved; "
           "checked against the oracle");

typedef struct {
    uint32_t out, in;
} dims;

/* The first are those of a quick run. */
static const dims shapes[] = {{576, 576},    {1536, 576},   {2048, 2048}, {192, 576},
                              {576, 1536},   {49152, 576},  {4096, 4096}, {1024, 4096},
                              {14336, 4096}, {4096, 14336}, {32000, 4096}};
enum { SHAPES = COUNT_OF(shapes), QUICK_SHAPES = 3, MOST_TOKENS = 8 };

static bool is_rung(const lab *l, const kernel *k, const shape *s) {
    return k->format == &format_q4_0 && !k->accumulates && k->tokens <= MOST_TOKENS &&
           op_takes(&matvec_op, k, s, NULL) && device_offers(lab_get_facts(l), k->needs, NULL) &&
           (lab_get_level(l) != LEVEL_SMOKE || strcmp(k->variant, "plain") == 0);
}

static bool run_shape(lab *l, sheet *s, dims d, timing_cache cache, err *e) {
    measurement *cases = array_new(matvec_op.kernel_count, sizeof *cases);
    const shape full = {{d.out, d.in, 1}};
    size_t count = 0;
    bool ok = true;
    char text[32];
    snprintf(text, sizeof text, "%ux%u", d.out, d.in);
    for (size_t i = 0; ok && i < matvec_op.kernel_count; i++) {
        const kernel *k = &matvec_op.kernels[i];
        shape own = {{d.out, d.in, k->tokens ? 1 : 0}}; /* as its cases are named */
        if (is_rung(l, k, &full))
            ok = lab_open_case(l, &cases[count++], &matvec_op, k, own, TIMING_CHAINED, cache, e);
    }
    ok = ok && lab_time(l, cases, count, e);
    for (size_t i = 0; ok && i < count; i++) {
        sheet_add_variant(s, cases[i].built.kernel->name);
        sheet_put_text(s, "matrix", text);
        sheet_put(s, "out", d.out);
        sheet_put(s, "in", d.in);
        lab_put(l, s, &cases[i]);
    }
    lab_close_cases(cases, count);
    free(cases);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    static const timing_cache caches[] = {TIMING_COLD, TIMING_WARM};
    size_t count = lab_choose(l, SHAPES, QUICK_SHAPES);
    bool ok = true;
    /* Quick: small ones only warm, because cold takes many copies of each; on a CPU, whose caches say
     * nothing about a GPU's, all of them. */
    bool is_emulated = lab_get_facts(l)->emulated;
    for (size_t i = 0; ok && i < count; i++)
        for (size_t c = 0; ok && c < 2; c++)
            if (lab_get_level(l) == LEVEL_FULL ||
                (caches[c] == TIMING_WARM) == (is_emulated || shapes[i].in == 576))
                ok = run_shape(l, s, shapes[i], caches[c], e);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

typedef struct {
    const char *dims_text, *cache;
    size_t best, worst; /* rows */
} contest;

/* One for each matrix and state of the cache, at most as many as there are rows. */
static size_t list_contests(const sheet *s, contest *out) {
    size_t count = 0;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        const char *text = sheet_get_text(s, r, "matrix"), *cache = sheet_get_text(s, r, "cache");
        size_t i = 0;
        while (i < count &&
               (strcmp(out[i].dims_text, text) != 0 || strcmp(out[i].cache, cache) != 0))
            i++;
        if (i == count)
            out[count++] = (contest){text, cache, r, r};
        double ns = sheet_get(s, r, "gpu_ns");
        if (ns < sheet_get(s, out[i].best, "gpu_ns"))
            out[i].best = r;
        if (ns > sheet_get(s, out[i].worst, "gpu_ns"))
            out[i].worst = r;
    }
    return count;
}

/* "matvec_q4_0_rowblock" to "rowblock"; a name without a suffix is kept. */
static const char *shorten(const char *name) {
    static const char *const heads[] = {"multi_token_matvec_q4_0_", "matvec_q4_0_"};
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0)
            return name + strlen(heads[i]);
    return name;
}

/* "576x576 warm: strip (3.2 GB/s); ..."; the caller frees it. */
static char *name_winners(const sheet *s, const contest *all, size_t count) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s %s: %s (%.3g GB/s)", i ? "; " : "", all[i].dims_text, all[i].cache,
                shorten(sheet_get_text(s, all[i].best, "variant")),
                sheet_get(s, all[i].best, "gb_s"));
    fclose(out);
    return text;
}

/* How many different variants win. */
static size_t count_winners(const sheet *s, const contest *all, size_t count) {
    size_t names = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = 0;
        while (strcmp(sheet_get_text(s, all[n].best, "variant"),
                      sheet_get_text(s, all[i].best, "variant")) != 0)
            n++;
        names += n == i;
    }
    return names;
}

static void conclude(sheet *s) {
    contest *all = array_new(sheet_count_rows(s), sizeof *all);
    size_t count = list_contests(s, all), names = count_winners(s, all, count);
    char metric[64], *winners = name_winners(s, all, count);
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        double gain = sheet_get(s, all[i].worst, "gpu_ns") / sheet_get(s, all[i].best, "gpu_ns");
        snprintf(metric, sizeof metric, "best_gb_s_%s_%s", all[i].dims_text, all[i].cache);
        sheet_add_metric(s, metric, sheet_get(s, all[i].best, "gb_s"), "GB/s");
        snprintf(metric, sizeof metric, "gain_%s_%s", all[i].dims_text, all[i].cache);
        sheet_add_metric(s, metric, gain, "x");
        least = fmin(least, gain);
        most = fmax(most, gain);
    }
    sheet_add_metric(s, "winners", (double)names, "count");
    sheet_conclude(s, "Fastest: %s.", winners);
    sheet_conclude(s, "%s; the best variant is %.3g to %.3g times as fast as the worst.",
                   names == 1 ? "One variant wins everywhere" : "No single variant wins everywhere",
                   least, most);
    free(winners);
    free(all);
}
