/* part_summary: the head of the page: what is stale, what failed, four numbers per device, and how near its
 * kernels are to the roof. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "page.h"

void page_print_title(const page *p, FILE *out) {
    size_t devices = 0;
    for (size_t i = 0; i < p->store->count; i++)
        devices += !page_is_again(p, &p->store->folders[i]);
    if (devices == 1)
        html(out, "Assay report: %s", p->store->folders[0].device);
    else
        html(out, devices ? "Assay report: %zu devices" : "Assay report: nothing measured yet",
             devices);
}

/* On top: what of the page is not about the code as it is now. */
void page_print_doubts(const page *p, FILE *out) {
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        file_origin sum = store_sum_origins(f);
        char warning[320], name[PAGE_NAME];
        file_origin_get_warning(&sum, warning, sizeof warning);
        if (!warning[0])
            continue;
        const bool is_fine = sum.fresh == sum.rows && sum.dirty == 0;
        static const char doubt[] =
            "<strong>Not all numbers are of the code as it is now.</strong> ";
        fprintf(out, "<p%s>%s", is_fine ? "" : " class=\"note\"", is_fine ? "" : doubt);
        html(out, "%s: %s.</p>\n", page_get_name(p, f, name), warning);
    }
}

/* What failed --------------------------------------------------------------------------------- */

/* Prints them, if `out` is not NULL, and counts them. */
static size_t list_failures(FILE *out, const store_folder *f) {
    const page_verdict v = page_count(f);
    size_t count = (size_t)(v.wrong > 0) + (size_t)(v.findings + v.failed > 0);
    for (const store_file *file = f->files; file < f->files + f->count; file++) {
        const char *why = store_get_failure(file);
        count += why != NULL;
        if (out && why)
            html(out, "<li>%s: the experiment <a href=\"#x-%s\">%s</a> failed: %s</li>\n",
                 f->device, file->name, file->name, why);
    }
    if (out && v.wrong > 0)
        html(out, "<li>%s: %zu of %zu cases are <a href=\"#right\">wrong</a></li>\n", f->device,
             v.wrong, v.checked);
    if (out && v.findings + v.failed > 0)
        html(
            out,
            "<li>%s: validation has <a href=\"#right\">%zu finding%s</a>, %zu case%s failed</li>\n",
            f->device, v.findings, v.findings == 1 ? "" : "s", v.failed, v.failed == 1 ? "" : "s");
    return count;
}

size_t page_count_failures(const store *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        count += list_failures(NULL, &s->folders[i]);
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
        list_failures(out, &s->folders[i]);
    fputs("</ul></section>\n", out);
}

/* Four numbers -------------------------------------------------------------------------------- */

/* What colours a tile. */
static const char *get_kind(bool is_known, bool is_bad) {
    return !is_known ? "" : is_bad ? " bad" : " good";
}

static void print_tile(FILE *out, const char *kind, const char *title, const char *link,
                       const char *value, const char *about, const store_file *file) {
    html(out, "<a class=\"tile%s\" href=\"#%s\"><span>%s</span><b>%s</b><small>%s", kind, link,
         title, value, about);
    if (file)
        page_print_staleness(out, file);
    fputs("</small></a>\n", out);
}

double page_get_rate(const char *test, double wall_ns) {
    return strlen(test) > 2 ? atof(test + 2) * 1e9 / wall_ns : NAN;
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
            double rate = page_get_rate(test, csv_find_double(f->files[i].csv, r, "wall_ns"));
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
    char link[80] = "times", about[200] = "not measured", text[HTML_NUMBER];
    double rate = find_rate(f, kind, &file, &row);
    if (file) {
        snprintf(about, sizeof about, "tok/s, %.20s, %.120s",
                 csv_find_text(file->csv, row, "variant"), csv_find_text(file->csv, row, "model"));
    } else if ((file = store_find(f, STORE_EXPERIMENT, experiment))) {
        const store_metric *m = store_find_metric(file, metric);
        rate = m ? m->value : NAN;
        snprintf(link, sizeof link, "x-%s", experiment);
        snprintf(about, sizeof about, "tok/s, %.160s", csv_find_meta(file->csv, "model"));
    }
    html_format_number(rate >= 1000 ? round(rate) : rate, text);
    print_tile(out, "", title, link, text, about, file);
}

/* The row of the kernel that is nearest to its roof at an op, format and shape. */
typedef struct {
    const csv_file *csv;
    size_t row;
    double percent;
} share;

typedef struct {
    share *items; /* the nearest first */
    size_t count, room;
} share_list;

static const char *get_text(const share *s, const char *title) {
    return csv_find_text(s->csv, s->row, title);
}

static double get_double(const share *s, const char *title) {
    return csv_find_double(s->csv, s->row, title);
}

/* The one that is nearer. */
static const char *get_roof(const share *s) {
    return get_double(s, "gflop_s") / get_double(s, "roof_gflop_s") >
                   get_double(s, "gb_s") / get_double(s, "roof_gb_s")
               ? "arithmetic"
               : "read bandwidth";
}

/* One token and several are different work: products of several read each weight once for all of them. */
static bool is_same_work(const share *a, const share *b) {
    return strcmp(get_text(a, "op"), get_text(b, "op")) == 0 &&
           strcmp(get_text(a, "format"), get_text(b, "format")) == 0 &&
           (get_double(a, "batch") > 1) == (get_double(b, "batch") > 1);
}

static int compare_shares(const void *a, const void *b) {
    double x = ((const share *)a)->percent, y = ((const share *)b)->percent;
    return (x < y) - (x > y);
}

