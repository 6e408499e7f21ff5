/* cmd_results: the verbs that read stored results: `assay results`, are they still those of the code as it is now?
 * `assay claims`, published numbers against them; `assay report`, all of them as one page; `assay plot`, their
 * charts drawn again, of one folder or of several devices in the same charts. */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
        "exit status 1 if a row is stale, of unknown origin or of uncommitted changes, or if "
        "a folder has rows of several commits"),
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
    char root[PATH_MAX], all[PATH_MAX];
    const char *folder = all;
    store s = {.count = 0};
    bool ok = root_find(root, sizeof root, e) &&
              path_print(all, sizeof all, e, "%s/results", root) &&
              store_read(count ? names : &folder, count ? count : 1, false, &s, e);
    exit_code code = ok ? print_results(&s, e) : e->code;
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
        snprintf(sentence, sizeof sentence, "%s%s%s", s->count > 1 ? s->folders[f].device : "",
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

/* The verb ------------------------------------------------------------------------------------ */

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
     VERB_OPTIONS(claims_option_list), .reads_results = true);

/* report ----------------------------------------------------------------------------------------- */

static struct { const char *claims, *out; } report_settings;

static const option report_option_list[] = {
    TEXT_OPTION("out", &report_settings.out, "FILE", "the page (default results/report.html)"),
    TEXT_OPTION("claims", &report_settings.claims, "FILE.csv",
                "the claims (default results/claims.csv)"),
};

static bool draw(const claim_list *claims, const store *s, err *e) {
    char home[PATH_MAX], root[PATH_MAX], path[PATH_MAX + 32], folder[PATH_MAX];
    if (!os_find_home(home, sizeof home, e) || !root_find(root, sizeof root, e))
        return false;
    const char **names = array_new(experiment_count + 1, sizeof *names);
    for (size_t i = 0; i < experiment_count; i++)
        names[i] = experiments[i]->name;
    page_content c = {
        .store = s, .claims = claims, .experiments = names, .experiment_count = experiment_count};
    snprintf(path, sizeof path, "%s/results/report.html", root);
    const char *out = report_settings.out ? report_settings.out : path;
    if (!report_settings.out &&
        snprintf(folder, sizeof folder, "%s/results", root) < (int)sizeof folder)
        os_make_folder(folder, NULL); /* if it cannot be made, the page cannot be written */
    bool ok = page_write(&c, home, out, e);
    if (ok)
        printf("%s\n", out);
    free(names);
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
         "DIR is a device's folder of results, or a folder of them (default results/). Nothing\n"
         "is measured: only CSV files and the charts beside them are read, and the same files\n"
         "give the same page. The page needs no network: charts, style and script are embedded;\n"
         "rows and samples stay in the CSV files, which it links to.\n"
         "Prints the path of the page, which is always written. A file that is malformed, or of\n"
         "another device than its folder, is left out: the top of the page and the message name\n"
         "it, and the exit status is 2. It is 1 if an experiment, a check or a validation\n"
         "failed; they are listed there too.\n",
     VERB_OPTIONS(report_option_list), .reads_results = true);

/* plot ------------------------------------------------------------------------------------------- */

static struct { const char *out; } plot_settings;

static const option plot_option_list[] = {
    TEXT_OPTION("out", &plot_settings.out, "DIR",
                "folder for the charts (default: beside the files, if they are in one folder)"),
};

enum { NAME = 256 }; /* the longest that file systems have */

/* What to draw: folders and files, and the names (without .csv) found in them. */
typedef struct {
    const char *const *paths;
    size_t count;
    char (*names)[NAME];
    size_t name_count, name_room;
} request;

static void add_name(request *r, const char *file) {
    char name[NAME];
    if (!path_ends_with(file, ".csv") || path_ends_with(file, ".samples.csv"))
        return;
    snprintf(name, sizeof name, "%.*s", (int)strlen(file) - 4, file);
    for (size_t i = 0; i < r->name_count; i++)
        if (strcmp(r->names[i], name) == 0)
            return;
    memcpy(ARRAY_ADD(r->names, r->name_count, r->name_room), name, sizeof name);
}

