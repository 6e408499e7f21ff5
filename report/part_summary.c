/* part_summary: the head of the page: what is stale, five numbers per device, and one chart. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/results.h"
#include "page_parts.h"

bool page_print_title(page *p, FILE *out, err *e) {
    (void)e;
    fputs("Assay report: ", out);
    if (p->store->count == 1)
        html_print(out, p->store->folders[0].device);
    else
        fprintf(out, "%zu devices", p->store->count);
    return true;
}

bool page_print_date(page *p, FILE *out, err *e) {
    (void)e;
    fputs("Measured ", out);
    page_print_dates(p, out, NULL);
    fputs(".", out);
    return true;
}

/* On top: what of the page is not about the code as it is now. */
bool page_print_doubts(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        file_origin sum = store_sum_origins(f);
        char warning[320];
        file_origin_get_warning(&sum, warning, sizeof warning);
        if (!warning[0])
            continue;
        fputs(sum.fresh == sum.rows && sum.dirty == 0 ? "<p>"
                                                      : "<p class=\"note\"><strong>Not all numbers "
                                                        "are of the code as it is now.</strong> ",
              out);
        html_printf(out, "%s: %s.", f->device, warning);
        fputs("</p>\n", out);
    }
    return true;
}

/* Five numbers -------------------------------------------------------------------------------- */

static void start_tile(FILE *out, const char *kind, const char *title, const char *link) {
    fprintf(out, "<a class=\"tile%s\" href=\"#%s\"><span>%s</span><b>", kind, link, title);
}

static void end_tile(FILE *out, const char *about, const store_file *file) {
    fputs("</b><small>", out);
    html_print(out, about);
    if (file)
        page_print_staleness(out, file);
    fputs("</small></a>\n", out);
}

static void print_tile(FILE *out, const char *title, const char *link, double rate,
                       const char *about, const store_file *file) {
    char text[48];
    start_tile(out, "", title, link);
    html_format_number(rate >= 1000 ? round(rate) : rate, text, sizeof text);
    html_print(out, text);
    end_tile(out, about, file);
}

/* The fastest test of `assay model bench` of a kind ("pp", "tg") from an empty context. NaN: none. */
static double find_rate(const store_folder *f, const char *kind, const store_file **where,
                        size_t *row) {
    double most = NAN;
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; r < csv_count_rows(f->files[i].csv); r++) {
            const char *test = page_get_cell(f->files[i].csv, r, "variant");
            if (f->files[i].kind != STORE_BENCH || strncmp(test, kind, 2) != 0 ||
                strchr(test, '@') || strcmp(page_get_cell(f->files[i].csv, r, "op"), "model") != 0)
                continue;
            double rate = atof(test + 2) * 1e9 / page_get_number(f->files[i].csv, r, "wall_ns");
            if (!(rate <= most)) {
                most = rate;
                *where = &f->files[i];
                *row = r;
            }
        }
    return most;
}

/* Of `assay model bench`; without it, of an experiment, whose runs are shorter. */
static void print_rate(FILE *out, const store_folder *f, const char *title, const char *kind,
                       const char *experiment, const char *metric) {
    const store_file *file = NULL;
    size_t row = 0;
    char link[80], about[200];
    double rate = find_rate(f, kind, &file, &row);
    if (file) {
        snprintf(about, sizeof about, "tok/s, %.20s, %.120s",
                 page_get_cell(file->csv, row, "variant"), page_get_cell(file->csv, row, "model"));
        print_tile(out, title, "times", rate, about, file);
        return;
    }
    file = store_find(f, STORE_EXPERIMENT, experiment);
    const store_metric *m = file ? store_find_metric(file, metric) : NULL;
    const char *model = file ? csv_get_meta(file->csv, "model") : NULL;
    snprintf(link, sizeof link, "x-%s", experiment);
    snprintf(about, sizeof about, "tok/s, %.160s", model ? model : "a model");
    print_tile(out, title, file ? link : "missing", m ? m->value : NAN, m ? about : "not measured",
               file);
}

/* The largest share of a file; rows above the roof were not measured right. */
static double find_best(const store_file *file, const char *op, const char *format, size_t *best) {
    double most = NAN;
    for (size_t r = 0; r < csv_count_rows(file->csv); r++) {
        double share = page_get_number(file->csv, r, "pct_roof");
        if (isnan(share) || share <= most || share > 100 ||
            (op && (strcmp(page_get_cell(file->csv, r, "op"), op) != 0 ||
                    strcmp(page_get_cell(file->csv, r, "format"), format) != 0)))
            continue;
        most = share;
        *best = r;
    }
    return most;
}