/* Rows above the roof were not measured right. The caller frees the items. */
static share_list list_shares(const store_folder *f) {
    share_list l = {.items = array_new(1, sizeof *l.items), .room = 1};
    for (const store_file *file = f->files; file < f->files + f->count; file++)
        for (size_t r = 0; (file->kind == STORE_BENCH || strcmp(file->name, "roofline") == 0) &&
                           r < csv_count_rows(file->csv);
             r++) {
            const share s = {file->csv, r, csv_find_double(file->csv, r, "pct_roof")};
            size_t k = 0;
            while (k < l.count &&
                   (!is_same_work(&l.items[k], &s) ||
                    strcmp(get_text(&l.items[k], "shape"), get_text(&s, "shape")) != 0))
                k++;
            if (s.percent <= 100 && k == l.count)
                *ARRAY_ADD(l.items, l.count, l.room) = s;
            else if (s.percent <= 100 && s.percent > l.items[k].percent)
                l.items[k] = s;
        }
    qsort(l.items, l.count, sizeof *l.items, compare_shares);
    return l;
}

/* All shapes of the work of item i: a bar as long as the best, dark up to the worst. */
static void print_bar(FILE *out, const share_list *l, size_t i) {
    const share *best = &l->items[i], *worst = best;
    size_t shapes = 0;
    bool is_split = false; /* there are rows of one token and of several */
    for (const share *s = l->items; s < l->items + l->count; s++) {
        const bool is_same = is_same_work(s, best);
        is_split |=
            strcmp(get_text(s, "op"), get_text(best, "op")) == 0 && get_double(s, "batch") > 1;
        shapes += is_same;
        worst = is_same ? s : worst;
    }
    fputs("<tr><th scope=\"row\">", out);
    html_print_name(out, get_text(best, "op"));
    html(out, " %s%s", get_text(best, "format"),
         !is_split                       ? ""
         : get_double(best, "batch") > 1 ? ", several tokens"
                                         : ", one token");
    html(
        out,
        "</th><td><span class=\"bar d0\" style=\"width:%.1f%%\"></span><span class=\"bar d0 more\" "
        "style=\"width:%.1f%%\"></span><b>%.3g %%</b> of %s<br><small>",
        0.6 * worst->percent, 0.6 * (best->percent - worst->percent), best->percent,
        get_roof(best));
    html_print_name(out, get_text(best, "kernel"));
    html(out, " %s", get_text(best, "shape"));
    if (worst != best)
        html(out, "; worst of %zu shapes: %.3g %% of %s at %s", shapes, worst->percent,
             get_roof(worst), get_text(worst, "shape"));
    fputs("</small></td></tr>\n", out);
}

static void print_shares(FILE *out, const share_list *l) {
    size_t bars = 0;
    if (l->count == 0)
        return;
    fputs(
        "<table class=\"bars\"><caption>How near the kernels are to the roof: the fastest kernel "
        "of "
        "each shape, in percent of the fastest plain read or arithmetic of the same run, whichever "
        "is nearer. Light: the best shape; dark: the worst.</caption><tbody>\n",
        out);
    for (size_t i = 0; i < l->count && bars < 16; i++) {
        size_t k = 0;
        while (k < i && !is_same_work(&l->items[k], &l->items[i]))
            k++;
        if (k == i) {
            bars++;
            print_bar(out, l, i);
        }
    }
    fputs("</tbody></table>\n", out);
}

static void print_right(FILE *out, const store_folder *f) {
    page_verdict v = page_count(f);
    bool is_known = v.checked > 0;
    char value[64] = "-";
    if (is_known)
        snprintf(value, sizeof value, "%zu of %zu", v.checked - v.wrong, v.checked);
    print_tile(out, get_kind(is_known, v.wrong > 0), "Cases right", "right", value,
               is_known ? "agree with the reference" : "nothing was checked",
               store_find(f, STORE_CHECK, NULL));
}

static void print_bugs(FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_VALIDATE, NULL);
    const page_verdict v = page_count(f);
    size_t caught, planted;
    char value[64] = "-", about[160] = "nothing was validated";
    if (file && sscanf(csv_find_meta(file->csv, "canaries"), "%zu of %zu", &caught, &planted) == 2)
        snprintf(value, sizeof value, "%zu of %zu", caught, planted);
    if (file)
        snprintf(about, sizeof about, "and %zu in the kernels, in %zu cases", v.findings,
                 v.validated);
    print_tile(out, get_kind(file, v.findings + v.failed > 0), "Planted bugs found", "right", value,
               about, file);
}

void page_print_summary(const page *p, FILE *out, const store_folder *f) {
    const char *os = store_find_meta(f, "os"), *cpu = store_find_meta(f, "cpu");
    const claim_counts c = claims_count(p->content->claims, f);
    share_list shares;
    char text[256];
    if (page_is_again(p, f))
        return;
    shares = list_shares(f);
    if (f->emulated)
        fputs("<p>Times are those of a CPU that emulates a GPU: they say <strong>nothing about a "
              "GPU</strong>.</p>\n",
              out);
    fputs("<div class=\"tiles\">\n", out);
    print_rate(out, f, "Decode", "tg", "decode", "tok_s");
    print_rate(out, f, "Prefill", "pp", "prefill", "tok_s_best");
    print_right(out, f);
    print_bugs(out, f);
    claim_format_counts(&c, text, sizeof text);
    html(out, "</div><p class=\"dim\">%s, %s. Published <a href=\"#claims\">claims</a>: %s.</p>\n",
         cpu ? cpu : "CPU not named", os ? os : "system not named", text);
    print_shares(out, &shares);
    free(shares.items);
}
