#include "claims.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/base/root.h"

/* In the order of claim_relation and of claim_kind. */
static const char *const relations[] = {"about", "at least", "at most", "between"};
static const char *const kinds[] = {"time", "count", "derived"};

/* Reading ------------------------------------------------------------------------------------- */

#define TEXT(title) FIELD(claim, title, FIELD_TEXT, #title)
#define NUMBER(title, empty) FIELD(claim, title, FIELD_REAL, #title, .may_be_empty = empty)
static const field fields[] = {
    TEXT(id),           TEXT(text),   NUMBER(value, false),
    NUMBER(high, true), TEXT(unit),   NUMBER(tolerance_pct, false),
    TEXT(conditions),   TEXT(model),  TEXT(device),
    TEXT(experiment),   TEXT(metric), TEXT(obstacle),
};

/* The index of the word in that column. */
static bool find_word(const csv_file *f, size_t row, const char *title, const char *const *words,
                      size_t count, int *out, err *e) {
    size_t column;
    char valid[80] = "";
    if (!csv_find_column(f, title, &column, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(csv_get_text(f, row, column), words[i]) == 0) {
            *out = (int)i;
            return true;
        }
        snprintf(valid + strlen(valid), sizeof valid - strlen(valid), "%s%s", i ? ", " : "",
                 words[i]);
    }
    return err_set(e, EXIT_USAGE, "%.100s:%zu: no %s '%.30s' (valid: %s)", csv_get_path(f),
                   csv_get_line(f, row), title, csv_get_text(f, row, column), valid);
}

static bool read_claim(const csv_file *f, size_t row, claim *c, err *e) {
    int relation, kind;
    if (!record_read(&(record)RECORD(fields), f, row, c, e) ||
        !find_word(f, row, "relation", relations, sizeof relations / sizeof *relations, &relation,
                   e) ||
        !find_word(f, row, "kind", kinds, sizeof kinds / sizeof *kinds, &kind, e))
        return false;
    c->relation = (claim_relation)relation;
    c->kind = (claim_kind)kind;
    return c->relation != CLAIM_BETWEEN || !isnan(c->high) ||
           err_set(e, EXIT_USAGE, "%.100s:%zu: 'between' takes a number in column 'high'",
                   csv_get_path(f), csv_get_line(f, row));
}

/* A number, or the value of the claim of that name. */
static bool find_term(const claim_list *l, const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (end != text && !*end)
        return true;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].id, text) == 0) {
            *out = l->items[i].value;
            return true;
        }
    return false;
}

/* Claims and numbers joined by *, / and +, from left to right: "1000 / syncs / ms-per-sync". */
static bool derive(claim_list *l, claim *c, size_t row, err *e) {
    char sign = '*';
    c->derived = 1;
    for (const char *p = c->metric; *p;) {
        char term[64];
        double value;
        size_t length = strcspn(p, " ");
        snprintf(term, sizeof term, "%.*s", (int)length, p);
        if (!find_term(l, term, &value))
            return err_set(e, EXIT_USAGE, "%.100s:%zu: '%.40s' is neither a claim nor a number",
                           csv_get_path(l->file), csv_get_line(l->file, row), term);
        c->derived = sign == '*'   ? c->derived * value
                     : sign == '+' ? c->derived + value
                                   : c->derived / value;
        p += length + strspn(p + length, " ");
        if (*p)
            sign = *p++;
        if (sign != '*' && sign != '/' && sign != '+')
            return err_set(e, EXIT_USAGE, "%.100s:%zu: '%c' is none of * / +",
                           csv_get_path(l->file), csv_get_line(l->file, row), sign);
        p += strspn(p, " ");
    }
    return true;
}

bool claims_read(const char *path, claim_list *out, err *e) {
    *out = (claim_list){.file = csv_read(path, e)};
    if (!out->file)
        return false;
    size_t rows = csv_count_rows(out->file);
    out->items = array_new(rows + 1, sizeof *out->items);
    bool ok = true;
    for (; ok && out->count < rows; out->count++)
        ok = read_claim(out->file, out->count, &out->items[out->count], e);
    for (size_t i = 0; ok && i < out->count; i++)
        if (out->items[i].kind == CLAIM_DERIVED)
            ok = derive(out, &out->items[i], i, e);
    if (!ok)
        claims_free(out);
    return ok;
}

