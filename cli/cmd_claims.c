/* cmd_claims: `assay claims`. Published numbers against stored results. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/record.h"
#include "report/claims.h"
#include "verb.h"

static struct {
    const char *claims, *csv;
    bool json, markdown;
} settings;

static const option options[] = {
    TEXT_OPTION("claims", &settings.claims, "FILE.csv", "the claims (default results/claims.csv)"),
    FLAG_OPTION("json", &settings.json, "print JSON instead of sentences"),
    FLAG_OPTION("md", &settings.markdown, "print a Markdown table instead of sentences"),
    TEXT_OPTION("csv", &settings.csv, "FILE", "also write the rows to a file"),
};

/* A row as people and programs read it; texts are of the claim and of the folder. */
typedef struct {
    const claim *claim;
    const store_folder *folder;
    claim_answer answer;
    char published[96], measured[96];
    char folded[32]; /* "25 claims", where the row stands for several; else "" */
    const char *device, *id, *text, *conditions, *published_for, *unit, *verdict;
    bool is_emulated;
    double value; /* NaN: nothing was measured */
} row;

typedef struct {
    row *items;
    size_t count;
} row_list;

static const field table_fields[] = {
    FIELD(row, device, FIELD_TEXT, NULL, "device"),
    FIELD(row, id, FIELD_TEXT, NULL, "claim"),
    FIELD(row, published, FIELD_CHARS, NULL, "published"),
    FIELD(row, measured, FIELD_CHARS, NULL, "measured here"),
    FIELD(row, verdict, FIELD_TEXT, NULL, "verdict"),
    FIELD(row, answer.reason, FIELD_CHARS, NULL, "reason"),
};
static const field csv_fields[] = {
    FIELD(row, device, FIELD_TEXT, "device"),
    FIELD(row, id, FIELD_TEXT, "id"),
    FIELD(row, text, FIELD_TEXT, "text"),
    FIELD(row, published, FIELD_CHARS, "published"),
    FIELD(row, measured, FIELD_CHARS, "measured"),
    FIELD(row, verdict, FIELD_TEXT, "verdict"),
    FIELD(row, answer.reason, FIELD_CHARS, "reason"),
};
static const field json_fields[] = {
    FIELD(row, device, FIELD_TEXT, "device"),
    FIELD(row, is_emulated, FIELD_FLAG, "emulated"),
    FIELD(row, id, FIELD_TEXT, "id"),
    FIELD(row, text, FIELD_TEXT, "text"),
    FIELD(row, conditions, FIELD_TEXT, "conditions"),
    FIELD(row, published_for, FIELD_TEXT, "published_for"),
    FIELD(row, published, FIELD_CHARS, "published"),
    FIELD(row, unit, FIELD_TEXT, "unit"),
    FIELD(row, value, FIELD_REAL, "measured"),
    FIELD(row, answer.doubt, FIELD_TEXT, "doubt"),
    FIELD(row, verdict, FIELD_TEXT, "verdict"),
    FIELD(row, answer.reason, FIELD_CHARS, "reason"),
};

static row make_row(const claim *c, const store_folder *f) {
    row r = {.claim = c,
             .folder = f,
             .answer = claim_judge(c, f),
             .device = f->device,
             .is_emulated = f->emulated,
             .id = c->id,
             .text = c->text,
             .conditions = c->conditions,
             .published_for = c->device,
             .unit = c->unit};
    r.value = r.answer.has_value ? r.answer.value : NAN;
    r.verdict = claim_get_verdict_name(r.answer.verdict);
    claim_get_published(c, r.published, sizeof r.published);
    claim_get_measured(c, &r.answer, f->emulated, r.measured, sizeof r.measured);
    return r;
}

static row_list make_rows(const claim_list *claims, const store *s) {
    row_list l = {array_new(claims->count * s->count + 1, sizeof(row)), 0};
    for (size_t f = 0; f < s->count; f++)
        for (size_t i = 0; i < claims->count; i++)
            l.items[l.count++] = make_row(&claims->items[i], &s->folders[f]);
    return l;
}

/* Forms --------------------------------------------------------------------------------------- */

static void print_counts(const claim_list *claims, const store *s) {
    printf("\n");
    for (size_t f = 0; f < s->count; f++) {
        claim_counts c = claims_count(claims, &s->folders[f]);
        char text[256];
        claim_format_counts(&c, text, sizeof text);
        char line[512];
        snprintf(line, sizeof line, "%s%s%s", s->count > 1 ? s->folders[f].device : "",
                 s->count > 1 ? ": " : "", text);
        table_print_text(stdout, table_find_limit(stdout), 0, line);
    }
}