static bool has_shares(const store_file *file) {
    return file->kind == STORE_BENCH ||
           (file->kind == STORE_EXPERIMENT && strcmp(file->name, "roofline") == 0);
}

/* Of an op and a format; NULL: of all. *where gets the file and *row the row. */
static double find_share(const store_folder *f, const char *op, const char *format,
                         const store_file **where, size_t *row) {
    double most = NAN;
    for (size_t i = 0; i < f->count; i++) {
        size_t best = 0;
        double share = has_shares(&f->files[i]) ? find_best(&f->files[i], op, format, &best) : NAN;
        if (!isnan(share) && !(share <= most)) {
            most = share;
            *where = &f->files[i];
            *row = best;
        }
    }
    return most;
}

static void print_share(FILE *out, const store_folder *f) {
    const store_file *file = NULL;
    size_t row = 0;
    char about[240] = "nothing was timed";
    double share = find_share(f, NULL, NULL, &file, &row);
    start_tile(out, "", "Best share of the roof", "times");
    if (file) {
        fprintf(out, "%.0f %%", share);
        snprintf(about, sizeof about, "%.100s %.60s", page_get_cell(file->csv, row, "kernel"),
                 page_get_cell(file->csv, row, "shape"));
    } else
        fputs("-", out);
    end_tile(out, about, file);
}

static void print_right(FILE *out, const store_folder *f) {
    page_verdict v = page_count_checks(f);
    bool is_known = v.is_known && v.cases > 0;
    start_tile(out, !is_known ? "" : v.wrong ? " bad" : " good", "Cases right", "right");
    if (is_known)
        fprintf(out, "%zu of %zu", v.cases - v.wrong, v.cases);
    else
        fputs("-", out);
    end_tile(out, is_known ? "agree with the reference" : "nothing was checked",
             store_find(f, STORE_CHECK, NULL));
}

/* The rows of `assay mutants`: how many changed something, and were caught. False: there are none. */
static bool count_mutants(const store_folder *f, size_t *caught, size_t *count) {
    static const char *const fates[] = {"survived", "check", "validate", "crash", "time-out"};
    *caught = *count = 0;
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; f->files[i].kind == STORE_OTHER && r < csv_count_rows(f->files[i].csv);
             r++)
            for (size_t k = 0; k < sizeof fates / sizeof *fates; k++)
                if (strcmp(page_get_cell(f->files[i].csv, r, "fate"), fates[k]) == 0) {
                    *caught += k > 0;
                    ++*count;
                }
    return *count > 0;
}

static void print_bugs(FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_VALIDATE, NULL);
    const char *canaries = file ? csv_get_meta(file->csv, "canaries") : NULL;
    page_verdict v = page_count_validations(f);
    size_t findings = page_count_findings(f), caught, count, planted;
    char about[160] = "nothing was validated";
    start_tile(out,
               !file                ? ""
               : findings + v.wrong ? " bad"
                                    : " good",
               "Planted bugs found", "right");
    if (count_mutants(f, &caught, &count))
        fprintf(out, "%zu of %zu", caught, count);
    else if (canaries && sscanf(canaries, "%zu of %zu", &caught, &planted) == 2)
        fprintf(out, "%zu of %zu", caught, planted);
    else
        fputs("-", out);
    if (file)
        snprintf(about, sizeof about, "and %zu in the kernels, in %zu cases", findings, v.cases);
    else if (count > 0)
        snprintf(about, sizeof about, "mutants of the kernels");
    end_tile(out, about, file);
}