static bool read_default(claim_list *claims, err *e) {
    char path[PATH_MAX + 32], home[PATH_MAX];
    if (!root_find(home, sizeof home, e))
        return false;
    snprintf(path, sizeof path, "%s/results/claims.csv", home);
    if (access(path, F_OK) == 0)
        return claims_read(path, claims, e);
    if (root_find_project(home, sizeof home))
        return true;
    return os_join_home(path, sizeof path, e, "results/claims.csv") && claims_read(path, claims, e);
}

bool claims_open(const char *file, const char *const *folders, size_t count, claim_list *claims,
                 store *results, err *e) {
    return (file ? claims_read(file, claims, e) : read_default(claims, e)) &&
           store_open(folders, count, count == 0, results, e);
}

void claims_free(claim_list *l) {
    csv_file_free(l->file);
    free(l->items);
    *l = (claim_list){.count = 0};
}

/* Errors of checked cases, from the file of `assay check --csv` ----------------------------------- */

typedef struct {
    const char *op, *kernel, *input, *verdict, *nmse;
    double elements, nonfinite, unwritten;
} checked_case;

#define CHECKED(title, kind) FIELD(checked_case, title, kind, #title, .may_be_empty = true)
static const field checked_fields[] = {
    CHECKED(op, FIELD_TEXT),        CHECKED(kernel, FIELD_TEXT),    CHECKED(input, FIELD_TEXT),
    CHECKED(verdict, FIELD_TEXT),   CHECKED(nmse, FIELD_TEXT),      CHECKED(elements, FIELD_REAL),
    CHECKED(nonfinite, FIELD_REAL), CHECKED(unwritten, FIELD_REAL),
};

/* A failed case with a value that is not finite or was never written is infinitely wrong. In a case that passed, what is
 * not finite is what the type of the output makes of a number that it cannot hold; nmse leaves it out. */
static double get_error(const checked_case *c) {
    char *end;
    double nmse = strtod(c->nmse, &end);
    bool is_known = *c->nmse && !*end && isfinite(nmse),
         has_passed = strcmp(c->verdict, "pass") == 0;
    return is_known && (has_passed || (c->nonfinite == 0 && c->unwritten == 0)) ? 100 * sqrt(nmse)
                                                                                : (double)INFINITY;
}

/* rms_pct:NAME is the largest root mean square error of a case over that of its outputs, in percent, of all
 * cases with normal inputs of the op NAME and of kernels whose names contain NAME. Of few outputs it would be decided by
 * how near 0 they happen to be, a sum of products that cancel: such a case counts only if it failed. False if the file
 * has no such case, or for another metric. */
static bool find_error(const csv_file *f, const char *metric, store_metric *out) {
    const double fewest = 32;
    static const char kind[] = "rms_pct:";
    const char *name = metric + strlen(kind);
    checked_case c;
    size_t cases = 0;
    if (strncmp(metric, kind, strlen(kind)) != 0)
        return false;
    *out = (store_metric){.unit = "%", .low = NAN, .high = NAN};
    snprintf(out->name, sizeof out->name, "%s", metric);
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        if (!record_read(&(record)RECORD(checked_fields), f, r, &c, NULL))
            continue;
        bool is_named = strcmp(c.op, name) == 0 || strstr(c.kernel, name);
        bool has_run = (strcmp(c.verdict, "pass") == 0 && !(c.elements < fewest)) ||
                       strcmp(c.verdict, "fail") == 0;
        if (!is_named || !has_run || strcmp(c.input, "normal") != 0 || isnan(c.nonfinite) ||
            isnan(c.unwritten))
            continue;
        out->value = fmax(out->value, get_error(&c));
        cases++;
    }
    return cases > 0;
}

/* Judging ------------------------------------------------------------------------------------- */

static bool is_met(const claim *c, double measured) {
    const double top = c->relation == CLAIM_BETWEEN ? c->high : c->value,
                 slack = c->tolerance_pct / 100;
    return (c->relation == CLAIM_AT_MOST || measured >= c->value - fabs(c->value) * slack) &&
           (c->relation == CLAIM_AT_LEAST || measured <= top + fabs(top) * slack);
}

