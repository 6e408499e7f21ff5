/* page: see page.h. Owns the frame, its parts that list devices and files, and what the others (part_*.c) share:
 * links, origins, charts. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

/* What parts share ---------------------------------------------------------------------------- */

void page_print_note(FILE *out, const char *sentence) {
    fputs("<p class=\"note\">", out);
    html_print_prose(out, sentence);
    fputs("</p>\n", out);
}

/* Files --------------------------------------------------------------------------------------- */

static void print_link(const page *p, FILE *out, const store_folder *f, const char *name,
                       const char *text) {
    char path[PATH_MAX + 160], whole[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    html_print_link(out, p->folder, realpath(path, whole) ? whole : path, text);
}

void page_print_table_files(const page *p, FILE *out, const store_folder *f,
                            const store_file *file) {
    const char *name = strrchr(file->path, '/') + 1;
    char samples[272];
    print_link(p, out, f, name, name);
    fprintf(out, " (%zu rows)", csv_count_rows(file->csv));
    snprintf(samples, sizeof samples, "%.*s.samples.csv", (int)strlen(name) - 4, name);
    if (store_has(f, samples)) {
        fputs(", ", out);
        print_link(p, out, f, samples, "samples");
    }
}

void page_print_staleness(FILE *out, const store_file *file) {
    if (file->origin.stale + file->origin.unknown > 0)
        html(out, " <span class=\"badge bad\">%s</span>",
             file->origin.stale > 0 ? "stale" : "origin unknown");
}

void page_print_origin(FILE *out, const store_file *file) {
    const file_origin *o = &file->origin;
    char warning[320];
    if (o->rows == 0)
        return;
    file_origin_get_warning(o, warning, sizeof warning);
    html(out, "<p class=\"dim\">Commit %.*s%s, measured on %.10s.", (int)strcspn(o->commits, " "),
         o->commits, o->commit_count > 1 ? " and others" : "", o->first);
    page_print_staleness(out, file);
    html(out, " %s</p>\n", warning);
}

void page_end_source(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    page_print_origin(out, file);
}

/* When a device was last measured (NULL: any of them). Dates are texts that sort. */
static const char *find_last_date(const store *s, const char *device) {
    const char *last = "";
    for (const store_folder *f = s->folders; f < s->folders + s->count; f++)
        for (size_t i = 0; i < f->count && (!device || strcmp(f->device, device) == 0); i++) {
            const char *date = csv_find_meta(f->files[i].csv, "date");
            last = strcmp(date, last) > 0 ? date : last;
        }
    return last;
}

/* Devices ------------------------------------------------------------------------------------- */

bool page_is_again(const page *p, const store_folder *f) {
    for (const store_folder *b = p->store->folders; b < f; b++)
        if (strcmp(b->device, f->device) == 0)
            return true;
    return false;
}

static bool is_beside_gpu(const page *p, const store_folder *f) {
    size_t i = 0;
    while (f->emulated && i < p->store->count && p->store->folders[i].emulated)
        i++;
    return f->emulated && i < p->store->count;
}

bool page_is_folded(const page *p, const store_folder *f) {
    return (is_beside_gpu(p, f) && f != p->store->folders) || page_is_again(p, f);
}

const char *page_get_name(const page *p, const store_folder *f, char text[PAGE_NAME]) {
    const bool is_again = page_is_again(p, f);
    snprintf(text, PAGE_NAME, "%s%s%s", f->device, is_again ? ", " : "", is_again ? f->name : "");
    return text;
}

void page_start_device(const page *p, FILE *out, const store_folder *f) {
    bool is_folded = page_is_folded(p, f);
    char name[PAGE_NAME];
    if (p->store->count < 2)
        return;
    fputs(is_folded ? "<details class=\"emulated\"><summary>" : "<h3>", out);
    html(out, "%s", page_get_name(p, f, name));
    fputs(f->emulated ? " <span class=\"badge unknown\">emulated</span>" : "", out);
    fputs(is_folded ? "</summary>\n" : "</h3>\n", out);
}

void page_end_device(const page *p, FILE *out, const store_folder *f) {
    if (p->store->count > 1 && page_is_folded(p, f))
        fputs("</details>\n", out);
}

/* Charts -------------------------------------------------------------------------------------- */

/* As an image: whatever the file contains cannot run, fetch or reach into the page. Those of plots/ get the
 * style that makes them dark where the page is, others stay as they are. */
static void embed_chart(const page *p, FILE *out, const store_folder *f, const char *what,
                        const char *name) {
    char path[PATH_MAX + 160], label[400];
    err why = {.code = EXIT_OK};
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    snprintf(label, sizeof label, "Chart of %.120s on %.120s", what, f->device);
    char *text = os_read_file(path, NULL, &why);
    if (text && (!strstr(text, "<svg") || !strstr(text, "</svg>")))
        err_set(&why, EXIT_USAGE, "%.160s is not a whole SVG file", path);
    if (why.text[0]) {
        page_print_note(out, why.text);
    } else {
        const bool is_ours = strstr(text, "id=\"gnuplot_canvas\"") && strstr(text, "<defs>");
        fputs("<div class=\"chart\">", out);
        html_print_svg(out, text, is_ours ? p->chart_style : NULL, label);
        fputs("</div>", out);
    }
    free(text);
}

/* Of a device that is folded away only the links: its charts are as large as those that people look at. */
size_t page_print_charts(const page *p, FILE *out, const store_folder *f, const char *what) {
    const char *name;
    char device[PAGE_NAME];
    size_t count = 0;
    for (; (name = store_find_chart(f, what, count)); count++) {
        fputs("<figure>", out);
        if (!is_beside_gpu(p, f) && !page_is_folded(p, f)) /* else a link: charts are large */
            embed_chart(p, out, f, what, name);
        html(out, "<figcaption>%s: ", page_get_name(p, f, device));
        print_link(p, out, f, name, name);
        fputs("</figcaption></figure>\n", out);
    }
    return count;
}

/* Where the numbers come from, and the files ---------------------------------------------------- */

static void print_devices(const page *p, FILE *out) {
    static const char *const facts[][2] = {{"reached through", "api"},
                                           {"driver", "driver"},
                                           {"system", "os"},
                                           {"CPU", "cpu"},
                                           {"last-level cache", "cache"},
                                           {"kernel compiler", "compiler"},
                                           {"compiler of Assay", "host compiler"},
                                           {"commit", "commit"},
                                           {"version of Assay", "assay"},
                                           {"seed of inputs", "seed"}};
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        if (page_is_again(p, f))
            continue;
        html(out, "<h3>%s</h3>\n<dl class=\"facts\">", f->device);
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
            const char *value = store_find_meta(f, facts[i][1]);
            html(out, "<dt>%s</dt><dd>%s</dd>\n", facts[i][0], value ? value : "not said");
        }
        html(out, "<dt>times are</dt><dd>%s</dd></dl>\n",
             store_find_meta(f, "virtual") ? "of a virtual GPU: not those of the GPU itself"
             : f->emulated                 ? "emulated: a CPU runs the GPU's threads"
                                           : "of the device itself");
    }
}