static void print_device(FILE *out, const page *p, const store_folder *f) {
    const char *os = store_find_meta(f, "os"), *cpu = store_find_meta(f, "cpu");
    claim_counts c = claims_count(p->content->claims, f);
    char text[256];
    fprintf(out, f->emulated ? "<details class=\"card emulated\"%s><summary>" : "<div%s><h2>",
            f->emulated && !page_is_folded(p, f) ? " open" : "");
    html_print(out, f->device);
    if (f->emulated)
        fputs(" <span class=\"badge unknown\">emulated</span></summary><p>Times are those of a CPU "
              "that emulates a GPU: they say <strong>nothing about a GPU</strong>.</p>\n",
              out);
    fputs(f->emulated ? "" : "</h2>\n", out);
    fputs("<div class=\"tiles\">\n", out);
    print_rate(out, f, "Decode", "tg", "decode", "tok_s");
    print_rate(out, f, "Prefill", "pp", "prefill", "tok_s_best");
    print_share(out, f);
    print_right(out, f);
    print_bugs(out, f);
    fputs("</div><p class=\"dim\">", out);
    html_printf(out, "%s, %s. Published ", cpu ? cpu : "CPU not named",
                os ? os : "system not named");
    claim_format_counts(&c, text, sizeof text);
    fputs("<a href=\"#claims\">claims</a>: ", out);
    html_print(out, text);
    fputs(f->emulated ? ".</p></details>\n" : ".</p></div>\n", out);
}

/* The chart ----------------------------------------------------------------------------------- */

enum { BARS = 14 };

typedef struct {
    const char *op, *format;
    double share; /* the largest of all devices */
} bar;

/* Ops and formats of a folder's rows, each once; the list grows. */
static size_t add_bars(const store_folder *f, bar **bars, size_t count) {
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; has_shares(&f->files[i]) && r < csv_count_rows(f->files[i].csv); r++) {
            const csv_file *c = f->files[i].csv;
            bar b = {page_get_cell(c, r, "op"), page_get_cell(c, r, "format"),
                     page_get_number(c, r, "pct_roof")};
            size_t k = 0;
            while (k < count &&
                   (strcmp((*bars)[k].op, b.op) != 0 || strcmp((*bars)[k].format, b.format) != 0))
                k++;
            if (isnan(b.share) || b.share > 100)
                continue;
            if (k == count) {
                *bars = realloc(*bars, ++count * sizeof **bars);
                assert(*bars);
                (*bars)[k] = b;
            }
            (*bars)[k].share = fmax((*bars)[k].share, b.share);
        }
    return count;
}

static int compare_bars(const void *a, const void *b) {
    double x = ((const bar *)a)->share, y = ((const bar *)b)->share;
    return (x < y) - (x > y);
}

static void print_bar(FILE *out, const page *p, const bar *b, bool is_named) {
    fputs("<tr><th scope=\"row\">", out);
    html_printf(out, "%s %s", b->op, b->format);
    fputs("</th><td>", out);
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = NULL;
        size_t row = 0;
        const store_folder *folder = &p->store->folders[f];
        double share =
            page_is_folded(p, folder) ? NAN : find_share(folder, b->op, b->format, &file, &row);
        if (!file)
            continue;
        fprintf(out, "<span class=\"bar d%zu\" style=\"width:%.1f%%\"></span><small>%.3g %% ",
                f % 4, 0.6 * share, share);
        html_print(out, page_get_cell(file->csv, row, "kernel"));
        if (is_named)
            html_printf(out, ", %s", folder->device);
        fputs("</small><br>", out);
    }
    fputs("</td></tr>\n", out);
}

static void print_shares(FILE *out, const page *p) {
    bar *bars = NULL;
    size_t count = 0, devices = 0;
    for (size_t f = 0; f < p->store->count; f++)
        if (!page_is_folded(p, &p->store->folders[f])) {
            count = add_bars(&p->store->folders[f], &bars, count);
            devices++;
        }
    if (count == 0)
        return;
    fputs(
        "<table class=\"bars\"><caption>How near the kernels are to the roof: the best of each op, "
        "in percent of the fastest plain read, copy or arithmetic of the same "
        "run</caption><tbody>\n",
        out);
    qsort(bars, count, sizeof *bars, compare_bars);
    for (size_t i = 0; i < count && i < BARS; i++)
        print_bar(out, p, &bars[i], devices > 1);
    fputs("</tbody></table>\n", out);
    free(bars);
}

/* Devices before emulated ones. */
bool page_print_summary(page *p, FILE *out, err *e) {
    (void)e;
    for (int emulated = 0; emulated < 2; emulated++) {
        for (size_t i = 0; i < p->store->count; i++)
            if (p->store->folders[i].emulated == (emulated == 1) &&
                (emulated || !page_is_folded(p, &p->store->folders[i])))
                print_device(out, p, &p->store->folders[i]);
        if (emulated == 0)
            print_shares(out, p);
    }
    return true;
}