static claim_answer refuse(claim_answer a, const char *reason) {
    a.verdict = CLAIM_UNKNOWN;
    snprintf(a.reason, sizeof a.reason, "%s", reason);
    return a;
}

static bool is_published_for(const claim *c, const store_folder *f) {
    return c->kind == CLAIM_COUNT || strcmp(c->device, "any GPU") == 0 ||
           strcmp(c->device, "any device") == 0 || strcmp(c->device, f->device) == 0;
}

/* "8.8 times as much", "12 % less", "the same". */
static void describe_difference(double measured, double published, char *text, size_t size) {
    double ratio = measured / published;
    char number[32];
    if (!(ratio > 0) || !isfinite(ratio))
        text[0] = 0;
    else if (ratio >= 1.995)
        snprintf(text, size, ", %s times as much", format_number(ratio, 3, number, sizeof number));
    else if (ratio <= 0.5)
        snprintf(text, size, ", 1/%s of it", format_number(1 / ratio, 3, number, sizeof number));
    else if (fabs(ratio - 1) < 0.005)
        snprintf(text, size, ", the same");
    else
        snprintf(text, size, ", %s %% %s",
                 format_number(100 * fabs(ratio - 1), 2, number, sizeof number),
                 ratio > 1 ? "more" : "less");
}

/* The two numbers, and what else a reader must know. */
static void explain(const claim *c, const store_folder *f, const store_metric *m, claim_answer *a) {
    char published[80], measured[80], slack[40] = "", spread[80] = "", difference[48] = "";
    claim_get_published(c, published, sizeof published);
    claim_get_measured(c, a, f->emulated, measured, sizeof measured);
    if (a->verdict == CLAIM_UNCLEAR)
        snprintf(spread, sizeof spread, "; its quartiles, %.4g to %.4g, are on both sides of that",
                 m->low, m->high);
    if (is_published_for(c, f)) {
        if (c->tolerance_pct > 0)
            snprintf(slack, sizeof slack, ", give or take %g %%", c->tolerance_pct);
        snprintf(a->reason, sizeof a->reason, "%s against %s%s%s", measured, published, slack,
                 spread);
        return;
    }
    if (a->agrees && c->tolerance_pct > 0)
        snprintf(slack, sizeof slack, ": agrees within %g %%", c->tolerance_pct);
    if (c->relation != CLAIM_BETWEEN)
        describe_difference(a->value, c->value, difference, sizeof difference);
    snprintf(a->reason, sizeof a->reason, "published for the %.40s: %.60s; here %.40s%s%s%s",
             c->device, published, measured, difference, slack, spread);
}

/* Does the text contain it, ignoring case? */
static bool has_word(const char *text, const char *word) {
    char lower[256];
    snprintf(lower, sizeof lower, "%s", text);
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return strstr(lower, word) != NULL;
}

/* "q4_0", "f16", "bf16": the type of weights, which a file knows better than its name does. */
static bool is_type_word(const char *word) {
    size_t letters = strspn(word, "abfiqt");
    return letters > 0 && isdigit((unsigned char)word[letters]);
}

static bool is_of_model(const claim *c, const store_file *file) {
    const char *model = csv_get_meta(file->csv, "model");
    const char *weights = csv_get_meta(file->csv, "weights");
    for (const char *p = c->model; *p;) {
        char word[64];
        size_t length = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        if (!has_word(is_type_word(word) && weights ? weights : model ? model : "", word))
            return false;
        p += length + strspn(p + length, " ");
    }
    return true;
}

