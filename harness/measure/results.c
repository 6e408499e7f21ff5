/* results: see results.h. Owns the columns of a row, as text and back, and how files are written and read. */
#include "results.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/root.h"
#include "publish.h"

#define TEXT(title, member) FIELD(result_row, member, FIELD_CHARS, title)
#define NUMBER(title, member) FIELD(result_row, member, FIELD_REAL, title, .may_be_empty = true)
/* Files that were written before there was such a column lack it. */
#define LATER(title, kind, member)                                                                 \
    FIELD(result_row, member, kind, title, .is_optional = true, .may_be_empty = true)

static const field columns[RESULT_COLUMNS] = {
    /* what it is */
    TEXT("case", name),
    TEXT("device", device),
    TEXT("api", api),
    TEXT("model", model),
    TEXT("op", op),
    TEXT("kernel", kernel),
    TEXT("variant", variant),
    TEXT("format", format),
    TEXT("shape", shape),
    NUMBER("batch", batch),
    TEXT("input", input),
    TEXT("math", math),
    TEXT("regime", regime),
    TEXT("cache", cache),
    /* how long it takes */
    FIELD(result_row, gpu.count, FIELD_COUNT, "n"),
    NUMBER("gpu_ns", gpu.median),
    NUMBER("gpu_q1_ns", gpu.q1),
    NUMBER("gpu_q3_ns", gpu.q3),
    NUMBER("gpu_min_ns", gpu.min),
    NUMBER("gpu_p95_ns", gpu.p95),
    NUMBER("gpu_mean_ns", gpu.mean),
    NUMBER("gpu_mad_ns", gpu.mad),
    NUMBER("encode_ns", encode_ns),
    NUMBER("wall_ns", wall.median),
    NUMBER("wall_q1_ns", wall.q1),
    NUMBER("wall_q3_ns", wall.q3),
    NUMBER("repeats", repeats),
    NUMBER("copies", copies),
    /* what it does in that time */
    NUMBER("bytes", bytes),
    NUMBER("flops", flops),
    NUMBER("gb_s", gb_s),
    NUMBER("gflop_s", gflop_s),
    NUMBER("roof_gb_s", roof_gb_s),
    NUMBER("pct_roof", pct_roof),
    NUMBER("launch_ns", launch_ns),
    NUMBER("submit_ns", submit_ns),
    /* how far to trust it */
    TEXT("stop", stop),
    TEXT("labels", labels),
    TEXT("samples", samples),
    TEXT("message", message),
    /* where it comes from */
    LATER("date", FIELD_CHARS, date),
    LATER("commit", FIELD_CHARS, commit),
    LATER("build", FIELD_CHARS, build),
    LATER("roof_gflop_s", FIELD_REAL, roof_gflop_s),
    LATER("made_of", FIELD_CHARS, made_of),
};

const char *result_get_title(int i) {
    return columns[i].name;
}

result_row result_row_new(void) {
    result_row r = {.gpu = stats_compute(NULL, 0), .wall = stats_compute(NULL, 0)};
    double unknown = NAN;
    for (int i = 0; i < RESULT_COLUMNS; i++)
        if (columns[i].kind == FIELD_REAL)
            memcpy((char *)&r + columns[i].at, &unknown, sizeof unknown);
    return r;
}

/* Nine digits are more than any clock has. No number is infinite: something was divided by nothing,
 * and charts refuse it. */
void result_format_number(double value, char *text, size_t size) {
    if (!isfinite(value))
        snprintf(text, size, "%s", "");
    else
        snprintf(text, size, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g", value);
}

void result_get_column(const result_row *r, int i, char *text, size_t size, bool *is_number) {
    const field *c = &columns[i];
    *is_number = c->kind != FIELD_CHARS;
    if (*is_number)
        result_format_number(field_get_number(c, r), text, size);
    else
        snprintf(text, size, "%s", (const char *)r + c->at);
}

bool result_read_row(const csv_file *f, size_t row, result_row *out, err *e) {
    *out = result_row_new();
    return record_read(&(record)RECORD(columns), f, row, out, e);
}

bool results_has_rows(const csv_file *f) {
    size_t at;
    return csv_find_column(f, "case", &at, NULL) && csv_find_column(f, "gpu_ns", &at, NULL);
}

void result_row_sign(result_row *r, const results_meta *m) {
    snprintf(r->date, sizeof r->date, "%.23s", results_meta_find(m, "date"));
    snprintf(r->commit, sizeof r->commit, "%.31s", results_meta_find(m, "commit"));
    snprintf(r->build, sizeof r->build, "%.19s", results_meta_find(m, "build"));
}

/* The head ---------------------------------------------------------------------------------- */

void results_meta_add(results_meta *m, const char *key, const char *value) {
    assert(m->count < RESULTS_META);
    results_fact *f = &m->facts[m->count++];
    assert(strlen(key) < sizeof f->key && strlen(value) < sizeof f->value);
    snprintf(f->key, sizeof f->key, "%s", key);
    snprintf(f->value, sizeof f->value, "%s", value);
}

const char *results_meta_find(const results_meta *m, const char *key) {
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->facts[i].key, key) == 0)
            return m->facts[i].value;
    return "";
}

