#include "bench_summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/table.h"

enum { OTHERS = 3 }; /* kernels that the fastest is compared with in words */

const char *bench_get_roof(const result_row *r) {
    double memory = r->gb_s / r->roof_gb_s, fma = r->gflop_s / r->roof_gflop_s;
    return isnan(r->pct_roof) ? "-" : fma > memory || isnan(memory) ? "FMA" : "memory";
}

/* A kernel that adds to its output has more to do than one that does not. */
static bool accumulates(const bench_list *cases, const char *name) {
    for (size_t i = 0; i < cases->count; i++)
        if (strcmp(cases->items[i].timed.kernel->name, name) == 0)
            return cases->items[i].timed.kernel->accumulates;
    return false;
}

static bool is_alike(const result_row *a, const result_row *b, const bench_list *cases) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->format, b->format) == 0 &&
           strcmp(a->shape, b->shape) == 0 && strcmp(a->input, b->input) == 0 &&
           strcmp(a->regime, b->regime) == 0 && strcmp(a->cache, b->cache) == 0 &&
           accumulates(cases, a->kernel) == accumulates(cases, b->kernel);
}

/* The spread of the samples relative to the median; of normal ones the standard deviation. */
static double get_spread(const result_row *r) {
    return (r->gpu.q3 - r->gpu.q1) / 1.349 / r->gpu.median;
}

static int compare_times(const void *a, const void *b) {
    const result_row *x = *(const result_row *const *)a, *y = *(const result_row *const *)b;
    return (x->gpu.median > y->gpu.median) - (x->gpu.median < y->gpu.median);
}

/* rows: from the fastest to the slowest. */
static void print_group(FILE *out, const result_row *const *rows, size_t count) {
    const result_row *best = rows[0];
    char text[1200], near[80] = "", percent[24];
    int used = 0;
    if (!isnan(best->pct_roof))
        snprintf(near, sizeof near, " (%s %% of the %s roof)",
                 format_number(best->pct_roof, 3, percent, sizeof percent), bench_get_roof(best));
    used = snprintf(text, sizeof text, "%s %s, %s, %s: %s%s is", best->op, best->shape,
                    best->regime, best->cache, best->kernel, near);
    for (size_t i = 1; i < count && i <= OTHERS; i++) {
        double ratio = rows[i]->gpu.median / best->gpu.median;
        double spread = ratio * hypot(get_spread(best), get_spread(rows[i]));
        bool is_last = i == OTHERS || i + 1 == count;
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s %.2f ± %.2f times as fast as %s",
                     i == 1    ? ""
                     : is_last ? " and"
                               : ",",
                     ratio, spread, rows[i]->kernel);
    }
    if (count > OTHERS + 1)
        snprintf(text + used, sizeof text - (size_t)used, "; %zu more %s slower",
                 count - OTHERS - 1, count == OTHERS + 2 ? "is" : "are");
    table_print_text(out, table_find_limit(out), 0, text);
}

/* A number above its roof says that the count of bytes or the roof is wrong, or that other units did
 * the work. */
static void print_above(FILE *out, const result_row *r) {
    bool is_memory = strcmp(bench_get_roof(r), "memory") == 0;
    char text[600], value[24], limit[24];
    snprintf(
        text, sizeof text, "%s is above the %s roof: %s %s where the fastest %s %s. %s", r->name,
        bench_get_roof(r), format_number(is_memory ? r->gb_s : r->gflop_s, 3, value, sizeof value),
        is_memory ? "GB/s" : "GFLOP/s",
        is_memory ? "plain read, copy or triad has" : "plain multiply-adds have",
        format_number(is_memory ? r->roof_gb_s : r->roof_gflop_s, 3, limit, sizeof limit),
        is_memory ? "It is a better loop than those, or the roof was measured in a slower moment."
                  : "Matrix units can do more than multiply-adds; otherwise the count of its "
                    "operations is wrong.");
    table_print_text(out, table_find_limit(out), 0, text);
}

void bench_print_summary(FILE *out, const result_row *rows, size_t count, const bench_list *cases) {
    const result_row **alike = calloc(count + 1, sizeof *alike);
    bool *is_told = calloc(count + 1, sizeof *is_told);
    assert(alike && is_told);
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        for (size_t k = i; k < count; k++)
            if (rows[k].gpu.count > 0 && !is_told[k] && is_alike(&rows[i], &rows[k], cases)) {
                alike[found++] = &rows[k];
                is_told[k] = true;
            }
        qsort(alike, found, sizeof *alike, compare_times);
        if (found > 1)
            print_group(out, alike, found);
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].pct_roof > 100)
            print_above(out, &rows[i]);
    free(alike);
    free(is_told);
}
