/* tuned: see tuned.h. */
#include "tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/results.h"
#include "kernels/ops.h"

/* The table in memory ----------------------------------------------------------------------- */

tuned *tuned_new(void) {
    return array_new(1, sizeof(tuned));
}

void tuned_free(tuned *t) {
    if (t)
        free(t->items);
    free(t);
}

/* Where a choice is, or would be. */
static size_t find_place(const tuned *t, const choice *c) {
    size_t i = 0;
    while (i < t->count && choice_compare(&t->items[i].choice, c) < 0)
        i++;
    return i;
}

const tuned_row *tuned_get(const tuned *t, const choice *c) {
    size_t i = find_place(t, c);
    return i < t->count && choice_compare(&t->items[i].choice, c) == 0 ? &t->items[i] : NULL;
}

void tuned_put(tuned *t, const tuned_row *r) {
    size_t i = find_place(t, &r->choice);
    if (!tuned_get(t, &r->choice)) {
        t->items = array_grow(t->items, t->count, &t->capacity, sizeof *t->items);
        memmove(&t->items[i + 1], &t->items[i], (t->count - i) * sizeof *t->items);
        t->count++;
    }
    t->items[i] = *r;
}

void tuned_drop_near(tuned *t, const choice *c) {
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (choice_find_distance(&t->items[i].choice, c) > CHOICE_NEAR)
            t->items[kept++] = t->items[i];
    t->count = kept;
}

tuned *tuned_copy(const tuned *t) {
    tuned *out = tuned_new();
    for (size_t i = 0; i < t->count; i++)
        tuned_put(out, &t->items[i]);
    return out;
}

const kernel *tuned_find(const tuned *t, const choice *c) {
    const tuned_row *best = NULL;
    double nearest = CHOICE_NEAR;
    for (size_t i = 0; i < t->count; i++) {
        double distance = choice_find_distance(&t->items[i].choice, c);
        if (distance <= nearest) {
            best = &t->items[i];
            nearest = distance;
        }
    }
    return best && choice_takes(c, best->way, NULL) ? best->way : NULL;
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
    const kernel *rule = rules_find(device_get_facts(library_get_device(lib)), &r->choice, NULL);
    return r->made_of[0] && (!rule || strcmp(rule->name, r->rule) != 0 ||
                             !tuned_find_made_of(lib, &r->choice, r->way, rule, now, NULL) ||
                             strcmp(now, r->made_of) != 0);
}

/* The file ---------------------------------------------------------------------------------- */

enum { OP, FORMAT, ACCUMULATES, SHAPE, KERNEL, NEEDED, COLUMNS = 14 };

/* After the columns that say what is chosen: where each text is in a row. */
#define FACT(name, field)                                                                          \
    { name, offsetof(tuned_row, field), sizeof(((tuned_row *)0)->field) }
static const struct {
    const char *name;
    size_t at, size;
} columns[COLUMNS] = {
    [OP] = {"op", 0, 0},       [FORMAT] = {"format", 0, 0}, [ACCUMULATES] = {"accumulates", 0, 0},
    [SHAPE] = {"shape", 0, 0}, [KERNEL] = {"kernel", 0, 0}, FACT("rule", rule),
    FACT("gain", gain),        FACT("gain_low", low),       FACT("gain_high", high),
    FACT("test", test),        FACT("model", model),        FACT("made_of", made_of),
    FACT("date", date),        FACT("commit", commit),
};

static bool find_columns(const csv_file *f, size_t at[COLUMNS], err *e) {
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = SIZE_MAX;
        if (!csv_find_column(f, columns[i].name, &at[i], i < NEEDED ? e : NULL) && i < NEEDED)
            return false;
    }
    return true;
}

/* False with `why`: the row does not say what is chosen. */
static bool read_choice(const char *const text[COLUMNS], choice *c, err *why) {
    *c = (choice){.op = registry_find_op(text[OP]), .accumulates = text[ACCUMULATES][0] == 'y'};
    if (!c->op || !rules_has(c->op))
        return err_set(why, EXIT_USAGE, "models have no choice of an op '%.60s'", text[OP]);
    if (*text[FORMAT] && !(c->format = choice_find_format(text[FORMAT])))
        return err_set(why, EXIT_USAGE, "no weight format is called '%.60s'", text[FORMAT]);
    if (strcmp(text[ACCUMULATES], c->accumulates ? "yes" : "no") != 0)
        return err_set(why, EXIT_USAGE, "accumulates is yes or no, not '%.60s'", text[ACCUMULATES]);
    return shape_parse(text[SHAPE], &c->shape) ||
           err_set(why, EXIT_USAGE, "'%.60s' is not a shape such as 576x1536x8 (%s)", text[SHAPE],
                   c->op->dims);
}