results_meta results_meta_new(const char *version, const device_facts *f, uint64_t seed) {
    results_meta m = {.count = 0};
    char text[320];
    snprintf(text, sizeof text, "%d", RESULTS_SCHEMA);
    results_meta_add(&m, "schema", text);
    results_meta_add(&m, "assay", version);
    results_meta_add(&m, "device", f->name);
    results_meta_add(&m, "api", f->api);
    results_meta_add(&m, "emulated", f->emulated ? "yes" : "no");
    if (f->is_virtual)
        results_meta_add(&m, "virtual", "yes");
    snprintf(text, sizeof text, "none");
    if (f->kind == DEVICE_METAL) /* comes with the system and has its version */
        host_get_os(text, sizeof text);
    else if (f->kind == DEVICE_CUDA)
        host_get_nvidia_driver(text, sizeof text);
    results_meta_add(&m, "driver", text);
    results_meta_add(&m, "compiler", f->compiler);
    host_get_os(text, sizeof text);
    results_meta_add(&m, "os", text);
    if (!host_find_cpu(text, sizeof text))
        snprintf(text, sizeof text, "unknown");
    results_meta_add(&m, "cpu", text);
    results_meta_add(&m, "host compiler", __VERSION__);
    host_get_commit(text, sizeof text);
    results_meta_add(&m, "commit", text);
    host_get_build(text, sizeof text);
    results_meta_add(&m, "build", text);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    results_meta_add(&m, "seed", text);
    host_get_date(text, sizeof text);
    results_meta_add(&m, "date", text);
    return m;
}

/* Reading ----------------------------------------------------------------------------------- */

static const char *const sample_titles[] = {"case", "i", "gpu_ns", "encode_ns", "wall_ns"};
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

/* NAME.csv to NAME.KIND.csv. */
static bool find_beside(const char *path, const char *kind, char *out, size_t size, err *e) {
    if (!path_ends_with(path, ".csv"))
        return err_set(e, EXIT_USAGE, "results are written to a file NAME.csv, not to '%.120s'",
                       path);
    return path_print(out, size, e, "%.*s.%s.csv", (int)strlen(path) - 4, path, kind);
}

bool results_find_samples_path(const char *path, char *out, size_t size, err *e) {
    return find_beside(path, "samples", out, size, e);
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
        *ARRAY_ADD(out->cases, out->count, out->room) = c;
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
    publish_finish(path);
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

/* Writing ----------------------------------------------------------------------------------- */

struct results {
    char path[PATH_MAX], samples_path[PATH_MAX];
    results_list known; /* all that is in the files */
    lock *lock;
};

void results_add_head(csv *c, const results_meta *m) {
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(c, m->facts[i].key, m->facts[i].value);
}

/* A row is a line: readers can cut a file at any of them. */
void results_add_cell(csv *c, const char *cell) {
    char text[1024];
    snprintf(text, sizeof text, "%s", cell);
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    csv_add_text(c, text);
}

static void add_row(csv *c, const result_row *row, const char *samples_path) {
    result_row whole = *row;
    char text[MADE_OF];
    bool is_number;
    if (row->gpu.count > 0)
        snprintf(whole.samples, sizeof whole.samples, "%.255s", path_get_name(samples_path));
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        result_get_column(&whole, i, text, sizeof text, &is_number);
        results_add_cell(c, text);
    }
    csv_end_row(c);
}

void results_start_samples(csv *c, const results_meta *m) {
    results_add_head(c, m);
    csv_add_row(c, sample_titles, SAMPLE_COLUMNS);
}

