/* result_row: the columns of a result, as text and back; and the head of a result file. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/host.h"
#include "result_row.h"

/* How a column is kept in a row. */
typedef enum { AS_TEXT, AS_DOUBLE, AS_U64, AS_SIZE } column_kind;

typedef struct {
    const char *title;
    column_kind kind;
    size_t at, size;
} column;

#define TEXT(title, field)                                                                         \
    { title, AS_TEXT, offsetof(result_row, field), sizeof(((result_row *)0)->field) }
#define NUMBER(title, field)                                                                       \
    { title, AS_DOUBLE, offsetof(result_row, field), 0 }
#define WHOLE(title, field)                                                                        \
    { title, AS_U64, offsetof(result_row, field), 0 }

static const column columns[RESULT_COLUMNS] = {
    TEXT("op", op),
    TEXT("variant", variant),
    TEXT("shape", shape),
    TEXT("input", input),
    TEXT("regime", regime),
    TEXT("cache", cache),
    TEXT("math", math),
    NUMBER("median_ns", gpu.median),
    NUMBER("min_ns", gpu.min),
    NUMBER("q1_ns", gpu.q1),
    NUMBER("q3_ns", gpu.q3),
    NUMBER("p95_ns", gpu.p95),
    NUMBER("mean_ns", gpu.mean),
    NUMBER("mad_ns", gpu.mad),
    {"n", AS_SIZE, offsetof(result_row, gpu.count), 0},
    NUMBER("encode_ns", encode_ns),
    NUMBER("wall_ns", wall_ns),
    WHOLE("repeats", repeats),
    WHOLE("copies", copies),
    WHOLE("bytes", bytes),
    WHOLE("flops", flops),
    NUMBER("gb_s", gb_s),
    NUMBER("gflop_s", gflop_s),
    NUMBER("roof_gb_s", roof_gb_s),
    NUMBER("pct_roof", pct_roof),
    NUMBER("launch_ns", launch_ns),
    NUMBER("submit_ns", submit_ns),
    TEXT("stop", stop),
    TEXT("label", label),
    TEXT("kernel_hash", hash),
    TEXT("message", message),
};

const char *result_get_title(int i) {
    return columns[i].title;
}

void result_get_key(const result_row *r, char *text, size_t size) {
    snprintf(text, size, "%s/%s/%s/%s/%s", r->variant, r->shape, r->input, r->regime, r->cache);
}

void result_get_column(const result_row *r, int i, char *text, size_t size, bool *is_number) {
    const column *c = &columns[i];
    const char *at = (const char *)r + c->at;
    double d;
    uint64_t u;
    size_t n;
    *is_number = c->kind != AS_TEXT;
    switch (c->kind) {
    case AS_TEXT:
        snprintf(text, size, "%s", at);
        return;
    case AS_U64:
        memcpy(&u, at, sizeof u);
        snprintf(text, size, "%" PRIu64, u);
        return;
    case AS_SIZE:
        memcpy(&n, at, sizeof n);
        snprintf(text, size, "%zu", n);
        return;
    case AS_DOUBLE:
        memcpy(&d, at, sizeof d);
        if (isnan(d))
            snprintf(text, size, "nan");
        else /* times in ns and ratios: nobody measures more digits */
            snprintf(text, size, "%.9g", d);
    }
}

bool result_read_row(const csv_file *f, size_t row, result_row *out, err *e) {
    *out = (result_row){.gpu = {.max = NAN, .iqr = NAN}};
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        const column *c = &columns[i];
        char *at = (char *)out + c->at;
        size_t from;
        double d;
        if (!csv_find_column(f, c->title, &from, e)) {
            if (c->at != offsetof(result_row, math))
                return false;
            *e = (err){.code = EXIT_OK};
            continue;
        }
        if (c->kind == AS_TEXT) {
            snprintf(at, c->size, "%s", csv_get_text(f, row, from));
            continue;
        }
        if (!csv_get_double(f, row, from, &d, e))
            return false;
        if (c->kind == AS_DOUBLE) {
            memcpy(at, &d, sizeof d);
            continue;
        }
        if (!(d >= 0 && d < 1e18 && d == floor(d)))
            return err_set(
                e, EXIT_USAGE, "%.120s:%zu: column '%s' takes a whole number, not '%.40s'",
                csv_get_path(f), csv_get_line(f, row), c->title, csv_get_text(f, row, from));
        uint64_t u = (uint64_t)d;
        size_t n = (size_t)u;
        memcpy(at, c->kind == AS_U64 ? (void *)&u : (void *)&n,
               c->kind == AS_U64 ? sizeof u : sizeof n);
    }
    return true;
}

/* The head ---------------------------------------------------------------------------------- */

void results_meta_add(results_meta *m, const char *key, const char *value) {
    assert(m->count < RESULTS_META);
    results_fact *f = &m->facts[m->count++];
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
    host_get_driver(f->api, text, sizeof text);
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
    snprintf(text, sizeof text, "%" PRIu64, seed);
    results_meta_add(&m, "seed", text);
    host_get_date(text, sizeof text);
    results_meta_add(&m, "date", text);
    return m;
}
