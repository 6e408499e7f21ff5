/* page: see page.h. Owns the frame, its parts that list devices and files, and what the others (part_*.c) share:
 * links, origins, charts. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

/* What parts share ---------------------------------------------------------------------------- */

void page_print_row(FILE *out, const char *format, const csv_file *f, size_t row) {
    for (const char *p = format; *p; p++) {
        if (*p != '{') {
            fputc(*p, out);
            continue;
        }
        const int is_number = p[1] == '#', length = (int)strcspn(p, "}");
        char title[64];
        snprintf(title, sizeof title, "%.*s", length - 1 - is_number, p + 1 + is_number);
        if (is_number)
            html_print_cell(out, csv_find_double(f, row, title), csv_find_text(f, row, title));
        else
            html(out, "%s", csv_find_text(f, row, title));
        p += length;
    }
}

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

static void print_file(const page *p, FILE *out, const store_folder *f, const char *name) {
    print_link(p, out, f, name, name);
}

void page_print_table_files(const page *p, FILE *out, const store_folder *f,
                            const store_file *file) {
    const char *name = strrchr(file->path, '/') + 1;
    char samples[272];
    print_file(p, out, f, name);
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

/* Dates are texts that sort. */
static void print_dates(const page *p, FILE *out, const store_folder *only) {
    const char *first = NULL, *last = NULL;
    for (size_t f = 0; f < p->store->count; f++)
        for (size_t i = 0; i < p->store->folders[f].count; i++) {
            const char *date = csv_get_meta(p->store->folders[f].files[i].csv, "date");
            if (!date || (only && only != &p->store->folders[f]))
                continue;
            first = !first || strcmp(date, first) < 0 ? date : first;
            last = !last || strcmp(date, last) > 0 ? date : last;
        }
    if (!first)
        fputs("at an unknown time", out);
    else if (strncmp(first, last, 10) == 0)
        html(out, "on %.10s", first);
    else
        html(out, "from %.10s to %.10s", first, last);
}

/* Devices ------------------------------------------------------------------------------------- */

/* Is there a folder before it of the same device? Then it has a few files of another model. */
static bool is_again(const page *p, const store_folder *f) {
    for (const store_folder *b = p->store->folders; b < f; b++)
        if (strcmp(b->device, f->device) == 0)
            return true;
    return false;
}

bool page_is_folded(const page *p, const store_folder *f) {
    bool is_any_real = false;
    for (size_t i = 0; i < p->store->count; i++)
        is_any_real = is_any_real || !p->store->folders[i].emulated;
    return (f->emulated && is_any_real) || is_again(p, f);
}

void page_start_device(const page *p, FILE *out, const store_folder *f) {
    bool is_folded = page_is_folded(p, f);
    if (p->store->count < 2)
        return;
    fputs(is_folded ? "<details class=\"emulated\"><summary>" : "<h3>", out);
    html(out, "%s", f->device);
    if (is_again(p, f))
        html(out, ", %s", path_get_name(f->path));
    fputs(f->emulated ? " <span class=\"badge unknown\">emulated</span>" : "", out);
    fputs(is_folded ? "</summary>\n" : "</h3>\n", out);
}

void page_end_device(const page *p, FILE *out, const store_folder *f) {
    if (p->store->count > 1 && page_is_folded(p, f))
        fputs("</details>\n", out);
}

/* Charts -------------------------------------------------------------------------------------- */

/* As an image: whatever the file contains cannot run, fetch or reach into the page. */
static void embed_chart(FILE *out, const store_folder *f, const char *what, const char *name) {
    char path[PATH_MAX + 160], label[400];
    err why = {.code = EXIT_OK};
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    snprintf(label, sizeof label, "Chart of %.120s on %.120s", what, f->device);
    char *text = os_read_file(path, &bytes, &why);
    if (text && (!strstr(text, "<svg") || !strstr(text, "</svg>")))
        err_set(&why, EXIT_USAGE, "%.160s is not a whole SVG file", path);
    if (why.text[0]) {
        page_print_note(out, why.text);
    } else {
        fputs("<div class=\"chart\">", out);
        html_print_svg(out, text, bytes, label);
        fputs("</div>", out);
    }
    free(text);
}

/* Of a device that is folded away only the links: its charts are as large as those that people look at. */
static void print_chart(const page *p, FILE *out, const store_folder *f, const char *what,
                        const char *name) {
    char png[272];
    fputs("<figure>", out);
    if (!page_is_folded(p, f))
        embed_chart(out, f, what, name);
    html(out, "<figcaption>%s: ", f->device);
    print_file(p, out, f, name);
    snprintf(png, sizeof png, "%.*s.png", (int)(strlen(name) - 4), name);
    if (store_has(f, png)) {
        fputs(", ", out);
        print_file(p, out, f, png);
    }
    fputs("</figcaption></figure>\n", out);
}

size_t page_print_charts(const page *p, FILE *out, const store_folder *f, const char *what) {
    const char *name;
    size_t count = 0;
    for (; (name = store_find_chart(f, what, count)); count++)
        print_chart(p, out, f, what, name);
    return count;
}

/* Where the numbers come from, what is missing, and the files ----------------------------------- */

/* All values of a key in a folder, each once. */
static void print_values(FILE *out, const store_folder *f, const char *key) {
    enum { SHOWN = 4 };
    const char *seen[SHOWN];
    size_t count = 0;
    bool is_cut = false;
    for (size_t i = 0; i < f->count; i++) {
        const char *value = csv_get_meta(f->files[i].csv, key);
        size_t k = 0;
        while (value && k < count && strcmp(seen[k], value) != 0)
            k++;
        if (!value || k < count)
            continue;
        if ((is_cut = count == SHOWN))
            break;
        html(out, count ? "<br>%s" : "%s", value);
        seen[count++] = value;
    }
    fputs(is_cut ? "<br>and others" : count == 0 ? "<span class=\"dim\">not said</span>" : "", out);
}

static void print_devices(const page *p, FILE *out) {
    static const char *const facts[][2] = {{"device", "device"},
                                           {"reached through", "api"},
                                           {"driver", "driver"},
                                           {"system", "os"},
                                           {"CPU", "cpu"},
                                           {"last-level cache", "cache"},
                                           {"kernel compiler", "compiler"},
                                           {"compiler of Assay", "host compiler"},
                                           {"model", "model"},
                                           {"commit", "commit"},
                                           {"version of Assay", "assay"},
                                           {"seed of inputs", "seed"},
                                           {"dates", "date"}};
    fputs(
        "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"Devices\"><table><tbody>\n",
        out);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        html(out, "<tr><th scope=\"row\">%s</th>", facts[i][0]);
        for (size_t f = 0; f < p->store->count; f++) {
            fputs("<td class=\"wide\">", out);
            if (strcmp(facts[i][1], "date") == 0)
                print_dates(p, out, &p->store->folders[f]);
            else
                print_values(out, &p->store->folders[f], facts[i][1]);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("<tr><th scope=\"row\">times are</th>", out);
    for (size_t f = 0; f < p->store->count; f++)
        fputs(store_find_meta(&p->store->folders[f], "virtual")
                  ? "<td>of a virtual GPU: not those of the GPU itself</td>"
              : p->store->folders[f].emulated ? "<td>emulated: a CPU runs the GPU's threads</td>"
                                              : "<td>of the device itself</td>",
              out);
    fputs("</tr>\n</tbody></table></div>\n", out);
}

/* What is missing: sections say it of what they would show. */
static size_t print_missing_experiments(const page *p, FILE *out, const store_folder *f) {
    size_t count = 0;
    for (size_t i = 0; i < p->content->experiment_count; i++) {
        const char *name = p->content->experiments[i];
        if (store_find(f, STORE_EXPERIMENT, name))
            continue;
        if (count++ == 0)
            html(out, "%s: ", f->device);
        html(out, count > 1 ? ", <code>%s</code>" : "<code>%s</code>", name);
    }
    return count;
}

static void print_missing(const page *p, FILE *out) {
    size_t count = 0;
    for (size_t i = 0; i < p->store->count; i++) {
        fputs("<p>", out);
        size_t here = print_missing_experiments(p, out, &p->store->folders[i]);
        fputs(here ? " were not run: <code>assay experiment NAME</code>.</p>\n" : "</p>\n", out);
        count += here;
    }
    fputs(count ? "" : "<p>Every experiment was run.</p>\n", out);
}

static void print_files(const page *p, FILE *out) {
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        html(out, "<details><summary>%s: %zu files</summary><ul>\n", f->device,
             f->count + f->other_count);
        for (size_t k = 0; k < f->count; k++) {
            fputs("<li>", out);
            page_print_table_files(p, out, f, &f->files[k]);
            page_print_staleness(out, &f->files[k]);
            fputs("</li>\n", out);
        }
        for (size_t k = 0; k < f->other_count; k++)
            if (!strstr(f->others[k], ".samples.csv")) {
                fputs("<li>", out);
                print_file(p, out, f, f->others[k]);
                fputs("</li>\n", out);
            }
        fputs("</ul></details>\n", out);
    }
}

/* Files of the frame -------------------------------------------------------------------------- */

static char *read_frame(const char *name, err *e) {
    char path[PATH_MAX];
    return os_join_home(path, sizeof path, e, name) ? os_read_file(path, NULL, e) : NULL;
}

/* Parts --------------------------------------------------------------------------------------- */

#define NOTHING "<p class=\"note\">Nothing has been measured yet.</p>\n"
#define RUN_FIRST                                                                                  \
    "<p class=\"note\">Nothing has been measured yet: no kernel was checked, validated or timed. " \
    "<code>./run_all.sh</code> does all of it and draws this page again.</p>\n"

static void print_date(const page *p, FILE *out) {
    fputs("Measured ", out);
    print_dates(p, out, NULL);
    fputs(".", out);
}

/* What stands in the frame for {{mark}}: a part of the page, or one of each device. */
static const struct {
    const char *mark;
    page_part *print;
    page_device_part *print_device;
    const char *empty; /* what stands there when there are no results at all; NULL: the same */
} parts[] = {
    {"title", page_print_title, NULL, "Assay report: nothing measured yet"},
    {"date", print_date, NULL, ""},
    {"failures", page_print_failures, NULL, NULL},
    {"doubts", page_print_doubts, NULL, ""},
    {"summary", page_print_summary, NULL, RUN_FIRST},
    {"token", NULL, page_print_token, NOTHING},
    {"claims", page_print_claims, NULL, NOTHING},
    {"experiments", page_print_experiments, NULL, NOTHING},
    {"right", NULL, page_print_right, NOTHING},
    {"times", NULL, page_print_times, NOTHING},
    {"profile", NULL, page_print_profile, NOTHING},
    {"devices", print_devices, NULL, NOTHING},
    {"missing", print_missing, NULL, RUN_FIRST},
    {"files", print_files, NULL, NOTHING},
};

static void print_each_device(const page *p, FILE *out, page_device_part *print) {
    for (const store_folder *f = p->store->folders; f < p->store->folders + p->store->count; f++) {
        page_start_device(p, out, f);
        print(p, out, f);
        page_end_device(p, out, f);
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
    if (p->store->count == 0 && parts[i].empty)
        fputs(parts[i].empty, out);
    else if (parts[i].print)
        parts[i].print(p, out);
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

static void add_name(page *p, const char *name) {
    bool is_there = false;
    for (size_t f = 0; f < p->store->count; f++)
        is_there = is_there || store_find(&p->store->folders[f], STORE_EXPERIMENT, name);
    for (size_t i = 0; i < p->name_count; i++)
        is_there = is_there && strcmp(p->names[i], name) != 0;
    if (is_there)
        *ARRAY_ADD(p->names, p->name_count, p->name_room) = name;
}

static void list_names(page *p) {
    for (size_t i = 0; i < p->content->experiment_count; i++)
        add_name(p, p->content->experiments[i]);
    for (size_t f = 0; f < p->store->count; f++)
        for (size_t i = 0; i < p->store->folders[f].count; i++)
            add_name(p, p->store->folders[f].files[i].name);
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
    page p = {.content = c, .store = c->store};
    if (!find_folder(path, p.folder, e))
        return false;
    memory_file *text = memory_file_new();
    list_names(&p);
    bool ok = print_page(&p, text->out, e);
    free(p.names);
    if (ok)
        return memory_file_write(text, path, e);
    memory_file_free(text);
    return false;
}