static bool add_names(request *r, const char *path, err *e) {
    struct dirent **found = NULL;
    struct stat s;
    if (stat(path, &s) != 0)
        return err_set(e, EXIT_USAGE, "there is no folder or file %.160s", path);
    if (!S_ISDIR(s.st_mode)) {
        add_name(r, path_get_name(path));
        return true;
    }
    publish_finish_all(path);
    int count = scandir(path, &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        add_name(r, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    return count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", path);
}

static bool read_request(request *r, err *e) {
    if (r->count == 0)
        return err_set(e, EXIT_USAGE,
                       "plot takes a folder of results, such as results/apple-m4, or a file");
    if (r->count > PLOT_FILES)
        return err_set(e, EXIT_USAGE, "a chart takes %d devices at most, not %zu", PLOT_FILES,
                       r->count);
    for (size_t i = 0; i < r->count; i++)
        if (!add_names(r, r->paths[i], e))
            return false;
    return r->count == 1 || plot_settings.out ||
           err_set(e, EXIT_USAGE, "charts of %zu folders need an output folder: use --out DIR",
                   r->count);
}

/* The files of a name, one per device; how many. */
static size_t find_files(const request *r, const char *name, char (*paths)[PATH_MAX]) {
    size_t found = 0;
    char file[NAME + 8];
    snprintf(file, sizeof file, "%s.csv", name);
    for (size_t i = 0; i < r->count; i++) {
        struct stat s;
        bool is_file = strcmp(path_get_name(r->paths[i]), file) == 0 && !os_is_folder(r->paths[i]);
        int n = is_file ? snprintf(paths[found], PATH_MAX, "%s", r->paths[i])
                        : snprintf(paths[found], PATH_MAX, "%s/%s", r->paths[i], file);
        found += n > 0 && n < PATH_MAX && stat(paths[found], &s) == 0 &&
                 plot_has_chart(name, paths[found]);
    }
    return found;
}

static void choose_folder(const request *r, char *folder, size_t size) {
    snprintf(folder, size, "%s", plot_settings.out ? plot_settings.out : r->paths[0]);
    if (plot_settings.out || os_is_folder(folder))
        return;
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    else
        snprintf(folder, size, ".");
}

/* Files that cannot be read keep no other from being drawn. */
static size_t keep_sound(char (*paths)[PATH_MAX], size_t found, const char **files, err *first) {
    size_t kept = 0;
    for (size_t f = 0; f < found; f++) {
        err why = {.code = EXIT_OK};
        csv_file *file = csv_read(paths[f], &why);
        if (file)
            files[kept++] = paths[f];
        else if (first->code == EXIT_OK)
            *first = why;
        csv_file_free(file);
    }
    return kept;
}

/* All that can be drawn; then the first error. */
static bool draw_all(const request *r, err *e) {
    static char paths[PLOT_FILES][PATH_MAX], folder[PATH_MAX];
    const char *files[PLOT_FILES];
    err first = {.code = EXIT_OK}, why;
    size_t drawn = 0, seen = 0;
    choose_folder(r, folder, sizeof folder);
    for (size_t i = 0; i < r->name_count; i++) {
        size_t found = find_files(r, r->names[i], paths);
        size_t sound = keep_sound(paths, found, files, &first);
        seen += found;
        if (sound == 0)
            continue;
        const experiment *x = experiment_find(r->names[i]);
        if (plot_draw(r->names[i], x ? x->finding : NULL, files, sound, folder, &why)) {
            printf("%s/%s.svg\n", folder, r->names[i]);
            drawn++;
        } else if (first.code == EXIT_OK)
            first = why;
    }
    if (first.code != EXIT_OK) {
        *e = first;
        return false;
    }
    return drawn + seen > 0 ||
           err_set(e, EXIT_USAGE,
                   "%.160s has no results; `assay bench` and `assay experiment all` "
                   "make them",
                   r->paths[0]);
}

static exit_code run_plot(const char *const *paths, size_t count, err *e) {
    request r = {.paths = paths, .count = count};
    bool ok = read_request(&r, e) && draw_all(&r, e);
    free(r.names);
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
