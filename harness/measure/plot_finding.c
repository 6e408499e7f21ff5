#include "plot_finding.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"

/* Sentences with metrics -------------------------------------------------------------------------
 *
 * {name} is a metric with three digits, {name|more} is "12 % more" or "12 % less", and
 * {max:column} is the largest number of a column. */

static const struct {
    const char *name, *sentence;
} sentences[] = {
    {"argmax_readback",
     "Choosing the token on the GPU is {speedup_argmax} times as fast as reading the logits: "
     "{tok_s_argmax} against {tok_s_readback} tokens per second"},
    {"async_decode",
     "{best_in_flight} tokens in flight are {speedup_best} times as fast as one, with which the "
     "GPU is idle for {idle_pct_1} % of the time"},
    {"bandwidth", "Reads reach {read_best_gb_s} GB/s at {read_best_at_mb} MB, and "
                  "{read_memory_gb_s} GB/s from the "
                  "largest buffer; one simdgroup alone reads {read_f32_one_simdgroup_gb_s} GB/s"},
    {"command_buffers",
     "One command buffer per token is {one_over_many} times as fast as one per launch; each "
     "additional one costs {sync_us} µs"},
    {"decode",
     "{tok_s} tokens per second from an empty context, {tok_s_deepest} after {deepest} tokens"},
    {"dispatch_overhead",
     "A launch costs {launch_us} µs in a chain and {launch_independent_us} µs among "
     "independent ones; submitting and waiting costs {submit_us} µs"},
    {"fusion", "RMSNorm fused into the products of a SmolLM layer takes "
               "{fused_row_slowdown_pct|more} time per "
               "row, {fused_group_slowdown_pct|more} per group of 8"},
    {"op_breakdown",
     "A token takes {token_us} µs: kernels {kernels_pct} %, launches {launches_pct} %, "
     "idle {idle_pct} %"},
    {"prefill", "A prompt is read at up to {tok_s_best} tokens per second in one pass, and at "
                "{tok_s_token_by_token} token by token"},
    {"roofline", "Kernels reach {farthest_pct_roof} to {nearest_pct_roof} % of the measured roof "
                 "of their size; "
                 "the most arithmetic is {best_gflop_s} GFLOP/s"},
    {"rwkv7_command_buffers",
     "RWKV-7 writes {rwkv_tok_s_one} tokens per second with fused launches in one "
     "command buffer, {rwkv_tok_s_many} with one command buffer per op"},
    {"sensitivity", "A slowdown of {smallest_found_pct} % is found reliably; {false_pct} % of "
                    "comparisons of a kernel "
                    "with itself find one"},
    {"split_dispatch",
     "Each additional launch costs {launch_serial_us} µs: {max:launches} launches take "
     "{most_launches_ratio} times as long as one"},
};

static double find_metric(const csv_file *f, const char *name) {
    const char *key, *value;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++) {
        char found[64];
        double number;
        if (strcmp(key, "metric") == 0 && sscanf(value, "%63s = %lf", found, &number) == 2 &&
            strcmp(found, name) == 0)
            return number;
    }
    return NAN;
}

static double get_cell(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value;
    return csv_find_column(f, title, &column, NULL) && csv_get_double(f, row, column, &value, NULL)
               ? value
               : NAN;
}