static bool read_row(const library *lib, const char *const text[COLUMNS], tuned *t, err *why) {
    tuned_row r = {.way = NULL};
    if (!read_choice(text, &r.choice, why))
        return false;
    for (int i = NEEDED; i < COLUMNS; i++)
        snprintf((char *)&r + columns[i].at, columns[i].size, "%s", text[i]);
    if (tuned_get(t, &r.choice))
        return err_set(why, EXIT_USAGE,
                       "an earlier row has the same op, format, accumulates and shape");
    r.way = choice_find_way(&r.choice, text[KERNEL], why);
    if (!r.way && !r.made_of[0])
        return false;
    if (!r.way || is_stale(lib, &r))
        t->stale++;
    else
        tuned_put(t, &r);
    return true;
}

tuned *tuned_read(const char *path, const library *lib, err *e) {
    const char *name = device_get_facts(library_get_device(lib))->name, *text[COLUMNS];
    size_t at[COLUMNS];
    err why;
    csv_file *f = csv_read(path, e);
    if (!f)
        return NULL;
    tuned *t = tuned_new();
    snprintf(t->path, sizeof t->path, "%s", path);
    const char *of = csv_get_meta(f, "device");
    bool ok = find_columns(f, at, e);
    if (ok && of && strcmp(of, name) != 0)
        ok = err_set(e, EXIT_USAGE, "%.90s is a table of another device: '%.60s', not '%.60s'",
                     path, of, name);
    for (size_t i = 0; ok && i < csv_count_rows(f); i++) {
        for (int k = 0; k < COLUMNS; k++)
            text[k] = at[k] == SIZE_MAX ? "" : csv_get_text(f, i, at[k]);
        ok = read_row(lib, text, t, &why) ||
             err_set(e, EXIT_USAGE, "%.90s:%zu: %.130s", path, csv_get_line(f, i), why.text);
    }
    csv_file_free(f);
    if (ok)
        return t;
    tuned_free(t);
    return NULL;
}

static void add_row(csv *file, const tuned_row *r) {
    char format[16], sizes[64];
    choice_get_format(r->choice.format, format, sizeof format);
    shape_get_text(&r->choice.shape, sizes, sizeof sizes);
    const char *text[NEEDED] = {r->choice.op->name, format, r->choice.accumulates ? "yes" : "no",
                                sizes, r->way->name};
    for (int i = 0; i < COLUMNS; i++)
        csv_add_text(file, i < NEEDED ? text[i] : (const char *)r + columns[i].at);
    csv_end_row(file);
}

bool tuned_write(const tuned *t, const results_meta *m, const char *path, err *e) {
    char folder[PATH_MAX], key[64];
    const char *slash = strrchr(path, '/');
    if (t->count == 0)
        return access(path, F_OK) != 0 || unlink(path) == 0 ||
               err_set(e, EXIT_CANNOT, "cannot remove %.160s", path);
    csv *file = csv_new();
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(file, m->facts[i].key, m->facts[i].value);
    for (size_t i = 0; i < t->count; i++) { /* what the sizes of a shape are */
        const op *o = t->items[i].choice.op;
        snprintf(key, sizeof key, "shape of %s", o->name);
        if (i == 0 || o != t->items[i - 1].choice.op)
            csv_add_meta(file, key, o->dims);
    }
    for (int i = 0; i < COLUMNS; i++)
        csv_add_text(file, columns[i].name);
    csv_end_row(file);
    for (size_t i = 0; i < t->count; i++)
        add_row(file, &t->items[i]);
    bool ok = (!slash || (path_print(folder, sizeof folder, e, "%.*s", (int)(slash - path), path) &&
                          os_make_folder(folder, e))) &&
              csv_write(file, path, e);
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
