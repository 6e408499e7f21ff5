#include "store.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/measure/publish.h"
#include "harness/measure/results.h"

/* Files --------------------------------------------------------------------------------------- */

/* A table is of the first kind whose columns it has; those before the NULL are numbers that the page reads: a file
 * is left out as a whole or not at all. */
static const struct {
    store_kind kind;
    const char *numbers[5], *others[4];
} kinds[] = {
    {STORE_HISTORY, {"median_ns", "low_ns", "high_ns"}, {"case", "date"}},
    {STORE_CHECK, {"margin", "max_ulp"}, {"kernel", "verdict", "message"}},
    {STORE_VALIDATE, {NULL}, {"case", "class", "outside_by"}},
    {STORE_TRACE, {"start_ns", "duration_ns", "gap_ns", "bytes"}, {"launch", "op"}},
    {STORE_AGX, {"half_registers", "threads", "scratch_bytes", "spills"}, {"kernel"}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool has_columns(const csv_file *f, const char *const *names) {
    size_t column;
    while (*names && csv_find_column(f, *names, &column, NULL))
        names++;
    return !*names;
}

static store_kind find_kind(const csv_file *f) {
    if (csv_get_meta(f, "experiment") || results_has_rows(f))
        return csv_get_meta(f, "experiment") ? STORE_EXPERIMENT : STORE_BENCH;
    for (size_t i = 0; i < KINDS; i++)
        if (has_columns(f, kinds[i].numbers) && has_columns(f, kinds[i].others))
            return kinds[i].kind;
    return STORE_OTHER;
}

/* NAME = VALUE UNIT, the unit being all that is left. */
static bool parse_metric(const char *text, store_metric *out) {
    const char *equals = strstr(text, " = ");
    char *end;
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof out->name)
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(equals - text), text);
    out->value = strtod(equals + 3, &end);
    if (end == equals + 3 || (*end && !isspace((unsigned char)*end)))
        return false;
    end += strspn(end, " \t");
    out->low = out->high = NAN;
    return snprintf(out->unit, sizeof out->unit, "%s", end) < (int)sizeof out->unit;
}

/* NAME = LOW to HIGH, of a metric that was named before. */
static bool parse_spread(const char *text, store_file *f) {
    const char *equals = strstr(text, " = ");
    for (size_t i = 0; i < f->metric_count && equals; i++) {
        store_metric *m = &f->metrics[i];
        if (strlen(m->name) == (size_t)(equals - text) &&
            strncmp(text, m->name, strlen(m->name)) == 0)
            return sscanf(equals, " = %lf to %lf", &m->low, &m->high) == 2 && m->low <= m->high;
    }
    return false;
}

static bool read_metrics(store_file *f, err *e) {
    const char *key, *value;
    for (size_t i = 0; csv_list_meta(f->csv, i, &key, &value); i++) {
        if (strcmp(key, "metric") == 0) {
            if (!parse_metric(value, ARRAY_ADD(f->metrics, f->metric_count, f->metric_room)))
                return err_set(e, EXIT_USAGE,
                               "%.120s:%zu: a metric is NAME = VALUE UNIT, not '%.60s'", f->path,
                               csv_get_meta_line(f->csv, i), value);
        } else if (strcmp(key, "spread") == 0 && !parse_spread(value, f))
            return err_set(
                e, EXIT_USAGE,
                "%.120s:%zu: a spread is NAME = LOW to HIGH of a metric above, not '%.60s'",
                f->path, csv_get_meta_line(f->csv, i), value);
    }
    return true;
}

/* Rows of another device than the head names are another device's numbers. */
static bool check_rows(const csv_file *f, err *e) {
    const char *owner = csv_get_meta(f, "device");
    size_t column;
    if (!owner || !csv_find_column(f, "device", &column, NULL))
        return true;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *text = csv_get_text(f, r, column);
        if (*text && strcmp(text, owner) != 0)
            return err_set(e, EXIT_USAGE,
                           "%.120s:%zu: a row of %.60s in a file of %.60s: keep one folder of "
                           "results per device",
                           csv_get_path(f), csv_get_line(f, r), text, owner);
    }
    return true;
}

