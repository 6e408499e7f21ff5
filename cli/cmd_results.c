/* cmd_results: the verbs that read stored results: `assay results`, are they still those of the code as it is now?
 * `assay claims`, published numbers against them; `assay report`, all of them as one page; `assay plot`, their
 * charts drawn again, of one folder or of several devices in the same charts. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/experiment.h"
#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/root.h"
#include "harness/measure/plot.h"
#include "harness/measure/publish.h"
#include "report/claims.h"
#include "report/page.h"
#include "report/store.h"
#include "verb.h"

/* results ---------------------------------------------------------------------------------------- */

static struct { bool json, check; } results_settings;

static const option results_option_list[] = {
    FLAG_OPTION("json", &results_settings.json, "print JSON instead of the table"),
    FLAG_OPTION(
        "check", &results_settings.check,
        "exit status 1 if a row is not fresh and committed, or a folder has several commits"),
};

/* A file of a folder, or their sum. */
typedef struct {
    const char *file;
    file_origin origin;
    char dates[24 + 16]; /* "2026-01-02 to 2026-01-03" */
} line;

#define ORIGIN(member, kind, ...) FIELD(line, origin.member, kind, __VA_ARGS__)
static const field results_fields[] = {
    FIELD(line, file, FIELD_TEXT, "file", "file"),
    ORIGIN(rows, FIELD_COUNT, "rows", "rows"),
    ORIGIN(fresh, FIELD_COUNT, "fresh", "fresh"),
    ORIGIN(stale, FIELD_COUNT, "stale", "stale", .is_painted = true),
    ORIGIN(unknown, FIELD_COUNT, "unknown", "unknown"),
    ORIGIN(dirty, FIELD_COUNT, "dirty", "dirty"),
    ORIGIN(commit_count, FIELD_COUNT, "commit_count", NULL),
    ORIGIN(commits, FIELD_CHARS, "commits", "commit", .rank = 2),
    ORIGIN(first, FIELD_CHARS, "first", NULL),
    ORIGIN(last, FIELD_CHARS, "last", NULL),
    FIELD(line, dates, FIELD_CHARS, NULL, "date", .rank = 1),
    ORIGIN(changes, FIELD_CHARS, "changed", "changed since"),
};

static line make_line(const char *name, const file_origin *o) {
    line l = {.file = name, .origin = *o};
    snprintf(l.dates, sizeof l.dates, "%.10s", o->first);
    if (strncmp(o->first, o->last, 10) != 0)
        snprintf(l.dates, sizeof l.dates, "%.10s to %.10s", o->first, o->last);
    return l;
}

static void add_files(sink *s, const store_folder *f) {
    for (size_t i = 0; i < f->count; i++) {
        const line l = make_line(path_get_name(f->files[i].path), &f->files[i].origin);
        if (l.origin.rows > 0)
            sink_add(s, &l, l.origin.stale > 0 ? PAINT_BAD : PAINT_NONE);
    }
}

static void print_folder(const store_folder *f, const file_origin *sum, json *j) {
    const line total = make_line("total", sum);
    sink s = {.record = RECORD(results_fields), .out = j ? NULL : stdout, .json = j};
    if (!j) {
        printf("# %s: %s\n", f->path, f->device);
        add_files(&s, f);
        sink_add(&s, &total, sum->stale > 0 ? PAINT_BAD : PAINT_NONE);
        sink_end(&s);
        return;
    }
    json_open(j, NULL, '{');
    json_add_text(j, "folder", f->path);
    json_add_text(j, "device", f->device);
    json_open(j, "files", '[');
    add_files(&s, f);
    sink_end(&s);
    json_close(j);
    json_open(j, "total", '{');
    record_add_json(&s.record, &total, j);
    json_close(j);
    json_close(j);
}

static exit_code print_results(const store *s, err *e) {
    bool is_good = true;
    json j;
    if (results_settings.json)
        j = json_start(stdout, '[');
    for (size_t i = 0; i < s->count; i++) {
        file_origin sum = store_sum_origins(&s->folders[i]);
        print_folder(&s->folders[i], &sum, results_settings.json ? &j : NULL);
        is_good = is_good && sum.fresh == sum.rows && sum.dirty == 0 && sum.commit_count <= 1;
    }
    if (results_settings.json)
        json_close(&j);
    if (!store_admit_skipped(s, e))
        return e->code;
    return results_settings.check && !is_good ? EXIT_WRONG : EXIT_OK;
}