/* Rows of a folder with the same obstacle become one, with their number. */
static void fold(row_list *l, const claim_list *claims) {
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        row r = l->items[i];
        size_t same = claims_count_same(claims, r.folder, &r.answer), k = 0;
        while (k < kept && (l->items[k].folder != r.folder || !l->items[k].folded[0] ||
                            strcmp(l->items[k].answer.reason, r.answer.reason) != 0))
            k++;
        if (k < kept)
            continue;
        if (same >= CLAIMS_FOLDED)
            snprintf(r.folded, sizeof r.folded, "%zu claims", same);
        l->items[kept++] = r;
    }
    l->count = kept;
}

/* "Holds: a launch costs 1.27 us (launch-each)", then why. */
static void print_sentence(const row *r, bool has_colour) {
    static const char *const paints[CLAIM_VERDICTS] = {
        [CLAIM_HOLDS] = "\033[32m",          [CLAIM_FAILS] = "\033[1;31m",
        [CLAIM_CONTRADICTED] = "\033[1;31m", [CLAIM_ELSEWHERE] = "",
        [CLAIM_UNCLEAR] = "\033[2m",         [CLAIM_UNKNOWN] = "\033[2m"};
    const char *colour = has_colour ? paints[r->answer.verdict] : "";
    char text[900], with_units[1000], verdict[64];
    int limit = table_find_limit(stdout);
    snprintf(verdict, sizeof verdict, "%s", r->verdict);
    verdict[0] = (char)toupper((unsigned char)verdict[0]);
    if (r->folded[0])
        snprintf(text, sizeof text, "%s%s%s: %s", colour, verdict, *colour ? "\033[0m" : "",
                 r->folded);
    else
        snprintf(text, sizeof text, "%s%s%s: %s (%s)", colour, verdict, *colour ? "\033[0m" : "",
                 r->claim->text, r->claim->id);
    table_print_text(stdout, limit, 0, format_text(text, with_units, sizeof with_units));
    table_print_text(stdout, limit, 4,
                     format_text(r->answer.reason, with_units, sizeof with_units));
}

static void print_sentences(row_list *l, const claim_list *claims, const store *s) {
    const store_folder *last = NULL;
    fold(l, claims);
    for (size_t i = 0; i < l->count; i++) {
        const store_folder *f = l->items[i].folder;
        if (f != last)
            printf("%s# device: %s%s\n", last ? "\n" : "", f->device,
                   f->emulated ? " (emulated)" : "");
        print_sentence(&l->items[i], table_wants_colour(stdout));
        last = f;
    }
    print_counts(claims, s);
}

static void add_rows(sink *s, const row_list *l) {
    for (size_t i = 0; i < l->count; i++)
        sink_add(s, &l->items[i], PAINT_NONE);
    sink_end(s);
}

static void print_json(const row_list *l) {
    json j = json_start(stdout, '[');
    add_rows(&(sink){.record = RECORD(json_fields), .json = &j}, l);
    json_close(&j);
}

static bool write_csv(const row_list *l, const char *path, err *e) {
    csv *c = csv_new();
    record r = RECORD(csv_fields);
    record_add_titles(&r, c);
    csv_end_row(c);
    add_rows(&(sink){.record = r, .csv = c}, l);
    bool ok = csv_write(c, path, e);
    csv_free(c);
    return ok;
}

/* The verb ------------------------------------------------------------------------------------ */

static bool answer(const claim_list *claims, const store *s, err *e) {
    row_list l = make_rows(claims, s);
    bool ok =
        !settings.csv || write_csv(&l, settings.csv, e); /* all rows: the sentences fold some */
    if (settings.json)
        print_json(&l);
    else if (settings.markdown)
        add_rows(&(sink){.record = RECORD(table_fields), .out = stdout, .is_markdown = true}, &l);
    else
        print_sentences(&l, claims, s);
    free(l.items);
    return ok;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    claim_list claims = {.count = 0};
    store s = {.count = 0};
    bool ok = claims_open(settings.claims, names, count, &claims, &s, e) &&
              (s.count > 0 ||
               err_set(e, EXIT_INCONCLUSIVE,
                       "nothing has been measured yet: run `assay experiment all` first")) &&
              answer(&claims, &s, e) && store_admit_skipped(&s, e);
    claims_free(&claims);
    store_free(&s);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_claims, "claims", .names = "[DIR...]",
     .about = "compare published numbers with what was measured here: does each claim hold?",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Nothing\n"
         "is measured: the numbers are metrics of `assay experiment` and errors of `assay check\n"
         "--csv`. A claim holds or does not hold on the chip it was published for; on another GPU\n"
         "it is \"measured on another chip\", with both numbers. It cannot be told where the "
         "spread of the samples reaches\n"
         "across the allowance, and cannot be measured where the device cannot answer: times of\n"
         "the software device decide nothing. Claims with the same such reason share a row of\n"
         "the table; --json and --csv list all of them. A number is marked stale if the code that\n"
         "gave it has changed since (see assay results). Exit status: 0 whatever the verdicts "
         "are.\n",
     VERB_OPTIONS(options), .reads_results = true);