static bool check_numbers(const store_file *f, err *e) {
    result_row row;
    size_t column, k = 0;
    double value;
    while (k < KINDS && kinds[k].kind != f->kind)
        k++;
    for (size_t r = 0; r < csv_count_rows(f->csv); r++) {
        if (f->kind == STORE_BENCH && !result_read_row(f->csv, r, &row, e))
            return false;
        for (size_t i = 0; k < KINDS && kinds[k].numbers[i]; i++)
            if (!csv_find_column(f->csv, kinds[k].numbers[i], &column, e) ||
                !csv_get_double(f->csv, r, column, &value, e))
                return false;
    }
    return true;
}

static bool add_file(freshness *fresh, store_folder *folder, const char *name, err *e) {
    store_file *f = ARRAY_ADD(folder->files, folder->count, folder->room);
    *f = (store_file){.csv = NULL};
    if (!path_join(f->path, sizeof f->path, e, folder->path, name) ||
        !(f->csv = csv_read_lines(f->path, e)) || !read_metrics(f, e))
        return false;
    f->kind = find_kind(f->csv);
    /* Any other table need not be ours. */
    bool is_measured = f->kind != STORE_OTHER && f->kind != STORE_AGX;
    if ((is_measured || csv_get_meta(f->csv, "schema")) && !results_check_schema(f->csv, e))
        return false;
    if (!check_numbers(f, e))
        return false;
    size_t made_of;
    if (f->kind != STORE_HISTORY &&
        (csv_get_meta(f->csv, "schema") || csv_find_column(f->csv, "made_of", &made_of, NULL)))
        freshness_judge_file(fresh, f->csv, &f->origin);
    const char *experiment = csv_get_meta(f->csv, "experiment");
    if (experiment)
        snprintf(f->name, sizeof f->name, "%s", experiment);
    else
        snprintf(f->name, sizeof f->name, "%.*s", (int)(strlen(name) - 4), name);
    return true;
}

static void add_other(store_folder *f, const char *name) {
    char(*other)[256] = ARRAY_ADD(f->others, f->other_count, f->other_room);
    snprintf(*other, sizeof *other, "%.255s", name);
}

/* Folders ------------------------------------------------------------------------------------- */

static bool is_table(const char *name) {
    return path_ends_with(name, ".csv") && !path_ends_with(name, ".samples.csv") &&
           strcmp(name, "claims.csv") != 0;
}

static void describe(store_folder *f) {
    const char *name = store_find_meta(f, "device"), *api = store_find_meta(f, "api");
    const char *emulated = store_find_meta(f, "emulated");
    snprintf(f->device, sizeof f->device, "%s", name ? name : f->name);
    f->emulated = emulated ? strcmp(emulated, "yes") == 0 : api && strcmp(api, "soft") == 0;
    f->emulated |= store_find_meta(f, "virtual") != NULL;
}

static void skip(store *s, const char *why) {
    char(*skipped)[256] = ARRAY_ADD(s->skipped, s->skipped_count, s->skipped_room);
    snprintf(*skipped, sizeof *skipped, "%s", why);
}

static void drop_file(store_folder *f, size_t i) {
    csv_file_free(f->files[i].csv);
    free(f->files[i].metrics);
    memmove(&f->files[i], &f->files[i + 1], (--f->count - i) * sizeof *f->files);
}

static const char *get_fact(const store_file *f, const char *key) {
    const char *value = csv_get_meta(f->csv, key);
    return value && *value ? value : NULL;
}

