/* claims: see claims.h. */
#include "claims.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const relations[] = {
    [CLAIM_ABOUT] = "about",
    [CLAIM_AT_LEAST] = "at least",
    [CLAIM_AT_MOST] = "at most",
    [CLAIM_BETWEEN] = "between",
};

/* Reading ------------------------------------------------------------------------------------- */

enum {
    ID,
    TEXT,
    RELATION,
    VALUE,
    HIGH,
    UNIT,
    TOLERANCE,
    KIND,
    CONDITIONS,
    MODEL,
    DEVICE,
    EXPERIMENT,
    METRIC,
    OBSTACLE,
    COLUMNS
};
static const char *const titles[COLUMNS] = {
    "id",   "text",       "relation", "value",  "high",       "unit",   "tolerance_pct",
    "kind", "conditions", "model",    "device", "experiment", "metric", "obstacle"};

static bool read_words(const csv_file *f, size_t row, const size_t *column, claim *c, err *e) {
    const char *relation = csv_get_text(f, row, column[RELATION]);
    const char *kind = csv_get_text(f, row, column[KIND]);
    size_t i = 0;
    while (i < sizeof relations / sizeof *relations && strcmp(relation, relations[i]) != 0)
        i++;
    if (i == sizeof relations / sizeof *relations)
        return err_set(e, EXIT_USAGE,
                       "%.100s:%zu: no relation '%.30s' (valid: about, at least, at most, between)",
                       csv_get_path(f), csv_get_line(f, row), relation);
    c->relation = (claim_relation)i;
    c->is_count = strcmp(kind, "count") == 0;
    if (!c->is_count && strcmp(kind, "time") != 0)
        return err_set(e, EXIT_USAGE, "%.100s:%zu: no kind '%.30s' (valid: time, count)",
                       csv_get_path(f), csv_get_line(f, row), kind);
    return true;
}

static bool read_claim(const csv_file *f, size_t row, const size_t *column, claim *c, err *e) {
    *c = (claim){
        .id = csv_get_text(f, row, column[ID]),
        .text = csv_get_text(f, row, column[TEXT]),
        .unit = csv_get_text(f, row, column[UNIT]),
        .conditions = csv_get_text(f, row, column[CONDITIONS]),
        .model = csv_get_text(f, row, column[MODEL]),
        .device = csv_get_text(f, row, column[DEVICE]),
        .experiment = csv_get_text(f, row, column[EXPERIMENT]),
        .metric = csv_get_text(f, row, column[METRIC]),
        .obstacle = csv_get_text(f, row, column[OBSTACLE]),
    };
    if (!read_words(f, row, column, c, e) || !csv_get_double(f, row, column[VALUE], &c->value, e) ||
        !csv_get_double(f, row, column[TOLERANCE], &c->tolerance_pct, e) ||
        (c->relation == CLAIM_BETWEEN && !csv_get_double(f, row, column[HIGH], &c->high, e)))
        return false;
    return true;
}

bool claims_read(const char *path, claim_list *out, err *e) {
    *out = (claim_list){.file = csv_read(path, e)};
    if (!out->file)
        return false;
    size_t column[COLUMNS], rows = csv_count_rows(out->file);
    out->items = calloc(rows + 1, sizeof *out->items);
    assert(out->items);
    bool ok = true;
    for (size_t i = 0; ok && i < COLUMNS; i++)
        ok = csv_find_column(out->file, titles[i], &column[i], e);
    for (; ok && out->count < rows; out->count++)
        ok = read_claim(out->file, out->count, column, &out->items[out->count], e);
    if (!ok)
        claims_free(out);
    return ok;
}

bool claims_open(const char *home, const char *file, const char *const *folders, size_t count,
                 claim_list *claims, store *results, err *e) {
    char all[PATH_MAX + 16], own[PATH_MAX + 32];
    const char *only = all;
    snprintf(all, sizeof all, "%s/results", home);
    snprintf(own, sizeof own, "%s/results/claims.csv", home);
    return claims_read(file ? file : own, claims, e) &&
           store_read(count ? folders : &only, count ? count : 1, count == 0, results, e);
}

void claims_free(claim_list *l) {
    csv_file_free(l->file);
    free(l->items);
    *l = (claim_list){.count = 0};
}

/* Judging ------------------------------------------------------------------------------------- */

static bool is_met(const claim *c, double measured) {
    double slack = c->tolerance_pct / 100;
    double low = c->value - fabs(c->value) * slack, top = c->value + fabs(c->value) * slack;
    switch (c->relation) {
    case CLAIM_ABOUT:
        return measured >= low && measured <= top;
    case CLAIM_AT_LEAST:
        return measured >= low;
    case CLAIM_AT_MOST:
        return measured <= top;
    case CLAIM_BETWEEN:
        return measured >= low && measured <= c->high + fabs(c->high) * slack;
    }
    return false;
}

static claim_answer refuse(claim_answer a, const char *reason) {
    a.verdict = CLAIM_UNKNOWN;
    snprintf(a.reason, sizeof a.reason, "%s", reason);
    return a;
}