/* What keeps a number from being an answer. */
static bool is_fit(const claim *c, const store_file *file, const store_metric *m, char *why,
                   size_t size) {
    const char *model = csv_get_meta(file->csv, "model"), *level = csv_get_meta(file->csv, "level");
    const char *weights = csv_get_meta(file->csv, "weights");
    if (strcmp(m->unit, c->unit) != 0)
        snprintf(why, size, "%.60s is in '%.20s' and the claim in '%.20s'", c->metric, m->unit,
                 c->unit);
    else if (!is_of_model(c, file))
        snprintf(why, size, "measured with the model %.80s%s%.40s, and the claim is about '%.40s'",
                 model ? model : "(none named)", weights ? ", weights " : "",
                 weights ? weights : "", c->model);
    else if (c->kind == CLAIM_COUNT)
        return true;
    else if (level && strcmp(level, "smoke") == 0)
        snprintf(why, size, "a smoke run measures nothing: run `assay experiment %.60s`",
                 c->experiment);
    else
        return true;
    return false;
}

/* Nothing is measured: the publications are held against each other. */
static claim_answer judge_derived(const claim *c) {
    claim_answer a = {.verdict = is_met(c, c->derived) ? CLAIM_HOLDS : CLAIM_CONTRADICTED,
                      .doubt = ""};
    char published[96], derived[32];
    claim_get_published(c, published, sizeof published);
    snprintf(a.reason, sizeof a.reason, "%s: %.120s is %s; published is %.60s",
             a.verdict == CLAIM_HOLDS ? "the published numbers agree"
                                      : "the published numbers contradict each other",
             c->metric, format_number(c->derived, 3, derived, sizeof derived), published);
    return a;
}

/* Both ends of the measurement's spread get the same verdict as its middle. */
static bool is_clear(const claim *c, const store_metric *m) {
    bool is = is_met(c, m->value);
    return isnan(m->low) || (is_met(c, m->low) == is && is_met(c, m->high) == is);
}

/* A verdict of another program's number. */
static const char *find_doubt(const store_file *file) {
    const file_origin *o = &file->origin;
    return o->stale > 0     ? "stale"
           : o->unknown > 0 ? "of unknown origin"
           : o->dirty > 0   ? "uncommitted"
                            : "";
}

claim_answer claim_judge(const claim *c, const store_folder *f) {
    claim_answer a = {.verdict = CLAIM_UNKNOWN, .doubt = ""};
    char text[320] = "";
    if (c->obstacle[0])
        return refuse(a, c->obstacle);
    if (c->kind == CLAIM_DERIVED)
        return judge_derived(c);
    store_metric checked;
    bool is_checked = strcmp(c->experiment, "check") == 0;
    const store_file *file = is_checked ? store_find(f, STORE_CHECK, NULL)
                                        : store_find(f, STORE_EXPERIMENT, c->experiment);
    const store_metric *m = !file         ? NULL
                            : !is_checked ? store_find_metric(file, c->metric)
                            : find_error(file->csv, c->metric, &checked) ? &checked
                                                                         : NULL;
    bool is_number = m && (isfinite(m->value) || (is_checked && !isnan(m->value)));
    /* A number in another unit or from another model does not answer the claim and is not shown. */
    a.has_value = is_number && strcmp(m->unit, c->unit) == 0 && is_of_model(c, file);
    a.value = m ? m->value : NAN;
    a.doubt = file ? find_doubt(file) : "";
    /* Tested first: running an experiment would not change this. */
    if (f->emulated && c->kind == CLAIM_TIME)
        return refuse(a, "times of the software device say nothing about a GPU");
    if (!file)
        snprintf(text, sizeof text,
                 is_checked
                     ? "not measured yet: `assay %s --csv FILE` in the folder of results does it"
                     : "not measured yet: `assay experiment %.60s` does it",
                 c->experiment);
    else if (!is_number)
        snprintf(text, sizeof text, "%s%.60s did not give %.60s on this device",
                 is_checked ? "" : "the experiment ", c->experiment, c->metric);
    else if (is_fit(c, file, m, text, sizeof text))
        text[0] = 0;
    if (text[0])
        return refuse(a, text);
    bool is_met_here = is_met(c, m->value);
    a.verdict = !is_clear(c, m)           ? CLAIM_UNCLEAR
                : !is_published_for(c, f) ? CLAIM_ELSEWHERE
                : is_met_here             ? CLAIM_HOLDS
                                          : CLAIM_FAILS;
    /* More than a bound for another chip would prove nothing. */
    a.agrees = a.verdict == CLAIM_ELSEWHERE && is_met_here &&
               (c->relation == CLAIM_ABOUT || c->relation == CLAIM_BETWEEN);
    explain(c, f, m, &a);
    return a;
}