/* The value that most files have; the first of those that are as frequent. */
static const char *find_common(const store_folder *f, const char *key) {
    const char *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < f->count; i++) {
        const char *value = get_fact(&f->files[i], key);
        size_t count = 0;
        for (size_t k = 0; value && k < f->count; k++) {
            const char *other = get_fact(&f->files[k], key);
            count += other && strcmp(other, value) == 0;
        }
        if (count > most) {
            most = count;
            best = value;
        }
    }
    return best;
}

/* Files that do not say where they are from are taken for the folder's. */
static void drop_strangers(store *s, store_folder *f) {
    static const char *const keys[] = {"device", "api", "emulated", "virtual"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char common[160], why[256];
        const char *value = find_common(f, keys[k]);
        if (!value)
            continue;
        snprintf(common, sizeof common, "%s", value);
        for (size_t i = f->count; i-- > 0;) {
            const char *own = get_fact(&f->files[i], keys[k]);
            if (!own || strcmp(own, common) == 0)
                continue;
            snprintf(
                why, sizeof why,
                "%.100s: its %s is '%.40s', and '%.40s' in the other files; keep one folder per "
                "device",
                f->files[i].path, keys[k], own, common);
            skip(s, why);
            drop_file(f, i);
        }
    }
}

/* Files of a folder, in order: tables, and the names of charts and samples. */
static bool read_folder(store *s, store_folder *f, const char *path, err *e) {
    struct dirent **names = NULL;
    *f = (store_folder){.count = 0};
    snprintf(f->path, sizeof f->path, "%s", path);
    snprintf(f->name, sizeof f->name, "%.127s", path_get_name(path));
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        err why = {.code = EXIT_OK};
        if (is_table(name)) {
            if (!add_file(s->fresh, f, name, &why) ||
                !check_rows(f->files[f->count - 1].csv, &why)) {
                skip(s, why.text);
                drop_file(f, f->count - 1);
            }
        } else if (path_ends_with(name, ".svg") || path_ends_with(name, ".png") ||
                   path_ends_with(name, ".samples.csv"))
            add_other(f, name);
        free(names[i]);
    }
    free(names);
    drop_strangers(s, f);
    describe(f);
    return count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", path);
}

/* Is it the folder of a device? Beside the claims are such folders, whatever other tables there are. */
static bool add_known(store *s, const char *path, bool *is_device, err *e) {
    bool has_table = false, has_claims = false;
    publish_finish_all(path);
    DIR *folder = opendir(path);
    for (const struct dirent *d; folder && (d = readdir(folder));) {
        has_table |= is_table(d->d_name);
        has_claims |= strcmp(d->d_name, "claims.csv") == 0;
    }
    if (folder)
        closedir(folder);
    *is_device = has_table && !has_claims;
    return !*is_device || read_folder(s, ARRAY_ADD(s->folders, s->count, s->room), path, e);
}

/* A folder of folders. */
static bool add_folders(store *s, const char *path, err *e) {
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort);
    bool ok = count >= 0 || err_set(e, EXIT_USAGE, "cannot read the folder %.160s", path);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        char inner[PATH_MAX];
        bool is_known;
        if (ok && name[0] != '.' && strcmp(name, "scratch") != 0 &&
            (ok = path_join(inner, sizeof inner, e, path, name)) && os_is_folder(inner))
            ok = add_known(s, inner, &is_known, e);
        free(names[i]);
    }
    free(names);
    return ok;
}

static bool add_path(store *s, const char *given, err *e) {
    char path[PATH_MAX];
    bool is_known;
    int n = snprintf(path, sizeof path, "%s", given);
    while (n > 1 && n < PATH_MAX && path[n - 1] == '/')
        path[--n] = 0;
    if (n < 0 || n >= PATH_MAX || !os_is_folder(path))
        return err_set(e, EXIT_USAGE, "there is no folder %.160s", given);
    return add_known(s, path, &is_known, e) && (is_known || add_folders(s, path, e));
}

