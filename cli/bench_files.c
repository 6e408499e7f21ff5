#include "bench_files.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/freshness.h"

bool bench_files_find_rows(const char *out, const char *name, const device_facts *f, char *path,
                           size_t size, err *e) {
    char folder[PATH_MAX];
    if (out)
        return path_print(path, size, e, "%s", out);
    return results_find_folder(f->name, folder, sizeof folder, e) &&
           path_print(path, size, e, "%s/%s.csv", folder, name);
}

/* Baselines --------------------------------------------------------------------------------- */

static bool get_folder(const char *rows, char *folder, size_t size, err *e) {
    const char *slash = strrchr(rows, '/');
    int length = slash ? (int)(slash + 1 - rows) : 0;
    return path_print(folder, size, e, "%.*sbaselines", length, rows);
}

static bool is_name(const char *text) {
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
            return false;
    return isalnum((unsigned char)text[0]) && strlen(text) <= 64;
}

bool bench_files_find_named(const char *rows, const char *name, char *path, size_t size, err *e) {
    char folder[PATH_MAX];
    if (!is_name(name))
        return err_set(e, EXIT_USAGE,
                       "a baseline is named with letters, digits, '-', '_' and '.', not '%.60s'",
                       name);
    return get_folder(rows, folder, sizeof folder, e) &&
           path_print(path, size, e, "%s/%s.csv", folder, name);
}

/* "main, before" */
static void list_names(const char *rows, char *text, size_t size) {
    char folder[PATH_MAX];
    struct dirent **found = NULL;
    size_t used = 0;
    int count = get_folder(rows, folder, sizeof folder, NULL)
                    ? scandir(folder, &found, NULL, alphasort)
                    : 0;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        const char *name = found[i]->d_name;
        size_t length = strlen(name);
        bool is_rows = length > 4 && name[0] != '.' && strcmp(name + length - 4, ".csv") == 0 &&
                       !strstr(name, ".samples.csv");
        if (is_rows && used + length < size)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                                     (int)length - 4, name);
        free(found[i]);
    }
    free(found);
}

static bool is_csv(const char *text) {
    size_t length = strlen(text);
    return length > 4 && strcmp(text + length - 4, ".csv") == 0;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

bool bench_files_find_baseline(const char *rows, const char *text, char *path, size_t size,
                               bool *is_folder, err *e) {
    *is_folder = os_is_folder(text);
    if (!*is_folder && !is_csv(text) && strchr(text, '/'))
        return err_set(e, EXIT_USAGE,
                       "there is no folder of kernels %.140s; a base that has none yet is an empty "
                       "folder",
                       text);
    if (*is_folder || is_csv(text)) {
        if (!path_print(path, size, e, "%s", text))
            return false;
    } else {
        char names[120];
        if (!bench_files_find_named(rows, text, path, size, e))
            return false;
        list_names(rows, names, sizeof names);
        if (access(path, F_OK) != 0)
            return err_set(e, EXIT_USAGE,
                           "no baseline is called '%.40s'%s%s; `assay bench --save NAME` makes one",
                           text, names[0] ? "; there are " : "", names);
    }
    return *is_folder || !is_same_file(path, rows) ||
           err_set(e, EXIT_USAGE,
                   "the baseline %.100s is the file that this run writes: keep it under a name "
                   "(bench --save NAME), or write to another file with --out",
                   text);
}

bool bench_files_read_baseline(const char *path, const char *called, const device_facts *f,
                               results_list *out, err *e) {
    if (!results_read(path, out, e))
        return false;
    const char *was = results_meta_find(&out->meta, "device");
    return strcmp(was, f->name) == 0 ||
           err_set(e, EXIT_USAGE, "the baseline %.80s is from another device: '%.60s', not '%.60s'",
                   called, was, f->name);
}

results *bench_files_open(const char *path, const results_meta *m, err *e) {
    char moved[PATH_MAX];
    results *file = results_merge(path, m, moved, sizeof moved, e);
    if (file && moved[0])
        fprintf(stderr, "%s was measured under other conditions: it is %s now\n", path, moved);
    return file;
}

/* Resuming ---------------------------------------------------------------------------------- */

static bool is_true(const result_row *r, const results_meta *m, const device_facts *f,
                    freshness *fresh) {
    char changes[80];
    /* A part that has no name here (?) may have changed. */
    return r->gpu.count > 0 && !strchr(r->made_of, '?') && strcmp(r->device, f->name) == 0 &&
           strcmp(r->math, math_mode_get_name(f->math)) == 0 &&
           freshness_is_same_program(r->build, r->commit, m) &&
           freshness_judge(fresh, r->made_of, changes, sizeof changes) == ORIGIN_FRESH;
}

bool bench_files_drop_finished(const char *rows, const results_meta *m, const device_facts *f,
                               bench_list *l, size_t *kept, err *e) {
    results_list there;
    size_t all = l->count;
    *kept = 0;
    if (access(rows, F_OK) != 0)
        return true;
    if (!results_read(rows, &there, e))
        return false;
    freshness *fresh = freshness_new(e);
    bool ok = fresh && results_check_resume(rows, &there.meta, m, e);
    l->count = 0;
    for (size_t i = 0; ok && i < all; i++) {
        const result_case *row = results_list_find(&there, l->items[i].name);
        if (!row || !is_true(&row->row, m, f, fresh))
            l->items[l->count++] = l->items[i];
    }
    freshness_free(fresh);
    results_list_free(&there);
    *kept = all - l->count;
    return ok;
}
