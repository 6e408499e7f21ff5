/* page: see page.h. Owns the frame; its parts are printed by part_*.c. */
#include "page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "page_parts.h"

/* Files of the frame -------------------------------------------------------------------------- */

static char *read_frame(const char *home, const char *name, err *e) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/report/%s", home, name);
    return os_read_file(path, NULL, e);
}

static bool print_frame_file(const char *home, const char *name, FILE *out, err *e) {
    char *text = read_frame(home, name, e);
    if (text)
        fputs(text, out);
    free(text);
    return text != NULL;
}

/* Parts --------------------------------------------------------------------------------------- */

#define NOTHING "<p class=\"note\">Nothing has been measured yet.</p>\n"
#define RUN_FIRST                                                                                  \
    "<p class=\"note\">Nothing has been measured yet: no kernel was checked, validated or timed. " \
    "<code>./run_all.sh</code> does all of it and draws this page again.</p>\n"

static const struct {
    const char *mark;
    page_part *print;
    const char *empty; /* what stands there when there are no results at all; NULL: the same */
} parts[] = {
    {"title", page_print_title, "Assay report: nothing measured yet"},
    {"date", page_print_date, ""},
    {"failures", page_print_failures, NULL},
    {"doubts", page_print_doubts, ""},
    {"summary", page_print_summary, RUN_FIRST},
    {"token", page_print_token, NOTHING},
    {"claims", page_print_claims, NOTHING},
    {"experiments", page_print_experiments, NOTHING},
    {"right", page_print_right, NOTHING},
    {"times", page_print_times, NOTHING},
    {"profile", page_print_profile, NOTHING},
    {"devices", page_print_devices, NOTHING},
    {"missing", page_print_missing, RUN_FIRST},
    {"files", page_print_files, NOTHING},
};

static bool print_part(page *p, const char *home, const char *mark, FILE *out, err *e) {
    if (strcmp(mark, "css") == 0)
        return print_frame_file(home, "page.css", out, e);
    if (strcmp(mark, "js") == 0)
        return print_frame_file(home, "page.js", out, e);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(mark, parts[i].mark) == 0) {
            if (p->store->count > 0 || !parts[i].empty)
                return parts[i].print(p, out, e);
            fputs(parts[i].empty, out);
            return true;
        }
    return err_set(e, EXIT_CANNOT, "report/page.html has an unknown placeholder '%.40s'", mark);
}

static bool print_page(page *p, const char *home, FILE *out, err *e) {
    char *frame = read_frame(home, "page.html", e);
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
        ok = print_part(p, home, name, out, e);
        at = end + 2;
    }
    free(frame);
    return ok;
}

/* The page ------------------------------------------------------------------------------------ */

static bool has_name(const page *p, const char *name) {
    for (size_t i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i], name) == 0)
            return true;
    return false;
}

static void add_name(page *p, const char *name) {
    bool is_there = false;
    for (size_t f = 0; f < p->store->count; f++)
        is_there = is_there || store_find(&p->store->folders[f], STORE_EXPERIMENT, name);
    if (!is_there || has_name(p, name))
        return;
    p->names = realloc(p->names, (p->name_count + 1) * sizeof *p->names);
    assert(p->names);
    p->names[p->name_count++] = name;
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
    char copy[PATH_MAX];
    if (!path_print(copy, sizeof copy, e, "%s", path))
        return false;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = 0;
    const char *name = slash ? copy : ".";
    return realpath(name, folder) != NULL ||
           err_set(e, EXIT_USAGE, "there is no folder %.160s to write the page to", name);
}

bool page_write(const page_content *c, const char *home, const char *path, err *e) {
    page p = {.content = c, .store = c->store};
    char *text = NULL;
    size_t bytes = 0;
    if (!find_folder(path, p.folder, e))
        return false;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    list_names(&p);
    bool ok = print_page(&p, home, out, e);
    bool is_whole = fclose(out) == 0;
    if (ok && !is_whole)
        ok = err_set(e, EXIT_CANNOT, "no memory for the page %.160s", path);
    ok = ok && os_write_file(path, text, bytes, e);
    free(text);
    free(p.names);
    return ok;
}
