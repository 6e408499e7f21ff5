/* part_summary: the head of the page: what is stale, what failed, five numbers per device, and one chart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "page.h"

void page_print_title(const page *p, FILE *out) {
    if (p->store->count == 1)
        html(out, "Assay report: %s", p->store->folders[0].device);
    else
        html(out, "Assay report: %zu devices", p->store->count);
}

/* On top: what of the page is not about the code as it is now. */
void page_print_doubts(const page *p, FILE *out) {
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        file_origin sum = store_sum_origins(f);
        char warning[320];
        file_origin_get_warning(&sum, warning, sizeof warning);
        if (!warning[0])
            continue;
        fputs(sum.fresh == sum.rows && sum.dirty == 0 ? "<p>"
                                                      : "<p class=\"note\"><strong>Not all numbers "
                                                        "are of the code as it is now.</strong> ",
              out);
        html(out, "%s: %s.</p>\n", f->device, warning);
    }
}

/* What failed --------------------------------------------------------------------------------- */

static void print_folder_failures(FILE *out, const store_folder *f) {
    page_verdict v = page_count(f);
    for (const store_file *file = f->files; file < f->files + f->count; file++)
        if (store_get_failure(file))
            html(out, "<li>%s: the experiment <a href=\"#x-%s\">%s</a> failed: %s</li>\n",
                 f->device, file->name, file->name, store_get_failure(file));
    if (v.wrong > 0)
        html(out, "<li>%s: %zu of %zu cases are <a href=\"#right\">wrong</a></li>\n", f->device,
             v.wrong, v.checked);
    if (v.findings + v.failed > 0)
        html(
            out,
            "<li>%s: validation has <a href=\"#right\">%zu finding%s</a>, %zu case%s failed</li>\n",
            f->device, v.findings, v.findings == 1 ? "" : "s", v.failed, v.failed == 1 ? "" : "s");
}

size_t page_count_failures(const store *s) {
    size_t count = 0;
    for (const store_folder *f = s->folders; f < s->folders + s->count; f++) {
        page_verdict v = page_count(f);
        count += (size_t)(v.wrong > 0) + (size_t)(v.findings + v.failed > 0);
        for (size_t k = 0; k < f->count; k++)
            count += store_get_failure(&f->files[k]) != NULL;
    }
    return count;
}

/* Files that could not be read, experiments that did not end well, kernels that are wrong. Nothing where nothing
 * did. */
void page_print_failures(const page *p, FILE *out) {
    const store *s = p->store;
    if (page_count_failures(s) + s->skipped_count == 0)
        return;
    fputs("<section id=\"failures\" class=\"alarm\"><h2>What failed</h2>\n<ul>\n", out);
    for (size_t i = 0; i < s->skipped_count; i++)
        html(out, "<li>A file was left out: %s</li>\n", s->skipped[i]);
    for (size_t i = 0; i < s->count; i++)
        print_folder_failures(out, &s->folders[i]);
    fputs("</ul></section>\n", out);
}

/* Five numbers -------------------------------------------------------------------------------- */

/* What colours a tile. */
static const char *get_kind(bool is_known, bool is_bad) {
    return !is_known ? "" : is_bad ? " bad" : " good";
}

static void print_text_tile(FILE *out, const char *kind, const char *title, const char *link,
                            const char *value, const char *about, const store_file *file) {
    html(out, "<a class=\"tile%s\" href=\"#%s\"><span>%s</span><b>%s</b><small>%s", kind, link,
         title, value, about);
    if (file)
        page_print_staleness(out, file);
    fputs("</small></a>\n", out);
}

static void print_tile(FILE *out, const char *title, const char *link, double rate,
                       const char *about, const store_file *file) {
    char text[HTML_NUMBER];
    html_format_number(rate >= 1000 ? round(rate) : rate, text);
    print_text_tile(out, "", title, link, text, about, file);
}

