/* failure: the file of an experiment that failed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

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
    if (!os_make_folder(folder, e) ||
        !path_print(path, sizeof path, e, "%s/%s.csv", folder, name) ||
        !results_find_samples_path(path, samples, sizeof samples, e) ||
        !experiment_find_kept(folder, name, kept_path, sizeof kept_path, e) ||
        !results_find_samples_path(kept_path, kept_samples, sizeof kept_samples, e))
        return false;
    csv_file *kept = csv_read(kept_path, NULL);
    char *line = flatten(why);
    csv *c = make_file(kept, name, m, line);
    remove(samples); /* of an earlier run */
    if (kept && csv_count_rows(kept) > 0)
        rename(kept_samples, samples);
    bool ok = csv_write(c, path, e);
    experiment_drop_kept(kept_path);
    csv_free(c);
    csv_file_free(kept);
    free(line);
    return ok;
}