static const char *get_text(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

static double find_largest(const csv_file *f, const char *title) {
    double most = NAN;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        most = fmax(most, get_cell(f, r, title));
    return most;
}

/* Adds the text of one {...}; false if its number is not known. */
static bool fill(const csv_file *f, const char *field, char *out, size_t size) {
    char name[64], number[32];
    size_t length = strcspn(field, "|");
    snprintf(name, sizeof name, "%.*s", (int)length, field);
    double value = strncmp(name, "max:", 4) == 0 ? find_largest(f, name + 4) : find_metric(f, name);
    bool is_change = strcmp(field + length, "|more") == 0;
    format_number(is_change ? fabs(value) : value, 3, number, sizeof number);
    snprintf(out, size, "%s%s", number, !is_change ? "" : value < 0 ? " % less" : " % more");
    return isfinite(value);
}

static bool fill_sentence(const csv_file *f, const char *sentence, char *text, size_t size) {
    size_t used = 0;
    for (const char *p = sentence; *p && used + 1 < size;) {
        if (*p != '{') {
            text[used++] = *p++;
            continue;
        }
        char field[80], value[48];
        size_t length = strcspn(++p, "}");
        snprintf(field, sizeof field, "%.*s", (int)length, p);
        if (!fill(f, field, value, sizeof value))
            return false;
        used += (size_t)snprintf(text + used, size - used, "%s", value);
        p += length + 1;
    }
    text[used < size ? used : size - 1] = 0;
    return used < size;
}

/* Sentences from rows -------------------------------------------------------------------------- */

static double find_batch(const csv_file *f, const char *regime, const char *cache, double batch) {
    for (size_t r = 0; r < csv_count_rows(f); r++)
        if (strcmp(get_text(f, r, "variant"), "token_outer") == 0 &&
            strcmp(get_text(f, r, "matrix"), get_text(f, 0, "matrix")) == 0 &&
            strcmp(get_text(f, r, "regime"), regime) == 0 &&
            strcmp(get_text(f, r, "cache"), cache) == 0 && get_cell(f, r, "batch") == batch)
            return get_cell(f, r, "time_ns");
    return NAN;
}

/* Every batch submitted alone, with cold caches: a batch of 8 if there is one, else the largest. What is
 * saved per token is the submit as far as wall time alone minus GPU time in a chain is. */
static bool find_batch_scaling(const csv_file *f, char *text, size_t size) {
    double batch = isfinite(find_batch(f, "single", "cold", 8)) ? 8 : find_largest(f, "batch");
    double alone = find_batch(f, "single", "cold", 1),
           together = find_batch(f, "single", "cold", batch);
    double submit = alone - find_batch(f, "chained", "cold", 1);
    double submit_together = together - find_batch(f, "chained", "cold", batch);
    double saved = alone - together / batch,
           part = 100 * (submit - submit_together / batch) / saved;
    char speedup[32];
    if (!isfinite(part) || !(saved > 0))
        return false;
    int n = snprintf(text, size, "Cold, a batch of %.0f is %s times as fast per token", batch,
                     format_number(batch * alone / together, 2, speedup, sizeof speedup));
    if (part >= 0 && part <= 100) /* anything else is noise */
        snprintf(text + n, size - (size_t)n, "; %.0f %% of the saving is the submit", part);
    return true;
}

/* A row with a time. Rows that do the same (op, format, shape, input, regime, cache) are a group. */
typedef struct {
    const char *key[6], *kernel, *variant;
    double ns;
    size_t group; /* the first row of its group */
} timed_row;

static bool is_same_group(const timed_row *a, const timed_row *b) {
    for (size_t i = 0; i < sizeof a->key / sizeof *a->key; i++)
        if (strcmp(a->key[i], b->key[i]) != 0)
            return false;
    return true;
}

static timed_row *list_rows(const csv_file *f, size_t *count) {
    static const char *const titles[] = {"op", "format", "shape", "input", "regime", "cache"};
    timed_row *rows = array_new(csv_count_rows(f) + 1, sizeof *rows);
    size_t column;
    bool has_matrix =
        csv_find_column(f, "matrix", &column, NULL); /* a shape may have tokens, too */
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        timed_row *row = &rows[*count];
        row->ns = get_cell(f, r, "gpu_ns");
        if (!(row->ns > 0))
            continue;
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
            row->key[i] = get_text(f, r, i == 2 && has_matrix ? "matrix" : titles[i]);
        row->kernel = get_text(f, r, "kernel");
        row->variant = get_text(f, r, "variant");
        row->group = 0;
        while (!is_same_group(&rows[row->group], row))
            row->group++;
        ++*count;
    }
    return rows;
}

typedef struct {
    const timed_row *best, *worst;
    double ours, theirs; /* the fastest, ns; NaN: there is none */
} group;

static group find_group(const timed_row *rows, size_t count, size_t first) {
    group g = {.best = &rows[first], .worst = &rows[first], .ours = NAN, .theirs = NAN};
    for (const timed_row *r = rows + first; r < rows + count; r++) {
        if (r->group != first)
            continue;
        /* Kernels of others are named FILE.metal:KERNEL. */
        double *side = strstr(r->kernel, ".metal:") ? &g.theirs : &g.ours;
        *side = fmin(*side, r->ns);
        g.best = r->ns < g.best->ns ? r : g.best;
        g.worst = r->ns > g.worst->ns ? r : g.worst;
    }
    return g;
}