bool store_read(const char *const *paths, size_t count, bool may_be_empty, store *out, err *e) {
    *out = (store){.fresh = freshness_new(e)};
    bool ok = out->fresh != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        size_t before = out->count;
        ok = add_path(out, paths[i], e);
        if (ok && !may_be_empty && out->count == before)
            ok = err_set(e, EXIT_USAGE,
                         "there are no results in %.120s: `assay experiment all` and `assay bench` "
                         "make them",
                         paths[i]);
    }
    if (!ok)
        store_free(out);
    return ok;
}

bool store_open(const char *const *names, size_t count, bool may_be_empty, store *out, err *e) {
    char root[PATH_MAX], all[PATH_MAX];
    const char *only = all;
    if (count > 0)
        return store_read(names, count, may_be_empty, out, e);
    if (!root_find(root, sizeof root, e) || !path_print(all, sizeof all, e, "%s/results", root))
        return false;
    *out = (store){.count = 0};
    return (may_be_empty && !os_is_folder(all)) || /* nothing has been measured */
           store_read(&only, 1, may_be_empty, out, e);
}

void store_free(store *s) {
    for (size_t i = 0; i < s->count; i++) {
        store_folder *f = &s->folders[i];
        for (size_t k = 0; k < f->count; k++) {
            csv_file_free(f->files[k].csv);
            free(f->files[k].metrics);
        }
        free(f->files);
        free(f->others);
    }
    free(s->folders);
    free(s->skipped);
    freshness_free(s->fresh);
    *s = (store){.count = 0};
}

bool store_admit_skipped(const store *s, err *e) {
    if (s->skipped_count == 0)
        return true;
    memory_file *rest = memory_file_new();
    for (size_t i = 1; i < s->skipped_count; i++)
        fprintf(rest->out, "left out: %s\n", s->skipped[i]);
    err_set(e, EXIT_USAGE, "a file was left out: %.220s", s->skipped[0]);
    if (s->skipped_count > 1 && fflush(rest->out) == 0)
        err_set_detail(e, rest->text);
    memory_file_free(rest);
    return false;
}

/* Looking up ---------------------------------------------------------------------------------- */

const char *store_get_failure(const store_file *f) {
    return f->kind == STORE_EXPERIMENT ? csv_get_meta(f->csv, "failed") : NULL;
}

const store_file *store_find(const store_folder *f, store_kind kind, const char *name) {
    for (size_t i = 0; i < f->count; i++)
        if (f->files[i].kind == kind && (!name || strcmp(f->files[i].name, name) == 0))
            return &f->files[i];
    return NULL;
}

const store_metric *store_find_metric(const store_file *f, const char *name) {
    for (size_t i = 0; i < f->metric_count; i++)
        if (strcmp(f->metrics[i].name, name) == 0)
            return &f->metrics[i];
    return NULL;
}

file_origin store_sum_origins(const store_folder *f) {
    file_origin sum = {.rows = 0};
    for (size_t i = 0; i < f->count; i++)
        file_origin_add(&sum, &f->files[i].origin);
    return sum;
}

const char *store_find_meta(const store_folder *f, const char *key) {
    const char *value = NULL;
    for (size_t i = 0; i < f->count && !value; i++)
        value = get_fact(&f->files[i], key);
    return value;
}

const char *store_find_chart(const store_folder *f, const char *file_name, size_t i) {
    size_t length = strlen(file_name);
    for (size_t k = 0; k < f->other_count; k++) {
        const char *name = f->others[k];
        if (strncmp(name, file_name, length) != 0 || !path_ends_with(name, ".svg") ||
            (name[length] != '-' && strcmp(name + length, ".svg") != 0))
            continue;
        if (i-- == 0)
            return name;
    }
    return NULL;
}

bool store_has(const store_folder *f, const char *other) {
    for (size_t k = 0; k < f->other_count; k++)
        if (strcmp(f->others[k], other) == 0)
            return true;
    return false;
}