static void print_files(const page *p, FILE *out) {
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        html(out, "<details><summary>%s: %zu files</summary><p>\n", f->path,
             f->count + f->other_count);
        for (size_t k = 0; k < f->count; k++) {
            page_print_table_files(p, out, f, &f->files[k]);
            fputs("<br>\n", out);
        }
        fputs("</p></details>\n", out);
    }
}

/* Files of the frame -------------------------------------------------------------------------- */

static char *read_frame(const char *name, err *e) {
    char path[PATH_MAX];
    return os_join_home(path, sizeof path, e, name) ? os_read_file(path, NULL, e) : NULL;
}

/* Parts --------------------------------------------------------------------------------------- */

static void print_date(const page *p, FILE *out) {
    const char *date = find_last_date(p->store, NULL);
    if (p->store->count > 0)
        html(out, "Last measured on %.10s.", *date ? date : "an unknown day");
}

/* What stands in the frame for {{mark}}: a part of the page, or one of each device. */
static const struct {
    const char *mark;
    page_part *print;
    page_device_part *print_device;
} parts[] = {
    {"title", page_print_title, NULL},
    {"date", print_date, NULL},
    {"failures", page_print_failures, NULL},
    {"changes", page_print_changes, NULL},
    {"doubts", page_print_doubts, NULL},
    {"summary", NULL, page_print_summary},
    {"right", NULL, page_print_right},
    {"times", NULL, page_print_times},
    {"profile", NULL, page_print_profile},
    {"token", NULL, page_print_token},
    {"rivals", NULL, page_print_rivals},
    {"experiments", page_print_experiments, NULL},
    {"claims", page_print_claims, NULL},
    {"devices", print_devices, NULL},
    {"files", print_files, NULL},
};