void results_add_samples(csv *c, const char *name, const timing_sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        results_add_cell(c, name);
        csv_add_u64(c, i);
        for (int k = 0; k < CLOCK_COUNT; k++) {
            char text[32];
            snprintf(text, sizeof text, "%.9g", timing_get_clock(&samples[i], (timing_clock)k));
            csv_add_text(c, text);
        }
        csv_end_row(c);
    }
}

/* Both files with what is known. */
static bool write_files(const results *r, err *e) {
    csv *rows = csv_new(), *samples = csv_new();
    results_add_head(rows, &r->known.meta);
    for (int i = 0; i < RESULT_COLUMNS; i++)
        csv_add_text(rows, result_get_title(i));
    csv_end_row(rows);
    for (size_t i = 0; i < r->known.count; i++)
        add_row(rows, &r->known.cases[i].row, r->samples_path);
    results_start_samples(samples, &r->known.meta);
    for (size_t i = 0; i < r->known.count; i++) {
        const result_case *c = &r->known.cases[i];
        results_add_samples(samples, c->row.name, c->samples, c->count);
    }
    const change both[] = {{.to = r->samples_path, .rows = samples}, {r->path, rows, NULL}};
    bool ok = publish(r->path, both, 2, e);
    csv_free(rows);
    csv_free(samples);
    return ok;
}

static bool make_folder_of(const char *path, err *e) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = 0;
    return os_make_folder(folder, e);
}

/* With the lock of the file. */
static results *results_new(const char *path, err *e) {
    results *r = array_new(1, sizeof *r);
    int n = snprintf(r->path, sizeof r->path, "%s", path);
    if (n >= 0 && (size_t)n < sizeof r->path &&
        results_find_samples_path(path, r->samples_path, sizeof r->samples_path, e) &&
        make_folder_of(path, e) && (r->lock = publish_lock(path, e)))
        return r;
    free(r);
    return NULL;
}

static bool start_files(results *r, const results_meta *m, err *e) {
    r->known = (results_list){.meta = *m};
    return write_files(r, e);
}

void results_close(results *r) {
    if (!r)
        return;
    results_list_free(&r->known);
    lock_release(r->lock);
    free(r);
}

static bool append(const results *r, const result_case *c, err *e) {
    csv *rows = csv_new(), *samples = csv_new();
    add_row(rows, &c->row, r->samples_path);
    results_add_samples(samples, c->row.name, c->samples, c->count);
    bool ok =
        (c->count == 0 || csv_append(samples, r->samples_path, e)) && csv_append(rows, r->path, e);
    csv_free(rows);
    csv_free(samples);
    return ok;
}

bool results_add(results *r, const result_row *row, const timing_sample *samples, size_t count,
                 err *e) {
    results_list *l = &r->known;
    result_case *old = results_list_find(l, row->name), *c = old;
    if (old)
        free(old->samples);
    else
        c = ARRAY_ADD(l->cases, l->count, l->room);
    *c = (result_case){*row, array_new(count, sizeof *samples), count};
    if (count > 0)
        memcpy(c->samples, samples, count * sizeof *samples);
    return old ? write_files(r, e) : append(r, c, e);
}

/* Merging ----------------------------------------------------------------------------------- */

/* What times depend on and rows do not say themselves: times of other conditions do not belong in one file. A run has
 * one budget, but a file may have rows of several. */
static const char *const conditions[] = {"device", "api",  "driver",        "compiler", "os",
                                         "cpu",    "seed", "host compiler", "budget"};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

/* The first of them that is not the same; NULL: none. */
static const char *find_difference(const results_meta *a, const results_meta *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(results_meta_find(a, conditions[i]), results_meta_find(b, conditions[i])) != 0)
            return conditions[i];
    return NULL;
}

/* FOLDER/NAME.csv becomes FOLDER/baselines/NAME-DATE.csv, and so do its samples. */
static bool move_aside(const results *r, char *moved, size_t size, err *e) {
    char date[64], samples[PATH_MAX];
    const char *name = path_get_name(r->path);
    host_get_date(date, sizeof date);
    for (char *from = date, *to = date;; from++)
        if (*from != ':' && !(*to++ = *from))
            break;
    if (!path_print(moved, size, e, "%.*sbaselines/%.*s-%s.csv", (int)(name - r->path), r->path,
                    (int)strlen(name) - 4, name, date) ||
        !make_folder_of(moved, e) || !results_find_samples_path(moved, samples, sizeof samples, e))
        return false;
    const change both[] = {{.to = samples, .from = r->samples_path}, {moved, NULL, r->path}};
    return publish(r->path, both, 2, e);
}

