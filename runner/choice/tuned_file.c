/* tuned_file: the table as a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/csv.h"
#include "harness/base/csv_read.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/results.h"
#include "kernels/ops.h"
#include "kernels/record.h"
#include "tuned.h"
#include "variants.h"

enum { OP, FORMAT, ACCUMULATES, SHAPE, KERNEL, NEEDED, COLUMNS = 14 };

/* After the columns that say what is chosen: where each is in a row. */
#define TEXT(name, field)                                                                          \
    { name, offsetof(tuned_row, field), sizeof(((tuned_row *)0)->field) }
#define NUMBER(name, field)                                                                        \
    { name, offsetof(tuned_row, field), 0 }
static const struct {
    const char *name;
    size_t at, size; /* size 0: a number */
} columns[COLUMNS] = {
    [OP] = {"op", 0, 1},       [FORMAT] = {"format", 0, 1}, [ACCUMULATES] = {"accumulates", 0, 1},
    [SHAPE] = {"shape", 0, 1}, [KERNEL] = {"kernel", 0, 1}, TEXT("rule", rule),
    NUMBER("gain", gain),      NUMBER("gain_low", low),     NUMBER("gain_high", high),
    TEXT("test", test),        TEXT("model", model),        TEXT("made_of", made_of),
    TEXT("date", date),        TEXT("commit", commit),
};

static void get_column(const tuned_row *r, int i, char *text, size_t size) {
    if (i == OP)
        snprintf(text, size, "%s", r->choice.op->name);
    else if (i == FORMAT)
        choice_get_format(r->choice.format, text, size);
    else if (i == ACCUMULATES)
        snprintf(text, size, "%s", r->choice.accumulates ? "yes" : "no");
    else if (i == SHAPE)
        shape_get_text(&r->choice.shape, text, size);
    else if (i == KERNEL)
        snprintf(text, size, "%s", r->way->name);
    else if (columns[i].size)
        snprintf(text, size, "%s", (const char *)r + columns[i].at);
    else {
        double value;
        memcpy(&value, (const char *)r + columns[i].at, sizeof value);
        text[0] = 0;
        if (!isnan(value))
            snprintf(text, size, "%.6g", value);
    }
}

/* Staleness --------------------------------------------------------------------------------- */

bool tuned_find_made_of(const library *lib, const choice *c, const kernel *way, const kernel *rule,
                        char text[MADE_OF], err *e) {
    const char *files[] = {choice_get_file(c, way), choice_get_file(c, rule)};
    size_t count = strcmp(files[0], files[1]) == 0 ? 1 : 2;
    const char *api = device_get_facts(library_get_device(lib))->api;
    text[0] = 0;
    return made_of_add(text, lib, "kernel", files, count, e) &&
           made_of_add_one(text, lib, "description", c->op->source, e) &&
           made_of_add_one(text, lib, "device", api, e);
}

/* Is what was measured another text by now, or the rule another? */
static bool is_stale(const library *lib, const tuned_row *r) {
    char now[MADE_OF];
    const kernel *rule =
        variants_find_rule(device_get_facts(library_get_device(lib)), &r->choice, NULL);
    return r->made_of[0] && (!rule || strcmp(rule->name, r->rule) != 0 ||
                             !tuned_find_made_of(lib, &r->choice, r->way, rule, now, NULL) ||
                             strcmp(now, r->made_of) != 0);
}

/* Reading ----------------------------------------------------------------------------------- */

typedef struct {
    const library *lib;
    const csv_file *file;
    size_t at[COLUMNS]; /* columns of the file; SIZE_MAX: not there */
} reading;

static bool refuse(const reading *r, size_t row, const char *why, err *e) {
    return err_set(e, EXIT_USAGE, "%.90s:%zu: %.130s", csv_get_path(r->file),
                   csv_get_line(r->file, row), why);
}

static const char *get(const reading *r, size_t row, int i) {
    return r->at[i] == SIZE_MAX ? "" : csv_get_text(r->file, row, r->at[i]);
}

static bool find_columns(reading *r, err *e) {
    for (int i = 0; i < COLUMNS; i++) {
        r->at[i] = SIZE_MAX;
        if (!csv_find_column(r->file, columns[i].name, &r->at[i], i < NEEDED ? e : NULL) &&
            i < NEEDED)
            return false;
    }
    return true;
}

static bool read_choice(const reading *r, size_t row, choice *c, err *e) {
    char why[160];
    const char *name = get(r, row, OP), *format = get(r, row, FORMAT),
               *adds = get(r, row, ACCUMULATES), *sizes = get(r, row, SHAPE);
    *c = (choice){.op = registry_find_op(name)};
    snprintf(why, sizeof why, "models have no choice of an op '%.60s'", name);
    if (!c->op || !variants_has_rule(c->op))
        return refuse(r, row, why, e);
    snprintf(why, sizeof why, "no weight format is called '%.60s'", format);
    if (*format && !(c->format = choice_find_format(format)))
        return refuse(r, row, why, e);
    c->accumulates = strcmp(adds, "yes") == 0;
    snprintf(why, sizeof why, "accumulates is yes or no, not '%.60s'", adds);
    if (!c->accumulates && strcmp(adds, "no") != 0)
        return refuse(r, row, why, e);
    snprintf(why, sizeof why, "'%.60s' is not a shape such as 576x1536x8 (%s)", sizes, c->op->dims);
    return shape_parse(sizes, &c->shape) || refuse(r, row, why, e);
}