/* "1.2 to 3.4", or "1.2" where both are the same. */
static const char *format_range(double low, double high, char *text, size_t size) {
    char a[32], b[32];
    format_number(low, 3, a, sizeof a);
    format_number(high, 3, b, sizeof b);
    snprintf(text, size, strcmp(a, b) == 0 ? "%s" : "%s to %s", a, b);
    return text;
}

static bool find_ladder(const csv_file *f, char *text, size_t size) {
    size_t count, cases = 0, most = 0;
    timed_row *rows = list_rows(f, &count);
    const char **winners = array_new(count + 1, sizeof *winners), *first = "";
    double low = INFINITY, high = 0;
    for (size_t r = 0; r < count; r++)
        if (rows[r].group == r) {
            group g = find_group(rows, count, r);
            low = fmin(low, g.worst->ns / g.best->ns);
            high = fmax(high, g.worst->ns / g.best->ns);
            winners[cases++] = g.best->variant;
        }
    for (size_t i = 0; i < cases; i++) {
        size_t wins = 0;
        for (size_t j = 0; j < cases; j++)
            wins += strcmp(winners[i], winners[j]) == 0;
        first = wins > most ? winners[i] : first;
        most = wins > most ? wins : most;
    }
    char range[80];
    format_range(low, high, range, sizeof range);
    if (most > 1 || cases == 1)
        snprintf(text, size,
                 "%s is the fastest in %zu of %zu cases; the fastest kernel is %s times as fast as "
                 "the slowest",
                 first, most, cases, range);
    else
        snprintf(text, size,
                 "Each of %zu cases has another fastest kernel, which is %s times as fast as the "
                 "slowest",
                 cases, range);
    free(winners);
    free(rows);
    return cases > 0;
}

/* Ours and theirs where there are both, else the fastest and the slowest. */
static bool find_rows(const csv_file *f, char *text, size_t size) {
    size_t count, groups = 0, both = 0, faster = 0;
    timed_row *rows = list_rows(f, &count);
    double low = INFINITY, high = 0, spread = 1;
    char range[80];
    for (size_t r = 0; r < count; r++) {
        if (rows[r].group != r)
            continue;
        group g = find_group(rows, count, r);
        double ratio = g.theirs / g.ours;
        groups++;
        spread = fmax(spread, g.worst->ns / g.best->ns);
        if (!isfinite(ratio))
            continue;
        both++;
        faster += ratio > 1;
        low = fmin(low, ratio);
        high = fmax(high, ratio);
    }
    if (both > 0)
        snprintf(text, size,
                 "Our fastest kernel is faster than theirs in %zu of %zu cases: %s times as fast",
                 faster, both, format_range(low, high, range, sizeof range));
    else if (groups < count)
        snprintf(text, size,
                 "%zu kernels in %zu groups: the fastest of a group is up to %s times as fast as "
                 "the slowest",
                 count, groups, format_number(spread, 3, range, sizeof range));
    else
        snprintf(text, size, "Times of %zu %s", count, count == 1 ? "case" : "cases");
    free(rows);
    return count > 0;
}

static bool find_check(const csv_file *f, char *text, size_t size) {
    size_t passed = 0, failed = 0;
    double worst = 0;
    char margin[32];
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *verdict = get_text(f, r, "verdict");
        passed += strcmp(verdict, "pass") == 0;
        failed += strcmp(verdict, "fail") == 0;
        worst = fmax(worst, get_cell(f, r, "margin"));
    }
    snprintf(
        text, size,
        "%zu of %zu checked cases are within their tolerance; the largest error is %s %% of it",
        passed, passed + failed, format_number(floor(1000 * worst) / 10, 4, margin, sizeof margin));
    return passed + failed > 0;
}