static bool merge(results *r, const results_meta *m, char *moved, size_t size, err *e) {
    results_list there;
    err why = {.code = EXIT_OK};
    if (access(r->path, F_OK) != 0)
        return start_files(r, m, e);
    bool is_read = results_read(r->path, &there, &why);
    if (!is_read || find_difference(&there.meta, m, CONDITIONS - 1)) {
        if (is_read)
            results_list_free(&there);
        return move_aside(r, moved, size, e) && start_files(r, m, e);
    }
    /* Written again with what is whole: half a row of a writer that was killed is left out. */
    r->known = there;
    r->known.meta = *m;
    return write_files(r, e);
}

results *results_merge(const char *path, const results_meta *m, char *moved, size_t size, err *e) {
    results *r = results_new(path, e);
    moved[0] = 0;
    if (r && merge(r, m, moved, size, e))
        return r;
    results_close(r);
    return NULL;
}

bool results_check_resume(const char *path, const results_meta *was, const results_meta *now,
                          err *e) {
    const char *key = find_difference(was, now, CONDITIONS);
    return !key ||
           err_set(e, EXIT_USAGE,
                   "cannot resume %.80s: its %s was '%.40s' and is '%.40s' now; run without "
                   "--resume, or into another file",
                   path, key, results_meta_find(was, key), results_meta_find(now, key));
}

/* A whole run ------------------------------------------------------------------------------- */

bool results_write(const char *path, csv *rows, csv *samples, const char *failed, err *e) {
    char samples_path[PATH_MAX], failed_samples[PATH_MAX];
    if (!results_find_samples_path(path, samples_path, sizeof samples_path, e) ||
        (failed && !results_find_samples_path(failed, failed_samples, PATH_MAX, e)) ||
        !make_folder_of(path, e))
        return false;
    lock *held = publish_lock(path, e);
    const change all[] = {{.to = samples_path, .rows = samples},
                          {path, rows, NULL},
                          {.from = failed},
                          {.from = failed_samples}};
    bool ok = held && publish(path, all, failed ? 4 : 2, e);
    lock_release(held);
    return ok;
}

/* History ----------------------------------------------------------------------------------- */

/* By order statistics: no shape of the distribution is assumed. */
static void find_interval(const timing_sample *samples, size_t count, double *low, double *high) {
    timing_result r = {.samples = (timing_sample *)(uintptr_t)samples, .count = count};
    double *all = timing_list_clock(&r, CLOCK_GPU), reach = 0.98 * sqrt((double)count);
    stats_sort(all, count);
    double first = floor((double)count / 2 - reach), last = ceil((double)count / 2 + reach);
    *low = all[(size_t)fmax(0, first)];
    *high = all[(size_t)fmin((double)count - 1, last)];
    free(all);
}

static bool start_history(const char *path, const results_meta *m, err *e) {
    static const char *const titles[] = {"case", "date",      "commit", "build",   "kernel_hash",
                                         "n",    "median_ns", "low_ns", "high_ns", "labels"};
    csv *c = csv_new();
    csv_add_meta(c, "schema", results_meta_find(m, "schema"));
    csv_add_meta(c, "device", results_meta_find(m, "device"));
    csv_add_row(c, titles, sizeof titles / sizeof *titles);
    bool ok = csv_write(c, path, e);
    csv_free(c);
    return ok;
}

bool results_add_history(const char *path, const results_meta *m, const result_row *row,
                         const timing_sample *samples, err *e) {
    char file[4096];
    double low, high;
    if (row->gpu.count == 0)
        return true;
    if (!find_beside(path, "history", file, sizeof file, e) ||
        (access(file, F_OK) != 0 && !start_history(file, m, e)))
        return false;
    find_interval(samples, row->gpu.count, &low, &high);
    made_of_part part = {.sum = ""};
    made_of_find(row->made_of, "kernel", &part);
    const char *const texts[] = {row->name, row->date, row->commit, row->build, part.sum};
    const double numbers[] = {(double)row->gpu.count, row->gpu.median, low, high};
    csv *c = csv_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        csv_add_text(c, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[32];
        result_format_number(numbers[i], text, sizeof text);
        csv_add_text(c, text);
    }
    csv_add_text(c, row->labels);
    csv_end_row(c);
    bool ok = csv_append(c, file, e);
    csv_free(c);
    return ok;
}