/* The two numbers, and what else a reader must know. */
static void explain(const claim *c, const store_folder *f, claim_answer *a) {
    char published[96], measured[96], slack[40] = "", other[200] = "";
    claim_get_published(c, published, sizeof published);
    claim_get_measured(c, a, f->emulated, measured, sizeof measured);
    if (c->tolerance_pct > 0)
        snprintf(slack, sizeof slack, ", give or take %g %%", c->tolerance_pct);
    if (!c->is_count && !strstr(f->device, c->device))
        snprintf(other, sizeof other, "; published for %.60s, measured on %.80s", c->device,
                 f->device);
    snprintf(a->reason, sizeof a->reason, "%s against %s%s%s", measured, published, slack, other);
}

/* Does the text contain every word, ignoring case? */
static bool has_words(const char *text, const char *words) {
    char lower[256];
    snprintf(lower, sizeof lower, "%s", text);
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (const char *p = words; *p;) {
        char word[64];
        size_t length = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        if (!strstr(lower, word))
            return false;
        p += length + strspn(p + length, " ");
    }
    return true;
}

static bool is_of_model(const claim *c, const store_file *file) {
    const char *model = csv_get_meta(file->csv, "model");
    return has_words(model ? model : "", c->model);
}

/* What keeps a number from being an answer. */
static bool is_fit(const claim *c, const store_file *file, const store_metric *m, char *why,
                   size_t size) {
    const char *model = csv_get_meta(file->csv, "model"), *level = csv_get_meta(file->csv, "level");
    if (strcmp(m->unit, c->unit) != 0)
        snprintf(why, size, "%.60s is in '%.20s' and the claim in '%.20s'", c->metric, m->unit,
                 c->unit);
    else if (!is_of_model(c, file))
        snprintf(why, size, "measured with the model %.80s, and the claim is about '%.40s'",
                 model ? model : "(none named)", c->model);
    else if (c->is_count)
        return true;
    else if (level && strcmp(level, "smoke") == 0)
        snprintf(why, size, "a smoke run measures nothing: run `assay experiment %.60s`",
                 c->experiment);
    else
        return true;
    return false;
}

claim_answer claim_judge(const claim *c, const store_folder *f) {
    claim_answer a = {.verdict = CLAIM_UNKNOWN};
    char text[320] = "";
    if (c->obstacle[0])
        return refuse(a, c->obstacle);
    const store_file *file = store_find(f, STORE_EXPERIMENT, c->experiment);
    const store_metric *m = file ? store_find_metric(file, c->metric) : NULL;
    /* A number in another unit or from another model does not answer the claim and is not shown. */
    a.has_value = m && isfinite(m->value) && strcmp(m->unit, c->unit) == 0 && is_of_model(c, file);
    a.value = m ? m->value : NAN;
    /* Tested first: running an experiment would not change this. */
    if (f->emulated && !c->is_count)
        return refuse(a, "times of the software device say nothing about a GPU");
    if (!file)
        snprintf(text, sizeof text, "not measured yet: `assay experiment %.60s` does it",
                 c->experiment);
    else if (!m || !isfinite(m->value))
        snprintf(text, sizeof text, "the experiment %.60s did not give %.60s on this device",
                 c->experiment, c->metric);
    else if (is_fit(c, file, m, text, sizeof text))
        text[0] = 0;
    if (text[0])
        return refuse(a, text);
    a.verdict = is_met(c, m->value) ? CLAIM_HOLDS : CLAIM_FAILS;
    explain(c, f, &a);
    return a;
}

/* Texts --------------------------------------------------------------------------------------- */

const char *claim_get_verdict_name(claim_verdict v) {
    static const char *const names[CLAIM_VERDICTS] = {"holds", "does not hold",
                                                      "cannot be measured here"};
    return names[v];
}

/* " GB/s"; things that are counted have no unit. */
static const char *get_unit(const claim *c, char *text, size_t size) {
    snprintf(text, size, "%s%s", c->unit[0] && !c->is_count ? " " : "", c->is_count ? "" : c->unit);
    return text;
}

void claim_get_published(const claim *c, char *text, size_t size) {
    static const char *const words[] = {[CLAIM_ABOUT] = "",
                                        [CLAIM_AT_LEAST] = "at least ",
                                        [CLAIM_AT_MOST] = "at most ",
                                        [CLAIM_BETWEEN] = ""};
    char unit[40], high[40] = "";
    if (c->relation == CLAIM_BETWEEN)
        snprintf(high, sizeof high, " to %g", c->high);
    snprintf(text, size, "%s%g%s%s", words[c->relation], c->value, high,
             get_unit(c, unit, sizeof unit));
}

void claim_get_measured(const claim *c, const claim_answer *a, bool emulated, char *text,
                        size_t size) {
    char unit[40];
    if (!a->has_value)
        snprintf(text, size, "-");
    else
        snprintf(text, size, fabs(a->value) < 1000 ? "%.4g%s%s" : "%.0f%s%s", a->value,
                 get_unit(c, unit, sizeof unit), emulated && !c->is_count ? " (emulated)" : "");
}