static exit_code run_results(const char *const *names, size_t count, err *e) {
    store s = {.count = 0};
    exit_code code = store_open(names, count, false, &s, e) ? print_results(&s, e) : e->code;
    store_free(&s);
    return code;
}

VERB(verb_results, "results", run_results, .names = "[DIR...]",
     .about = "show which stored numbers are stale because code has changed since",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Every row\n"
         "says in its column made_of what it was made of: kernel (with what it includes),\n"
         "description, code of the device, experiment, runner, each with a sum that comments and\n"
         "white space do not change. A row is stale if one of them has changed since, unknown if\n"
         "it does not say, dirty if its commit had uncommitted changes. Histories are left out.\n",
     VERB_OPTIONS(results_option_list), .reads_results = true);

/* claims ----------------------------------------------------------------------------------------- */

static struct {
    const char *claims, *csv;
    bool json, markdown;
} claims_settings;

static const option claims_option_list[] = {
    TEXT_OPTION("claims", &claims_settings.claims, "FILE.csv",
                "the claims (default results/claims.csv)"),
    FLAG_OPTION("json", &claims_settings.json, "print JSON instead of sentences"),
    FLAG_OPTION("md", &claims_settings.markdown, "print a Markdown table instead of sentences"),
    TEXT_OPTION("csv", &claims_settings.csv, "FILE", "also write the rows to a file"),
};

/* A row as people and programs read it. */
typedef struct {
    claim claim;
    const store_folder *folder;
    claim_answer answer;
    char published[96], measured[96];
    char folded[32]; /* "25 claims", where the row stands for several; else "" */
    const char *device, *verdict;
    bool is_emulated;
    double value; /* NaN: nothing was measured */
} row;

typedef struct {
    row *items;
    size_t count;
} row_list;

/* Of the table and of JSON; CSV has the number as people read it. */
static const field claim_fields[] = {
    FIELD(row, device, FIELD_TEXT, "device", "device"),
    FIELD(row, is_emulated, FIELD_FLAG, "emulated"),
    FIELD(row, claim.id, FIELD_TEXT, "id", "claim"),
    FIELD(row, claim.text, FIELD_TEXT, "text"),
    FIELD(row, claim.conditions, FIELD_TEXT, "conditions"),
    FIELD(row, claim.device, FIELD_TEXT, "published_for"),
    FIELD(row, published, FIELD_CHARS, "published", "published"),
    FIELD(row, measured, FIELD_CHARS, NULL, "measured here"),
    FIELD(row, claim.unit, FIELD_TEXT, "unit"),
    FIELD(row, value, FIELD_REAL, "measured"),
    FIELD(row, answer.doubt, FIELD_TEXT, "doubt"),
    FIELD(row, verdict, FIELD_TEXT, "verdict", "verdict"),
    FIELD(row, answer.reason, FIELD_CHARS, "reason", "reason"),
};
static const field csv_fields[] = {
    FIELD(row, device, FIELD_TEXT, "device"),
    FIELD(row, claim.id, FIELD_TEXT, "id"),
    FIELD(row, claim.text, FIELD_TEXT, "text"),
    FIELD(row, published, FIELD_CHARS, "published"),
    FIELD(row, measured, FIELD_CHARS, "measured"),
    FIELD(row, verdict, FIELD_TEXT, "verdict"),
    FIELD(row, answer.reason, FIELD_CHARS, "reason"),
};

static row make_row(const claim *c, const store_folder *f) {
    row r = {.claim = *c,
             .folder = f,
             .answer = claim_judge(c, f),
             .device = f->device,
             .is_emulated = f->emulated};
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
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s%s%s", s->count > 1 ? s->folders[f].name : "",
                 s->count > 1 ? ": " : "", text);
        table_print_text(stdout, table_find_limit(stdout), 0, sentence);
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
                 r->claim.text, r->claim.id);
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

static bool answer(const claim_list *claims, const store *s, err *e) {
    row_list l = make_rows(claims, s);
    bool ok = !claims_settings.csv || /* all rows: the sentences fold some */
              record_write_csv(&(record)RECORD(csv_fields), l.items, l.count, sizeof *l.items,
                               csv_new(), claims_settings.csv, e);
    if (claims_settings.json) {
        json j = json_start(stdout, '[');
        add_rows(&(sink){.record = RECORD(claim_fields), .json = &j}, &l);
        json_close(&j);
    } else if (claims_settings.markdown)
        add_rows(&(sink){.record = RECORD(claim_fields), .out = stdout, .is_markdown = true}, &l);
    else
        print_sentences(&l, claims, s);
    free(l.items);
    return ok;
}

