/* results_read: files of measured times (results.h), read back. */
#include "results.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"

static const char *const sample_titles[] = {RESULTS_SAMPLE_TITLES};
enum { SAMPLE_COLUMNS = sizeof sample_titles / sizeof *sample_titles };

void results_get_folder(const char *name, char *folder, size_t size) {
    size_t used = 0;
    for (const char *p = name; *p && used + 1 < size; p++)
        if (isalnum((unsigned char)*p))
            folder[used++] = (char)tolower((unsigned char)*p);
        else if (used > 0 && folder[used - 1] != '-')
            folder[used++] = '-';
    while (used > 0 && folder[used - 1] == '-')
        used--;
    folder[used] = 0;
}

bool results_find_folder(const char *name, char *path, size_t size, err *e) {
    char root[PATH_MAX], folder[96];
    results_get_folder(name, folder, sizeof folder);
    return root_find(root, sizeof root, e) &&
           path_print(path, size, e, "%s/results/%s", root, folder);
}

bool results_find_samples_path(const char *path, char *out, size_t size, err *e) {
    if (!path_ends_with(path, ".csv"))
        return err_set(e, EXIT_USAGE, "results are written to a file NAME.csv, not to '%.120s'",
                       path);
    return path_print(out, size, e, "%.*s.samples.csv", (int)strlen(path) - 4, path);
}

bool results_check_schema(const csv_file *f, err *e) {
    const char *schema = csv_get_meta(f, "schema");
    char ours[16];
    snprintf(ours, sizeof ours, "%d", RESULTS_SCHEMA);
    if (!schema)
        return err_set(e, EXIT_USAGE, "%.140s:1: no line '# schema: %s': not a file of results",
                       csv_get_path(f), ours);
    return strcmp(schema, ours) == 0 ||
           err_set(e, EXIT_USAGE,
                   "%.140s:1: schema %.20s, but this assay reads schema %s: measure it again",
                   csv_get_path(f), schema, ours);
}

/* What the head of an experiment has besides, in lines of any number and length. */
static bool is_of_experiment(const char *key) {
    static const char *const keys[] = {"question", "claim",  "how",   "conclusion",
                                       "metric",   "spread", "failed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool read_meta(const csv_file *f, results_meta *m, err *e) {
    const char *key, *value;
    if (!results_check_schema(f, e))
        return false;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value); i++) {
        if (is_of_experiment(key))
            continue;
        if (m->count == RESULTS_META || strlen(key) >= sizeof m->facts[0].key ||
            strlen(value) >= sizeof m->facts[0].value)
            return err_set(e, EXIT_USAGE, "%.140s: the head is too long at '# %.40s'",
                           csv_get_path(f), key);
        results_meta_add(m, key, value);
    }
    return true;
}

result_case *results_list_find(const results_list *l, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->cases[i].row.name, name) == 0)
            return &l->cases[i];
    return NULL;
}

static bool read_rows(const csv_file *f, results_list *out, err *e) {
    out->cases = array_new(csv_count_rows(f) + 1, sizeof *out->cases);
    for (size_t i = 0; i < csv_count_rows(f); i++) {
        result_case c = {.count = 0};
        if (!result_read_row(f, i, &c.row, e))
            return false;
        if (!c.row.name[0])
            return err_set(e, EXIT_USAGE, "%.120s:%zu: the row has no name in column 'case'",
                           csv_get_path(f), csv_get_line(f, i));
        if (results_list_find(out, c.row.name))
            return err_set(e, EXIT_USAGE, "%.120s:%zu: the case %.80s appears twice",
                           csv_get_path(f), csv_get_line(f, i), c.row.name);
        out->cases[out->count++] = c;
    }
    return true;
}

static bool read_sample(const csv_file *f, size_t row, const size_t *column, timing_sample *out,
                        err *e) {
    return csv_get_double(f, row, column[2], &out->gpu_ns, e) &&
           csv_get_double(f, row, column[3], &out->encode_ns, e) &&
           csv_get_double(f, row, column[4], &out->wall_ns, e);
}

/* Samples of a name that no row has are of a case that was never finished, or an experiment's finer
 * ones. */
static bool read_samples(const csv_file *f, results_list *l, err *e) {
    size_t column[SAMPLE_COLUMNS];
    result_case *c = NULL;
    for (int i = 0; i < SAMPLE_COLUMNS; i++)
        if (!csv_find_column(f, sample_titles[i], &column[i], e))
            return false;
    for (size_t i = 0; i < csv_count_rows(f); i++) {
        const char *name = csv_get_text(f, i, column[0]);
        if (!c || strcmp(c->row.name, name) != 0)
            c = results_list_find(l, name);
        if (!c)
            continue;
        if (!c->samples) {
            size_t most = csv_count_rows(f) - i; /* whatever its row says */
            c->samples = array_new(c->row.gpu.count < most ? c->row.gpu.count + 1 : most + 1,
                                   sizeof *c->samples);
        }
        if (c->count == c->row.gpu.count)
            return err_set(e, EXIT_USAGE,
                           "%.120s:%zu: more samples of %.80s than the %zu of its row",
                           csv_get_path(f), csv_get_line(f, i), name, c->count);
        timing_sample *s = &c->samples[c->count++];
        if (!read_sample(f, i, column, s, e))
            return false;
        if (!(s->gpu_ns >= 0 && s->encode_ns >= 0 && s->wall_ns >= 0) || isinf(s->gpu_ns) ||
            isinf(s->encode_ns) || isinf(s->wall_ns))
            return err_set(e, EXIT_USAGE,
                           "%.120s:%zu: a time is negative, infinite or not a number",
                           csv_get_path(f), csv_get_line(f, i));
    }
    return true;
}

static bool check_counts(const results_list *l, const char *samples_path, err *e) {
    for (size_t i = 0; i < l->count; i++)
        if (l->cases[i].count != l->cases[i].row.gpu.count)
            return err_set(e, EXIT_USAGE, "%.120s: %zu samples of %.80s, but its row says %zu",
                           samples_path, l->cases[i].count, l->cases[i].row.name,
                           l->cases[i].row.gpu.count);
    return true;
}

bool results_read(const char *path, results_list *out, err *e) {
    *out = (results_list){.count = 0};
    char samples_path[PATH_MAX];
    csv_file *rows = NULL, *samples = NULL;
    bool ok = results_find_samples_path(path, samples_path, sizeof samples_path, e) &&
              (rows = csv_read_lines(path, e)) && read_meta(rows, &out->meta, e) &&
              read_rows(rows, out, e) && (samples = csv_read_lines(samples_path, e)) &&
              read_samples(samples, out, e) && check_counts(out, samples_path, e);
    csv_file_free(rows);
    csv_file_free(samples);
    if (!ok)
        results_list_free(out);
    return ok;
}

void results_list_free(results_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->cases[i].samples);
    free(l->cases);
    *l = (results_list){.count = 0};
}