static void print_each_device(const page *p, FILE *out, page_device_part *print) {
    static const char note[] = "<p class=\"note\">";
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        memory_file *part = memory_file_new();
        print(p, part->out, f);
        fflush(part->out);
        /* What a second folder of a device lacks, the first may have. */
        if (!page_is_again(p, f) ||
            (*part->text && strncmp(part->text, note, sizeof note - 1) != 0)) {
            page_start_device(p, out, f);
            fputs(part->text, out);
            page_end_device(p, out, f);
        }
        memory_file_free(part);
    }
}

static bool print_part(const page *p, const char *mark, FILE *out, err *e) {
    if (strcmp(mark, "css") == 0 || strcmp(mark, "js") == 0) {
        char *text = read_frame(*mark == 'c' ? "report/page.css" : "report/page.js", e);
        if (text)
            fputs(text, out);
        free(text);
        return text != NULL;
    }
    size_t i = 0;
    while (i < sizeof parts / sizeof *parts && strcmp(mark, parts[i].mark) != 0)
        i++;
    if (i == sizeof parts / sizeof *parts)
        return err_set(e, EXIT_CANNOT,
                       "report/page.html asks for {{%.40s}}, and the page has no such part", mark);
    if (parts[i].print)
        parts[i].print(p, out);
    else if (p->store->count == 0)
        fputs("<p class=\"note\">Nothing has been measured yet: <code>./run_all.sh</code> checks, "
              "validates "
              "and times the kernels and draws this page again.</p>\n",
              out);
    else
        print_each_device(p, out, parts[i].print_device);
    return true;
}

static bool print_page(const page *p, FILE *out, err *e) {
    char *frame = read_frame("report/page.html", e);
    bool ok = frame != NULL;
    for (const char *at = frame; ok && *at;) {
        const char *mark = strstr(at, "{{"), *end = mark ? strstr(mark, "}}") : NULL;
        if (!end) {
            fputs(at, out);
            break;
        }
        char name[48];
        fwrite(at, 1, (size_t)(mark - at), out);
        snprintf(name, sizeof name, "%.*s", (int)(end - mark - 2), mark + 2);
        ok = print_part(p, name, out, e);
        at = end + 2;
    }
    free(frame);
    return ok;
}

/* The page ------------------------------------------------------------------------------------ */

/* The device that was measured last comes first: it is what the reader has just run. */
static void sort_folders(page *p) {
    const store *s = p->content->store;
    p->sorted = *s;
    p->sorted.folders = array_new(s->count + 1, sizeof *s->folders);
    for (size_t i = 0, k; i < s->count; i++) {
        const store_folder *f = &s->folders[i];
        for (k = i; k > 0; k--) {
            const store_folder *before = &p->sorted.folders[k - 1];
            int order = strcmp(find_last_date(s, f->device), find_last_date(s, before->device));
            if (order < 0 || (order == 0 && strcmp(before->device, f->device) <= 0))
                break;
            p->sorted.folders[k] = *before;
        }
        p->sorted.folders[k] = *f;
    }
}

/* The folder of a file that may not exist yet. */
static bool find_folder(const char *path, char *folder, err *e) {
    char given[PATH_MAX];
    const int length = (int)(path_get_name(path) - path);
    return path_print(given, sizeof given, e, "%.*s.", length, path) &&
           (realpath(given, folder) ||
            err_set(e, EXIT_USAGE, "there is no folder %.*s to write the page to",
                    length < 160 ? length : 160, path));
}

bool page_write(const page_content *c, const char *path, err *e) {
    page p = {.content = c};
    if (!find_folder(path, p.folder, e) ||
        !(p.chart_style = read_frame("report/page.chart.css", e)))
        return false;
    memory_file *text = memory_file_new();
    sort_folders(&p);
    p.store = &p.sorted;
    bool ok = print_page(&p, text->out, e);
    free(p.sorted.folders);
    free(p.chart_style);
    if (ok)
        return memory_file_write(text, path, e);
    memory_file_free(text);
    return false;
}