static bool read_facts(const reading *r, size_t row, tuned_row *out, err *e) {
    for (int i = NEEDED; i < COLUMNS; i++) {
        const char *text = get(r, row, i);
        double value = NAN;
        if (columns[i].size)
            snprintf((char *)out + columns[i].at, columns[i].size, "%s", text);
        else if (*text && !csv_get_double(r->file, row, r->at[i], &value, e))
            return false;
        else
            memcpy((char *)out + columns[i].at, &value, sizeof value);
    }
    return true;
}

static bool read_row(const reading *r, size_t row, tuned *t, err *e) {
    choice c;
    err why;
    if (!read_choice(r, row, &c, e))
        return false;
    tuned_row out = tuned_row_new(&c);
    if (tuned_get(t, &c))
        return refuse(r, row, "an earlier row has the same op, format, accumulates and shape", e);
    if (!read_facts(r, row, &out, e))
        return false;
    out.way = choice_find_way(&c, get(r, row, KERNEL), &why);
    if (!out.way && !out.made_of[0])
        return refuse(r, row, why.text, e);
    if (!out.way || is_stale(r->lib, &out))
        t->stale++;
    else
        tuned_put(t, &out);
    return true;
}

tuned *tuned_read(const char *path, const library *lib, err *e) {
    const char *name = device_get_facts(library_get_device(lib))->name;
    reading r = {.lib = lib, .file = csv_read(path, e)};
    if (!r.file)
        return NULL;
    tuned *t = tuned_new();
    snprintf(t->path, sizeof t->path, "%s", path);
    const char *of = csv_get_meta(r.file, "device");
    bool ok = find_columns(&r, e);
    if (ok && of && strcmp(of, name) != 0)
        ok = err_set(e, EXIT_USAGE, "%.90s is a table of another device: '%.60s', not '%.60s'",
                     path, of, name);
    for (size_t i = 0; ok && i < csv_count_rows(r.file); i++)
        ok = read_row(&r, i, t, e);
    csv_file_free((csv_file *)r.file);
    if (ok)
        return t;
    tuned_free(t);
    return NULL;
}

/* Writing ----------------------------------------------------------------------------------- */

static bool make_folder(const char *path, err *e) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    return !slash || (path_print(folder, sizeof folder, e, "%.*s", (int)(slash - path), path) &&
                      os_make_folder(folder, e));
}

bool tuned_write(const tuned *t, const results_meta *m, const char *path, err *e) {
    if (t->count == 0)
        return access(path, F_OK) != 0 || unlink(path) == 0 ||
               err_set(e, EXIT_CANNOT, "cannot remove %.160s", path);
    csv *file = csv_new();
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(file, m->facts[i].key, m->facts[i].value);
    const op *last = NULL;
    for (size_t i = 0; i < t->count; i++) { /* what the sizes of a shape are */
        char key[64];
        const op *o = t->items[i].choice.op;
        snprintf(key, sizeof key, "shape of %s", o->name);
        if (o != last)
            csv_add_meta(file, key, o->dims);
        last = o;
    }
    for (int i = 0; i < COLUMNS; i++)
        csv_add_text(file, columns[i].name);
    csv_end_row(file);
    for (size_t i = 0; i < t->count; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            char text[MADE_OF];
            get_column(&t->items[i], k, text, sizeof text);
            csv_add_text(file, text);
        }
        csv_end_row(file);
    }
    bool ok = make_folder(path, e) && csv_write(file, path, e);
    csv_free(file);
    return ok;
}

/* Where ------------------------------------------------------------------------------------- */

bool tuned_find_path(const device_facts *f, char *path, size_t size, err *e) {
    char folder[PATH_MAX];
    return results_find_folder(f->name, folder, sizeof folder, e) &&
           path_print(path, size, e, "%s/tuned.csv", folder);
}

bool tuned_open(const library *lib, tuned **out, err *e) {
    const device_facts *f = device_get_facts(library_get_device(lib));
    const char *asked = getenv("ASSAY_TUNED");
    char path[PATH_MAX];
    bool is_named = asked && *asked;
    *out = NULL;
    if (is_named && strcmp(asked, "off") == 0)
        return true;
    if (is_named ? !path_print(path, sizeof path, e, "%s", asked)
                 : !tuned_find_path(f, path, sizeof path, e))
        return false;
    if (!is_named && access(path, F_OK) != 0)
        return true;
    return (*out = tuned_read(path, lib, e)) != NULL;
}