static exit_code run_claims(const char *const *names, size_t count, err *e) {
    claim_list claims = {.count = 0};
    store s = {.count = 0};
    bool ok = claims_open(claims_settings.claims, names, count, &claims, &s, e) &&
              (s.count > 0 ||
               err_set(e, EXIT_INCONCLUSIVE,
                       "nothing has been measured yet: run `assay experiment all` first")) &&
              answer(&claims, &s, e) && store_admit_skipped(&s, e);
    claims_free(&claims);
    store_free(&s);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_claims, "claims", run_claims, .names = "[DIR...]",
     .about = "compare published numbers with what was measured here: does each claim hold?",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Nothing is\n"
         "measured: the numbers are metrics of `assay experiment` and errors of `assay check\n"
         "--csv`. A claim holds or does not hold on the chip it was published for; on another GPU\n"
         "it is \"measured on another chip\", with both numbers. It cannot be told where the\n"
         "spread of the samples reaches across the allowance, and cannot be measured where the\n"
         "device cannot answer: times of the software device decide nothing. Claims with the same\n"
         "such reason share a row of the table; --json and --csv list all of them. A number is\n"
         "marked stale if the code that gave it has changed since (see assay results). Exit\n"
         "status: 0 whatever the verdicts are.\n",
     VERB_OPTIONS(claims_option_list), .reads_results = true);

/* report ----------------------------------------------------------------------------------------- */

static struct { const char *claims, *out; } report_settings;

static const option report_option_list[] = {
    TEXT_OPTION("out", &report_settings.out, "FILE", "the page (default results/report.html)"),
    TEXT_OPTION("claims", &report_settings.claims, "FILE.csv",
                "the claims (default results/claims.csv)"),
};

static bool draw(const claim_list *claims, const store *s, err *e) {
    char root[PATH_MAX], path[PATH_MAX], folder[PATH_MAX];
    if (!root_find(root, sizeof root, e) || !path_join(folder, sizeof folder, e, root, "results") ||
        !path_join(path, sizeof path, e, folder, "report.html"))
        return false;
    const page_content c = {.store = s, .claims = claims};
    const char *out = report_settings.out ? report_settings.out : path;
    if (!report_settings.out)
        os_make_folder(folder, NULL); /* if it cannot be made, the page cannot be written */
    bool ok = page_write(&c, out, e);
    if (ok)
        printf("%s\n", out);
    return ok;
}

static exit_code run_report(const char *const *names, size_t count, err *e) {
    claim_list claims = {.count = 0};
    store s = {.count = 0};
    bool ok =
        claims_open(report_settings.claims, names, count, &claims, &s, e) && draw(&claims, &s, e);
    size_t failures = ok ? page_count_failures(&s) : 0;
    ok = ok && store_admit_skipped(&s, e);
    for (size_t i = 0; failures > 0 && i < s.skipped_count; i++)
        fprintf(stderr, "left out: %s\n", s.skipped[i]);
    if (failures > 0)
        ok = err_set(
            e, EXIT_WRONG,
            "%zu of the experiments, checks and validations failed: the top of the page says "
            "which",
            failures);
    claims_free(&claims);
    store_free(&s);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_report, "report", run_report, .names = "[DIR...]",
     .about = "show stored results as one HTML page: verdicts, claims, experiments, times",
     .notes =
         "DIR is a device's folder of results, or a folder of them (default results/). Nothing is\n"
         "measured: only CSV files and the charts beside them are read, and the same files give\n"
         "the same page. The page needs no network: charts, style and script are embedded; rows\n"
         "and samples stay in the CSV files, which it links to. Prints the path of the page,\n"
         "which is always written. A file that is malformed, or of another device than its\n"
         "folder, is left out: the top of the page and the message name it, and the exit status\n"
         "is 2. It is 1 if an experiment, a check or a validation failed; they are listed there\n"
         "too.\n",
     VERB_OPTIONS(report_option_list), .reads_results = true);

/* plot ------------------------------------------------------------------------------------------- */

static struct { const char *out; } plot_settings;

static const option plot_option_list[] = {
    TEXT_OPTION("out", &plot_settings.out, "DIR",
                "folder for the charts (default: beside the files, if they are in one folder)"),
};

/* The files of a name (without .csv), one per device. */
typedef struct {
    char name[256]; /* the longest that file systems have */
    char *files[PLOT_FILES];
    size_t count;
} chart;