/* The fastest test of `assay model bench` of a kind ("pp", "tg") from an empty context. NaN: none. */
static double find_rate(const store_folder *f, const char *kind, const store_file **where,
                        size_t *row) {
    double most = NAN;
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; r < csv_count_rows(f->files[i].csv); r++) {
            const char *test = csv_find_text(f->files[i].csv, r, "variant");
            if (f->files[i].kind != STORE_BENCH || strncmp(test, kind, 2) != 0 ||
                strchr(test, '@') || strcmp(csv_find_text(f->files[i].csv, r, "op"), "model") != 0)
                continue;
            double rate = atof(test + 2) * 1e9 / csv_find_double(f->files[i].csv, r, "wall_ns");
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
                 csv_find_text(file->csv, row, "variant"), csv_find_text(file->csv, row, "model"));
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

static bool has_shares(const store_file *file) {
    return file->kind == STORE_BENCH ||
           (file->kind == STORE_EXPERIMENT && strcmp(file->name, "roofline") == 0);
}

/* The largest share of an op and a format; NULL: of all. Rows above the roof were not measured right. *where gets
 * the file and *row the row. */
static double find_share(const store_folder *f, const char *op, const char *format,
                         const store_file **where, size_t *row) {
    double most = NAN;
    for (const store_file *file = f->files; file < f->files + f->count; file++)
        for (size_t r = 0; has_shares(file) && r < csv_count_rows(file->csv); r++) {
            double share = csv_find_double(file->csv, r, "pct_roof");
            if (isnan(share) || share <= most || share > 100 ||
                (op && (strcmp(csv_find_text(file->csv, r, "op"), op) != 0 ||
                        strcmp(csv_find_text(file->csv, r, "format"), format) != 0)))
                continue;
            most = share;
            *where = file;
            *row = r;
        }
    return most;
}

static void print_share(FILE *out, const store_folder *f) {
    const store_file *file = NULL;
    size_t row = 0;
    char value[32] = "-", about[240] = "nothing was timed";
    double share = find_share(f, NULL, NULL, &file, &row);
    if (file) {
        snprintf(value, sizeof value, "%.0f %%", share);
        snprintf(about, sizeof about, "%.100s %.60s", csv_find_text(file->csv, row, "kernel"),
                 csv_find_text(file->csv, row, "shape"));
    }
    print_text_tile(out, "", "Best share of the roof", "times", value, about, file);
}

static void print_right(FILE *out, const store_folder *f) {
    page_verdict v = page_count(f);
    bool is_known = v.checked > 0;
    char value[64] = "-";
    if (is_known)
        snprintf(value, sizeof value, "%zu of %zu", v.checked - v.wrong, v.checked);
    print_text_tile(out, get_kind(is_known, v.wrong > 0), "Cases right", "right", value,
                    is_known ? "agree with the reference" : "nothing was checked",
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
                if (strcmp(csv_find_text(f->files[i].csv, r, "fate"), fates[k]) == 0) {
                    *caught += k > 0;
                    ++*count;
                }
    return *count > 0;
}

static void print_bugs(FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_VALIDATE, NULL);
    const char *canaries = file ? csv_get_meta(file->csv, "canaries") : NULL;
    page_verdict v = page_count(f);
    size_t caught, count, planted;
    char value[64] = "-", about[160] = "nothing was validated";
    if (count_mutants(f, &caught, &count))
        snprintf(value, sizeof value, "%zu of %zu", caught, count);
    else if (canaries && sscanf(canaries, "%zu of %zu", &caught, &planted) == 2)
        snprintf(value, sizeof value, "%zu of %zu", caught, planted);
    if (file)
        snprintf(about, sizeof about, "and %zu in the kernels, in %zu cases", v.findings,
                 v.validated);
    else if (count > 0)
        snprintf(about, sizeof about, "mutants of the kernels");
    print_text_tile(out, get_kind(file, v.findings + v.failed > 0), "Planted bugs found", "right",
                    value, about, file);
}