static bool find_stack(const csv_file *f, char *text, size_t size) {
    static const char *const ideas[][2] = {{"gain_argmax_pct", "argmax on the GPU"},
                                           {"gain_private_pct", "private scratch"},
                                           {"gain_fused_pct", "fused launches"},
                                           {"gain_one_buffer_pct", "one command buffer per token"},
                                           {"gain_async_pct", "4 tokens in flight"}};
    size_t best = 0;
    char head[200];
    for (size_t i = 1; i < sizeof ideas / sizeof *ideas; i++)
        if (find_metric(f, ideas[i][0]) > find_metric(f, ideas[best][0]))
            best = i;
    if (!fill_sentence(
            f, "All ideas together are {speedup_all} times as fast: {tok_s_best} tokens per second",
            head, sizeof head))
        return false;
    snprintf(text, size, "%s; the largest step is %s, %+.0f %%", head, ideas[best][1],
             find_metric(f, ideas[best][0]));
    return true;
}

/* "random weights in the shape of 7b, seed 1" is 7b. */
static int get_model_name(const char *model, const char **name) {
    static const char prefix[] = "random weights in the shape of ";
    bool is_random = strncmp(model, prefix, strlen(prefix)) == 0;
    *name = model + (is_random ? strlen(prefix) : 0);
    return (int)(is_random ? strcspn(*name, ",") : strlen(model));
}

/* The rates of all models in the test of writing 128 tokens, or else in the first one. */
static bool find_models(const csv_file *f, char *text, size_t size) {
    const char *test = get_text(f, 0, "variant");
    size_t models = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        test = strcmp(get_text(f, r, "variant"), "tg128") == 0 ? "tg128" : test;
    int n = snprintf(text, size, "Tokens per second in %s: ", test);
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name;
        char rate[32];
        double per_s =
            1e9 * strtod(strlen(test) > 2 ? test + 2 : "", NULL) / get_cell(f, r, "gpu_ns");
        if (strcmp(get_text(f, r, "variant"), test) != 0 || !(per_s > 0) || (size_t)n + 96 > size)
            continue;
        int length = get_model_name(get_text(f, r, "model"), &name);
        n += snprintf(text + n, size - (size_t)n, "%s%.*s %s", models++ ? ", " : "", length, name,
                      format_number(per_s, 3, rate, sizeof rate));
    }
    return models > 0;
}

/* A fixed cost where 8 times the bytes take less than half of 8 times as long. */
static bool find_small_matrix(const csv_file *f, char *text, size_t size) {
    bool is_fixed = find_metric(f, "time_ratio_1536_192") < 4;
    return fill_sentence(f,
                         is_fixed
                             ? "8 times the bytes take {time_ratio_1536_192} times as long: a "
                               "fixed {fixed_us} µs is mistaken for low bandwidth"
                             : "8 times the bytes take {time_ratio_1536_192} times as long: no "
                               "fixed cost is mistaken for low bandwidth",
                         text, size);
}

/* No difference where the quartiles are on both sides of 0. */
static bool find_storage(const csv_file *f, char *text, size_t size) {
    const char *key, *value;
    double low = NAN, high = NAN;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++)
        if (strcmp(key, "spread") == 0)
            sscanf(value, "private_gain_pct = %lf to %lf", &low, &high);
    return fill_sentence(
        f,
        low <= 0 && high >= 0
            ? "No difference is visible between private and shared scratch: {tok_s_private} and "
              "{tok_s_shared} tokens per second"
            : "Private scratch gives {private_gain_pct|more} tokens per second than shared: "
              "{tok_s_private} against {tok_s_shared}",
        text, size);
}

/* ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*find)(const csv_file *f, char *text, size_t size);
} finders[] = {
    {"batch_scaling", find_batch_scaling}, {"check", find_check},
    {"matvec_ladder", find_ladder},        {"model_bench", find_models},
    {"optimisation_stack", find_stack},    {"small_matrix", find_small_matrix},
    {"storage_modes", find_storage},
};

void plot_find(const char *name, const csv_file *f, char *text, size_t size) {
    const char *conclusion = csv_get_meta(f, "conclusion"), *question = csv_get_meta(f, "question");
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (strcmp(sentences[i].name, name) == 0 &&
            fill_sentence(f, sentences[i].sentence, text, size))
            return;
    for (size_t i = 0; i < sizeof finders / sizeof *finders; i++)
        if (strcmp(finders[i].name, name) == 0 && finders[i].find(f, text, size))
            return;
    if (conclusion || question)
        snprintf(text, size, "%s", conclusion ? conclusion : question);
    else if (!find_rows(f, text, size))
        snprintf(text, size, "%s", name);
}
