/* result_row: see result_row.h. The columns of a row, as text and back. */
#include "result_row.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/host.h"
#include "harness/base/record.h"

#define TEXT(title, field) FIELD(result_row, field, FIELD_CHARS, title)
#define NUMBER(title, field) FIELD(result_row, field, FIELD_REAL, title, .may_be_empty = true)
/* Files that were written before there was such a column lack it. */
#define LATER(title, kind, field)                                                                  \
    FIELD(result_row, field, kind, title, .is_optional = true, .may_be_empty = true)

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
    const char *at = (const char *)r + c->at;
    double d;
    size_t n;
    *is_number = c->kind != FIELD_CHARS;
    if (c->kind == FIELD_CHARS)
        snprintf(text, size, "%s", at);
    else if (c->kind == FIELD_COUNT) {
        memcpy(&n, at, sizeof n);
        snprintf(text, size, "%zu", n);
    } else {
        memcpy(&d, at, sizeof d);
        result_format_number(d, text, size);
    }
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
