#include "model_bench_store.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comparison_print.h"
#include "harness/base/array.h"
#include "harness/base/path.h"
#include "kernels/ops.h"
#include "verb.h"

/* Names ------------------------------------------------------------------------------------- */

/* "SmolLM2 135M Instruct, Q4_0" to "model/SmolLM2-135M-Instruct/Q4_0/", or Q4_0-kv-f16. */
static void name_model(bench_store *b, bool has_halves) {
    char title[160], *format;
    open_model_get_title(b->model, title, sizeof title);
    format = strrchr(title, ',');
    snprintf(b->row.format, sizeof b->row.format, "%.15s", format + 2);
    *format = 0;
    snprintf(b->row.model, sizeof b->row.model, "%.127s", title);
    snprintf(b->row.kernel, sizeof b->row.kernel, "%.95s", title); /* what tables show */
    for (char *p = title; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
            *p = '-';
    snprintf(b->prefix, sizeof b->prefix, "model/%s/%s%s/", title, b->row.format,
             has_halves ? "-kv-f16" : "");
}

/* "tg32@d1900", "tg32wait@d1900" */
static void name_test(const bench_test *t, char *text, size_t size) {
    bench_test_get_name(t, text, size);
    char *to = text;
    for (const char *p = text; *p; p++)
        if (*p != ' ')
            *to++ = *p;
    *to = 0;
}

static bool parse_test(const char *text, bench_test *out) {
    unsigned count, depth = 0;
    char kind[3], again[48];
    int used = 0;
    if (sscanf(text, "%2[pgt]%u%n", kind, &count, &used) < 2)
        return false;
    bool waits = strncmp(text + used, "wait", 4) == 0;
    sscanf(text + used + (waits ? 4 : 0), "@d%u", &depth);
    *out = (bench_test){.depth = depth, .waits = waits};
    *(strcmp(kind, "pp") == 0 ? &out->prompt : &out->generate) = count;
    name_test(out, again, sizeof again);
    return count > 0 && strcmp(text, again) == 0;
}

/* Files ------------------------------------------------------------------------------------- */

static bool open_base(bench_store *b, const char *path, err *e) {
    const char *name = device_get_facts(b->model->device)->name;
    char own[PATH_MAX], folder[PATH_MAX];
    if (!*path) {
        if (!results_find_folder(name, folder, sizeof folder, e) ||
            !path_print(own, sizeof own, e, "%s/model_bench.csv", folder))
            return false;
        if (access(own, F_OK) != 0)
            return err_set(e, EXIT_INCONCLUSIVE, "there is no %.160s yet: --csv makes one", own);
        path = own;
    }
    if (!results_read(path, &b->base, e))
        return false;
    b->has_base = true;
    const char *was = results_meta_find(&b->base.meta, "device");
    return strcmp(was, name) == 0 ||
           err_set(e, EXIT_USAGE, "the baseline %.80s is from another device: '%.60s', not '%.60s'",
                   path, was, name);
}

static bool open_file(bench_store *b, const char *path, err *e) {
    char moved[PATH_MAX];
    b->file = results_merge(path, &b->meta, moved, sizeof moved, e);
    if (b->file && moved[0])
        fprintf(stderr, "%s was measured under other conditions: it is %s now\n", path, moved);
    return b->file != NULL;
}

bool bench_store_open(bench_store *b, const open_model *s, const weight_format *cache,
                      const char *csv, const char *baseline, uint64_t seed, err *e) {
    const device_facts *f = device_get_facts(s->device);
    *b = (bench_store){
        .model = s, .row = result_row_new(), .meta = results_meta_new(ASSAY_VERSION, f, seed)};
    result_row *r = &b->row;
    name_model(b, cache != NULL);
    snprintf(r->device, sizeof r->device, "%s", f->name);
    snprintf(r->api, sizeof r->api, "%s", f->api);
    snprintf(r->math, sizeof r->math, "%s", math_mode_get_name(f->math));
    snprintf(r->op, sizeof r->op, "model");
    r->repeats = 1;
    timing_get_labels(timing_find_labels(f) | LABEL_GPU_IS_WALL, r->labels, sizeof r->labels);
    result_row_sign(r, &b->meta);
    if (csv && baseline && strcmp(csv, baseline) == 0)
        return err_set(e, EXIT_USAGE, "--csv would replace the baseline %.120s", csv);
    return (!baseline || open_base(b, baseline, e)) && (!csv || open_file(b, csv, e));
}

void bench_store_close(bench_store *b) {
    results_close(b->file);
    results_list_free(&b->base);
    comparison_free(&b->comparison);
}

/* Rows -------------------------------------------------------------------------------------- */

size_t bench_store_list_tests(const bench_store *b, bench_test *out, size_t most) {
    size_t count = 0, length = strlen(b->prefix);
    for (size_t i = 0; i < b->base.count && count < most; i++) {
        const char *name = b->base.cases[i].row.name;
        count += strncmp(name, b->prefix, length) == 0 && parse_test(name + length, &out[count]);
    }
    return count;
}

/* The clock is the caller's. */
static timing_sample *list_samples(const bench_result *r) {
    timing_sample *all = array_new(r->repeats, sizeof *all);
    for (uint32_t i = 0; i < r->repeats; i++) {
        double ns = (double)r->sample_ns[i];
        all[i] = (timing_sample){.gpu_ns = ns, .wall_ns = ns, .gpu_is_wall = true};
    }
    return all;
}

static void compare(bench_store *b, const result_row *row, const timing_sample *samples,
                    size_t count) {
    comparison_row *c = comparison_add(&b->comparison, row->name);
    const result_case *base = results_list_find(&b->base, row->name);
    if (base) {
        comparison_add_run(c, &c->base, base->samples, base->count, CLOCK_WALL, base->row.labels);
        made_of_compare(base->row.made_of, row->made_of, c->note, sizeof c->note);
    }
    comparison_add_run(c, &c->now, samples, count, CLOCK_WALL, row->labels);
}

bool bench_store_add(bench_store *b, const bench_result *r, err *e) {
    result_row row = b->row;
    char test[48];
    timing_result all = {.samples = list_samples(r), .count = r->repeats};
    name_test(&r->test, test, sizeof test);
    snprintf(row.name, sizeof row.name, "%s%s", b->prefix, test);
    snprintf(row.variant, sizeof row.variant, "%s", test);
    snprintf(row.shape, sizeof row.shape, "%s", test);
    row.batch = r->test.prompt ? r->test.prompt : 1;
    row.gpu = timing_compute_stats(&all, CLOCK_GPU);
    row.wall = timing_compute_stats(&all, CLOCK_WALL);
    bool ok = registry_add_used(row.made_of, b->model->lib, e) &&
              made_of_add_one(row.made_of, b->model->lib, "runner", "model", e);
    if (ok && b->has_base)
        compare(b, &row, all.samples, all.count);
    ok = ok && (!b->file || results_add(b->file, &row, all.samples, all.count, e));
    free(all.samples);
    return ok;
}

exit_code bench_store_finish(bench_store *b, double min_effect, uint64_t seed, FILE *out) {
    comparison_options o = {.min_effect = min_effect / 100, .seed = seed};
    if (!b->has_base)
        return EXIT_OK;
    return comparison_print(&b->comparison, &o, out);
}
