#include "experiment_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/csv_read.h"
#include "harness/base/path.h"
#include "harness/measure/freshness.h"

static csv_file *read_file(const experiment_plan *p, const char *name) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.csv", p->folder, name) >= (int)sizeof path)
        return NULL;
    csv_file *f = csv_read(path, NULL);
    if (f && results_check_schema(f, NULL))
        return f;
    csv_file_free(f);
    return NULL;
}

static bool is(const csv_file *f, const char *key, const char *value) {
    const char *was = csv_get_meta(f, key);
    return was && strcmp(was, value) == 0;
}

/* A model is named in the head by its file, without folders. */
static bool is_same_model(const experiment_plan *p, const csv_file *f) {
    return !csv_get_meta(f, "model") || !p->model || is(f, "model", path_get_name(p->model));
}

static const char *get(const csv_file *f, const char *key) {
    const char *value = csv_get_meta(f, key);
    return value ? value : "";
}

static bool is_finished(const experiment_plan *p, const char *name, freshness *fresh,
                        const results_meta *now) {
    file_origin made;
    csv_file *f = read_file(p, name);
    bool yes = f && csv_count_rows(f) > 0 && !csv_get_meta(f, "failed") &&
               is(f, "device", p->facts->name) && is(f, "compiler", p->facts->compiler) &&
               is(f, "seed", results_meta_find(now, "seed")) &&
               is(f, "level", lab_get_level_name(p->level)) &&
               is(f, "math", math_mode_get_name(p->facts->math)) && is_same_model(p, f) &&
               freshness_is_same_program(get(f, "build"), get(f, "commit"), now);
    if (yes) {
        freshness_judge_file(fresh, f, &made);
        yes = made.stale == 0 && made.unknown == 0;
    }
    csv_file_free(f);
    return yes;
}

bool experiment_files_drop_finished(const experiment_plan *p, const char **names, size_t *count,
                                    size_t *kept, err *e) {
    size_t left = 0;
    freshness *fresh = freshness_new(e);
    if (!fresh)
        return false;
    results_meta now = results_meta_new("", p->facts, p->seed);
    for (size_t i = 0; i < *count; i++)
        if (!is_finished(p, names[i], fresh, &now))
            names[left++] = names[i];
    freshness_free(fresh);
    *kept = *count - left;
    *count = left;
    return true;
}

double experiment_files_expect(const experiment_plan *p, const char *name) {
    static const double guess_s[LEVEL_COUNT] = {200, 7, 3};
    csv_file *f = read_file(p, name);
    const char *seconds =
        f && is(f, "level", lab_get_level_name(p->level)) ? csv_get_meta(f, "seconds") : NULL;
    double known = seconds ? strtod(seconds, NULL) : 0;
    csv_file_free(f);
    return known > 0 ? known : guess_s[p->level];
}
