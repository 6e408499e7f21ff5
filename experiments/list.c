/* list: the experiments, and how one is run. */
#include "experiment.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/measure/publish.h"
#include "kernels/ops.h"
#include "runner/choice/tuned.h"

const experiment *experiments[MOST_EXPERIMENTS];
size_t experiment_count;

/* Sorted by order, then by name: the order of linking means nothing. */
void experiment_add(const experiment *x) {
    size_t at = experiment_count++;
    assert(experiment_count <= MOST_EXPERIMENTS);
    for (; at > 0; at--) {
        const experiment *y = experiments[at - 1];
        if (y->order < x->order || (y->order == x->order && strcmp(y->name, x->name) < 0))
            break;
        experiments[at] = y;
    }
    experiments[at] = x;
}

const experiment *experiment_find(const char *name) {
    for (size_t i = 0; i < experiment_count; i++)
        if (strcmp(experiments[i]->name, name) == 0)
            return experiments[i];
    return NULL;
}

static void add_question(const experiment *x, lab *l, sheet *s) {
    sheet_add_note(s, "experiment", "%s", x->name);
    sheet_add_note(s, "question", "%s", x->question);
    sheet_add_note(s, "claim", "%s", x->claim);
    sheet_add_note(s, "how", "%s", x->how);
    sheet_add_note(s, "level", "%s", lab_get_level_name(lab_get_level(l)));
}

static void add_notes(const experiment *x, lab *l, sheet *s) {
    roof *r = NULL;
    if (lab_find_roof(l, &r, NULL) && r) {
        const roof_facts *f = roof_get_facts(r);
        sheet_add_note(s, "cache", "%zu bytes (%s)", f->cache_bytes, f->source);
    }
    if (x->has_model) {
        sheet_add_note(s, "model", "%s", lab_get_model_name(l));
        sheet_add_note(s, "weights", "%s", lab_get_model_weights(l));
    }
}

/* Of the ops that a row's kernels belong to, where it does not say. */
static bool add_description(char text[MADE_OF], const library *lib, err *e) {
    made_of_part p;
    if (made_of_find(text, "description", &p) || !made_of_find(text, "kernel", &p))
        return true;
    char(*files)[MADE_OF] = NULL;
    const char **names = NULL;
    size_t count = 0, capacity = 0, name_count = 0, name_capacity = 0;
    for (const char *at = p.names; *at; at += *at == '+') {
        size_t length = strcspn(at, "+");
        snprintf(*ARRAY_ADD(files, count, capacity), sizeof *files, "%.*s.metal", (int)length, at);
        at += length;
    }
    for (size_t i = 0; i < count; i++)
        *ARRAY_ADD(names, name_count, name_capacity) = files[i];
    bool ok = registry_add_made_of(text, lib, names, count, e);
    free(names);
    free(files);
    return ok;
}

/* Rows that were not timed as a tape are of all that the experiment used. */
static bool add_made_of(const experiment *x, lab *l, sheet *s, err *e) {
    const library *lib = lab_get_library(l);
    char all[MADE_OF] = "", text[MADE_OF];
    bool ok = registry_add_used(all, lib, e);
    for (size_t r = 0; ok && r < sheet_count_rows(s); r++) {
        const char *own = sheet_get_text(s, r, "made_of");
        snprintf(text, sizeof text, "%s", *own ? own : all);
        ok = add_description(text, lib, e) &&
             made_of_add_one(text, lib, "experiment", x->name, e) &&
             (!x->has_model || made_of_add_one(text, lib, "runner", "model", e));
        sheet_put_text_at(s, r, "made_of", text);
    }
    return ok;
}

/* What the rows depend on besides the head of every file, and how long it took: for --resume. */
static void add_origin(lab *l, sheet *s, double seconds) {
    if (lab_get_variants(l)->table)
        sheet_add_note(s, "tuned", "%zu choices", lab_get_variants(l)->table->count);
    sheet_add_note(s, "math", "%s", math_mode_get_name(lab_get_facts(l)->math));
    sheet_add_note(s, "seconds", "%.1f", seconds);
}

/* Where the rows of a run are kept until it ends, and where those of one that failed are. */
static bool find_files(const char *folder, const char *name, char kept[PATH_MAX],
                       char failed[PATH_MAX], err *e) {
    return path_print(kept, PATH_MAX, e, "%s/scratch/%s.csv", folder, name) &&
           path_print(failed, PATH_MAX, e, "%s/%s.failed.csv", folder, name);
}

static void drop_files(const char *path) {
    char samples[PATH_MAX];
    remove(path);
    if (results_find_samples_path(path, samples, sizeof samples, NULL))
        remove(samples);
}

