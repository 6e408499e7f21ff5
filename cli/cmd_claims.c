/* cmd_claims: `assay claims`. Published numbers against stored results. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/csv.h"
#include "harness/base/format.h"
#include "harness/base/json.h"
#include "harness/base/table.h"
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

enum { DEVICE, CLAIM, PUBLISHED, MEASURED, VERDICT, REASON, COLUMNS };
static const char *const titles[COLUMNS] = {"device",        "claim",   "published",
                                            "measured here", "verdict", "reason"};

/* A row as people read it; pointers are into the claim and the row. */
typedef struct {
    const claim *claim;
    const store_folder *folder;
    claim_answer answer;
    char published[96], measured[96];
    char folded[32]; /* "25 claims", where the row stands for several; else "" */
    const char *cells[COLUMNS];
} row;

typedef struct {
    row *items;
    size_t count;
} row_list;

/* Again after a row was moved: cells point into it. */
static void set_cells(row *r) {
    bool is_one = !r->folded[0];
    r->cells[DEVICE] = r->folder->device;
    r->cells[CLAIM] = is_one ? r->claim->id : r->folded;
    r->cells[PUBLISHED] = is_one ? r->published : "";
    r->cells[MEASURED] = is_one ? r->measured : "";
    r->cells[VERDICT] = claim_get_verdict_name(r->answer.verdict);
    r->cells[REASON] = r->answer.reason;
}

static row_list make_rows(const claim_list *claims, const store *s) {
    row_list l = {calloc(claims->count * s->count + 1, sizeof(row)), 0};
    assert(l.items);
    for (size_t f = 0; f < s->count; f++)
        for (size_t i = 0; i < claims->count; i++) {
            row *r = &l.items[l.count++];
            const claim *c = r->claim = &claims->items[i];
            r->folder = &s->folders[f];
            r->answer = claim_judge(c, r->folder);
            claim_get_published(c, r->published, sizeof r->published);
            claim_get_measured(c, &r->answer, r->folder->emulated, r->measured, sizeof r->measured);
            set_cells(r);
        }
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
    for (size_t i = 0; i < kept; i++)
        set_cells(&l->items[i]);
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
    snprintf(verdict, sizeof verdict, "%s", r->cells[VERDICT]);
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

static void print_markdown(const row_list *l) {
    for (size_t k = 0; k < COLUMNS; k++)
        printf("| %s ", titles[k]);
    printf("|\n");
    for (size_t k = 0; k < COLUMNS; k++)
        printf("|---");
    printf("|\n");
    for (size_t i = 0; i < l->count; i++) {
        for (size_t k = 0; k < COLUMNS; k++) {
            fputs("| ", stdout);
            for (const char *p = l->items[i].cells[k]; *p; p++)
                printf(*p == '|' ? "\\%c" : "%c", *p);
            fputc(' ', stdout);
        }
        printf("|\n");
    }
}

static void print_json_field(const char *key, const char *text) {
    printf("\"%s\": ", key);
    json_print_text(stdout, text, strlen(text));
    fputs(", ", stdout);
}

static void print_json(const row_list *l) {
    printf("[");
    for (size_t i = 0; i < l->count; i++) {
        const row *r = &l->items[i];
        printf("%s\n  {", i ? "," : "");
        print_json_field("device", r->cells[DEVICE]);
        printf("\"emulated\": %s, ", r->folder->emulated ? "true" : "false");
        print_json_field("id", r->claim->id);
        print_json_field("text", r->claim->text);
        print_json_field("conditions", r->claim->conditions);
        print_json_field("published_for", r->claim->device);
        print_json_field("published", r->published);
        print_json_field("unit", r->claim->unit);
        printf("\"measured\": ");
        if (r->answer.has_value)
            json_print_number(stdout, r->answer.value, false);
        else
            printf("null");
        printf(", ");
        print_json_field("doubt", r->answer.doubt);
        print_json_field("verdict", r->cells[VERDICT]);
        printf("\"reason\": ");
        json_print_text(stdout, r->answer.reason, strlen(r->answer.reason));
        printf("}");
    }
    printf("\n]\n");
}

static bool write_csv(const row_list *l, const char *path, err *e) {
    csv *c = csv_new();
    csv_add_text(c, "device");
    csv_add_text(c, "id");
    csv_add_text(c, "text");
    for (size_t k = PUBLISHED; k < COLUMNS; k++)
        csv_add_text(c, k == MEASURED ? "measured" : titles[k]);
    csv_end_row(c);
    for (size_t i = 0; i < l->count; i++) {
        csv_add_text(c, l->items[i].cells[DEVICE]);
        csv_add_text(c, l->items[i].claim->id);
        csv_add_text(c, l->items[i].claim->text);
        for (size_t k = PUBLISHED; k < COLUMNS; k++)
            csv_add_text(c, l->items[i].cells[k]);
        csv_end_row(c);
    }
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
        print_markdown(&l);
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