typedef struct {
    chart *items;
    size_t count, room, seen;
    err first; /* of the files that cannot be read, which keep no other from being drawn */
} chart_list;

static bool add_to_chart(void *context, const char *path, err *e) {
    chart_list *l = context;
    chart new = {.name = ""};
    err why = {.code = EXIT_OK};
    const char *name = path_get_name(path);
    (void)e;
    if (!path_ends_with(name, ".csv") || path_ends_with(name, ".samples.csv"))
        return true;
    snprintf(new.name, sizeof new.name, "%.*s", (int)strlen(name) - 4, name);
    if (!plot_has_chart(new.name, path))
        return true;
    l->seen++;
    csv_file *file = csv_read(path, &why);
    csv_file_free(file);
    if (!file && l->first.code == EXIT_OK)
        l->first = why;
    size_t i = 0;
    while (i < l->count && strcmp(l->items[i].name, new.name) != 0)
        i++;
    if (file && i == l->count)
        *ARRAY_ADD(l->items, l->count, l->room) = new;
    if (file)
        l->items[i].files[l->items[i].count++] = strdup(path);
    return true;
}

/* Folders and files. */
static bool find_charts(chart_list *l, const char *const *paths, size_t count, err *e) {
    if (count == 0)
        return err_set(e, EXIT_USAGE,
                       "plot takes a folder of results, such as results/apple-m4, or a file");
    if (count > PLOT_FILES)
        return err_set(e, EXIT_USAGE, "a chart takes %d devices at most, not %zu", PLOT_FILES,
                       count);
    for (size_t i = 0; i < count; i++) {
        if (access(paths[i], F_OK) != 0)
            return err_set(e, EXIT_USAGE, "there is no folder or file %.160s", paths[i]);
        if (!os_is_folder(paths[i])) {
            add_to_chart(l, paths[i], e);
            continue;
        }
        publish_finish_all(paths[i]);
        if (!folder_walk(paths[i], ".csv", folder_skip_all, add_to_chart, l, e))
            return false;
    }
    return count == 1 || plot_settings.out ||
           err_set(e, EXIT_USAGE, "charts of %zu folders need an output folder: use --out DIR",
                   count);
}

/* All that can be drawn; then the first error. */
static bool draw_all(chart_list *l, const char *path, err *e) {
    char folder[PATH_MAX];
    err why;
    int length = os_is_folder(path) ? (int)strlen(path) + 1 : (int)(path_get_name(path) - path);
    length -= length > 1; /* without the slash before a name */
    if (!path_print(folder, sizeof folder, e, "%.*s%s", length, path, length == 0 ? "." : ""))
        return false;
    const char *out = plot_settings.out ? plot_settings.out : folder;
    for (const chart *c = l->items; c < l->items + l->count; c++) {
        const experiment *x = experiment_find(c->name);
        if (plot_draw(c->name, x ? x->finding : NULL, (const char *const *)c->files, c->count, out,
                      &why))
            printf("%s/%s.svg\n", out, c->name);
        else if (l->first.code == EXIT_OK)
            l->first = why;
    }
    if (l->first.code != EXIT_OK)
        *e = l->first;
    return l->first.code == EXIT_OK &&
           (l->seen > 0 || err_set(e, EXIT_USAGE,
                                   "%.160s has no results; `assay bench` and `assay experiment "
                                   "all` make them",
                                   path));
}

static exit_code run_plot(const char *const *paths, size_t count, err *e) {
    chart_list l = {.count = 0};
    bool ok = find_charts(&l, paths, count, e) && draw_all(&l, paths[0], e);
    for (size_t i = 0; i < l.count; i++)
        for (size_t k = 0; k < l.items[i].count; k++)
            free(l.items[i].files[k]);
    free(l.items);
    return ok ? EXIT_OK : e->code;
}

VERB(verb_plot, "plot", run_plot, .names = "DIR|FILE.csv...",
     .about = "redraw the charts of stored results: experiments, bench, check",
     .notes = "DIR is a folder of results, such as results/apple-m4. Each NAME.csv in it becomes a "
              "chart\n"
              "by plots/NAME.gp; results without a script of their own, such as those of bench, "
              "become\n"
              "one line per row. Several folders share the same charts, one series per device.\n"
              "check.csv, made by `assay check --csv DIR/check.csv`, becomes a chart of errors.\n",
     VERB_OPTIONS(plot_option_list), .reads_results = true);