bool experiment_run(const experiment *x, lab *l, const char *version, const char *folder,
                    sheet **out, err *e) {
    char path[PATH_MAX], kept[PATH_MAX], failed[PATH_MAX];
    if (!path_print(path, sizeof path, e, "%s/%s.csv", folder, x->name) ||
        !find_files(folder, x->name, kept, failed, e))
        return false;
    drop_files(kept);
    results_meta meta = results_meta_new(version, lab_get_facts(l), lab_get_seed(l));
    sheet *s = sheet_new();
    uint64_t start_ns = os_now_ns();
    lab_choose_family(l, x->family);
    add_question(x, l, s);
    sheet_keep(s, &meta, kept);
    library_forget_uses(lab_get_library(l));
    bool ok = x->run(l, s, e);
    if (ok) {
        add_notes(x, l, s);
        add_origin(l, s, (double)(os_now_ns() - start_ns) * 1e-9);
        x->conclude(s);
        ok = add_made_of(x, l, s, e) && sheet_write(s, &meta, path, failed, e);
    }
    if (ok)
        drop_files(kept);
    else
        sheet_save(s, NULL); /* for experiment_write_failure */
    if (ok && out)
        *out = s;
    else
        sheet_free(s);
    return ok;
}

/* The file of an experiment that failed ------------------------------------------------------------ */

/* One line: what it says may be of several. */
static char *flatten(const char *why) {
    char *copy = array_new(strlen(why) + 1, 1);
    strcpy(copy, why);
    for (char *p = copy; *p; p++)
        *p = *p == '\n' || *p == '\r' ? ' ' : *p;
    return copy;
}

static void add_head(csv *c, const csv_file *kept, const char *name, const results_meta *m,
                     const char *why) {
    const experiment *x = experiment_find(name);
    const char *key, *value;
    for (size_t i = 0; kept && csv_list_meta(kept, i, &key, &value); i++)
        csv_add_meta(c, key, value);
    for (size_t i = 0; !kept && i < m->count; i++)
        csv_add_meta(c, m->facts[i].key, m->facts[i].value);
    if (!kept) {
        csv_add_meta(c, "experiment", name);
        csv_add_meta(c, "question", x ? x->question : "-");
    }
    csv_add_meta(c, "failed", why);
}

static const char *get_title(const csv_file *kept, size_t column) {
    return kept ? csv_get_title(kept, column) : result_get_title((int)column);
}

static const char *get_failure_cell(const char *title, const char *name, const results_meta *m,
                                    const char *why) {
    static const char *const known[] = {"device", "api", "date", "commit", "build"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(title, known[i]) == 0)
            return results_meta_find(m, known[i]);
    return strcmp(title, "case") == 0 ? name : strcmp(title, "message") == 0 ? why : "";
}

static csv *make_file(const csv_file *kept, const char *name, const results_meta *m,
                      const char *why) {
    csv *c = csv_new();
    size_t columns = kept ? csv_count_columns(kept) : RESULT_COLUMNS;
    add_head(c, kept, name, m, why);
    for (size_t i = 0; i < columns; i++)
        csv_add_text(c, get_title(kept, i));
    csv_end_row(c);
    for (size_t r = 0; kept && r < csv_count_rows(kept); r++) {
        for (size_t i = 0; i < columns; i++)
            csv_add_text(c, csv_get_text(kept, r, i));
        csv_end_row(c);
    }
    for (size_t i = 0; i < columns; i++)
        csv_add_text(c, get_failure_cell(get_title(kept, i), name, m, why));
    csv_end_row(c);
    return c;
}

bool experiment_write_failure(const char *name, const results_meta *m, const char *folder,
                              const char *why, err *e) {
    char path[PATH_MAX], samples[PATH_MAX], kept_path[PATH_MAX], kept_samples[PATH_MAX];
    if (!os_make_folder(folder, e) || !find_files(folder, name, kept_path, path, e) ||
        !results_find_samples_path(path, samples, sizeof samples, e) ||
        !results_find_samples_path(kept_path, kept_samples, sizeof kept_samples, e))
        return false;
    csv_file *kept = csv_read(kept_path, NULL);
    char *line = flatten(why);
    csv *c = make_file(kept, name, m, line);
    const bool has_rows = kept && csv_count_rows(kept) > 0; /* or samples are of older ones */
    const change both[] = {
        {.to = has_rows ? samples : NULL, .from = has_rows ? kept_samples : samples},
        {path, c, NULL}};
    lock *held = publish_lock(path, e);
    bool ok = held && publish(path, both, 2, e);
    lock_release(held);
    if (ok)
        drop_files(kept_path);
    csv_free(c);
    csv_file_free(kept);
    free(line);
    return ok;
}