static void print_device(FILE *out, const page *p, const store_folder *f) {
    const char *os = store_find_meta(f, "os"), *cpu = store_find_meta(f, "cpu");
    claim_counts c = claims_count(p->content->claims, f);
    char text[256];
    if (f->emulated)
        html(out,
             "<details class=\"card emulated\"%s><summary>%s <span class=\"badge unknown\">emulated"
             "</span></summary><p>Times are those of a CPU that emulates a GPU: they say "
             "<strong>nothing about a GPU</strong>.</p>\n",
             page_is_folded(p, f) ? "" : " open", f->device);
    else
        html(out, "<div><h2>%s</h2>\n", f->device);
    fputs("<div class=\"tiles\">\n", out);
    print_rate(out, f, "Decode", "tg", "decode", "tok_s");
    print_rate(out, f, "Prefill", "pp", "prefill", "tok_s_best");
    print_share(out, f);
    print_right(out, f);
    print_bugs(out, f);
    claim_format_counts(&c, text, sizeof text);
    html(out,
         "</div><p class=\"dim\">%s, %s. Published <a href=\"#claims\">claims</a>: %s.</p></%s>\n",
         cpu ? cpu : "CPU not named", os ? os : "system not named", text,
         f->emulated ? "details" : "div");
}

/* The chart ----------------------------------------------------------------------------------- */

enum { BARS = 14 };

typedef struct {
    const char *op, *format;
    double share; /* the largest of all devices */
} bar;

typedef struct {
    bar *items;
    size_t count, room;
} bar_list;

/* Ops and formats of a folder's rows, each once. */
static void add_bars(const store_folder *f, bar_list *l) {
    for (size_t i = 0; i < f->count; i++)
        for (size_t r = 0; has_shares(&f->files[i]) && r < csv_count_rows(f->files[i].csv); r++) {
            const csv_file *c = f->files[i].csv;
            bar b = {csv_find_text(c, r, "op"), csv_find_text(c, r, "format"),
                     csv_find_double(c, r, "pct_roof")};
            size_t k = 0;
            while (k < l->count &&
                   (strcmp(l->items[k].op, b.op) != 0 || strcmp(l->items[k].format, b.format) != 0))
                k++;
            if (isnan(b.share) || b.share > 100)
                continue;
            if (k == l->count)
                *ARRAY_ADD(l->items, l->count, l->room) = b;
            l->items[k].share = fmax(l->items[k].share, b.share);
        }
}

static int compare_bars(const void *a, const void *b) {
    double x = ((const bar *)a)->share, y = ((const bar *)b)->share;
    return (x < y) - (x > y);
}

static void print_bar(FILE *out, const page *p, const bar *b, bool is_named) {
    html(out, "<tr><th scope=\"row\">%s %s</th><td>", b->op, b->format);
    for (size_t f = 0; f < p->store->count; f++) {
        const store_file *file = NULL;
        size_t row = 0;
        const store_folder *folder = &p->store->folders[f];
        double share =
            page_is_folded(p, folder) ? NAN : find_share(folder, b->op, b->format, &file, &row);
        if (!file)
            continue;
        html(out, "<span class=\"bar d%zu\" style=\"width:%.1f%%\"></span><small>%.3g %% %s", f % 4,
             0.6 * share, share, csv_find_text(file->csv, row, "kernel"));
        if (is_named)
            html(out, ", %s", folder->device);
        fputs("</small><br>", out);
    }
    fputs("</td></tr>\n", out);
}

static void print_shares(FILE *out, const page *p) {
    bar_list bars = {.count = 0};
    size_t devices = 0;
    for (size_t f = 0; f < p->store->count; f++)
        if (!page_is_folded(p, &p->store->folders[f])) {
            add_bars(&p->store->folders[f], &bars);
            devices++;
        }
    if (bars.count == 0)
        return;
    fputs(
        "<table class=\"bars\"><caption>How near the kernels are to the roof: the best of each op, "
        "in percent of the fastest plain read, copy or arithmetic of the same "
        "run</caption><tbody>\n",
        out);
    qsort(bars.items, bars.count, sizeof *bars.items, compare_bars);
    for (size_t i = 0; i < bars.count && i < BARS; i++)
        print_bar(out, p, &bars.items[i], devices > 1);
    fputs("</tbody></table>\n", out);
    free(bars.items);
}

/* Devices before emulated ones. */
void page_print_summary(const page *p, FILE *out) {
    for (int emulated = 0; emulated < 2; emulated++) {
        for (size_t i = 0; i < p->store->count; i++)
            if (p->store->folders[i].emulated == (emulated == 1) &&
                (emulated || !page_is_folded(p, &p->store->folders[i])))
                print_device(out, p, &p->store->folders[i]);
        if (emulated == 0)
            print_shares(out, p);
    }
}