claim_counts claims_count(const claim_list *l, const store_folder *f) {
    claim_counts c = {.agree = 0};
    for (size_t i = 0; i < l->count; i++) {
        claim_answer a = claim_judge(&l->items[i], f);
        c.of[a.verdict]++;
        c.agree += a.agrees;
    }
    return c;
}

size_t claims_count_same(const claim_list *l, const store_folder *f, const claim_answer *a) {
    size_t same = 0;
    for (size_t i = 0; a->verdict == CLAIM_UNKNOWN && i < l->count; i++) {
        claim_answer b = claim_judge(&l->items[i], f);
        same += b.verdict == CLAIM_UNKNOWN && strcmp(a->reason, b.reason) == 0;
    }
    return same;
}

/* Texts --------------------------------------------------------------------------------------- */

const char *claim_get_verdict_name(claim_verdict v) {
    static const char *const names[CLAIM_VERDICTS] = {
        [CLAIM_HOLDS] = "holds",
        [CLAIM_FAILS] = "does not hold",
        [CLAIM_ELSEWHERE] = "measured on another chip",
        [CLAIM_UNCLEAR] = "cannot be told",
        [CLAIM_CONTRADICTED] = "contradicted",
        [CLAIM_UNKNOWN] = "cannot be measured here",
    };
    return names[v];
}

void claim_format_counts(const claim_counts *c, char *text, size_t size) {
    int n = snprintf(text, size, "%zu hold, %zu %s not hold", c->of[CLAIM_HOLDS],
                     c->of[CLAIM_FAILS], c->of[CLAIM_FAILS] == 1 ? "does" : "do");
    if (c->of[CLAIM_ELSEWHERE] > 0)
        n += snprintf(text + n, size - (size_t)n, ", %zu measured on another chip (%zu agree)",
                      c->of[CLAIM_ELSEWHERE], c->agree);
    if (c->of[CLAIM_UNCLEAR] > 0)
        n += snprintf(text + n, size - (size_t)n, ", %zu cannot be told", c->of[CLAIM_UNCLEAR]);
    if (c->of[CLAIM_CONTRADICTED] > 0)
        n += snprintf(text + n, size - (size_t)n, ", %zu contradicted by other published numbers",
                      c->of[CLAIM_CONTRADICTED]);
    snprintf(text + n, size - (size_t)n, ", %zu cannot be measured here", c->of[CLAIM_UNKNOWN]);
}

/* " GB/s"; things that are counted have no unit. */
static const char *get_unit(const claim *c, char *text, size_t size) {
    bool has_unit = c->unit[0] && strcmp(c->unit, "count") != 0;
    snprintf(text, size, "%s%s", has_unit ? " " : "", has_unit ? c->unit : "");
    return text;
}

void claim_get_published(const claim *c, char *text, size_t size) {
    const bool is_bound = c->relation == CLAIM_AT_LEAST || c->relation == CLAIM_AT_MOST;
    char unit[40], value[32], high[40] = "";
    if (c->relation == CLAIM_BETWEEN)
        snprintf(high, sizeof high, " to %s", format_number(c->high, 6, value, sizeof value));
    format_number(c->value, 6, value, sizeof value);
    snprintf(text, size, "%s%s%s%s%s", is_bound ? relations[c->relation] : "", is_bound ? " " : "",
             value, high, get_unit(c, unit, sizeof unit));
}

void claim_get_measured(const claim *c, const claim_answer *a, bool emulated, char *text,
                        size_t size) {
    char unit[40], value[32];
    bool is_emulated = emulated && c->kind == CLAIM_TIME;
    if (!a->has_value)
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%s%s%s%s%s%s", format_number(a->value, 4, value, sizeof value),
                 get_unit(c, unit, sizeof unit), is_emulated || *a->doubt ? " (" : "",
                 is_emulated ? "emulated" : "", is_emulated && *a->doubt ? ", " : "", a->doubt);
    if (a->has_value && (is_emulated || *a->doubt) && strlen(text) + 1 < size)
        strcat(text, ")");
}
