#include "lint_device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "harness/device/device.h"
#include "output.h"

enum { FILE_SECONDS = 60 };

/* What travels back: this, followed by the text to print. */
typedef struct {
    size_t kernels, compiled;
    bool is_read; /* the file was parsed */
} answer;

/* The worker's side ---------------------------------------------------------------------------- */

typedef struct {
    device *device;
    const lint_device_settings *settings;
    msl_extras extras;
} bench;

constant_value *lint_make_ones(const msl_unit *u) {
    size_t count = msl_count_constants(u);
    constant_value *ones = array_new(count + 1, sizeof *ones);
    for (size_t i = 0; i < count; i++) {
        const msl_constant *c = msl_get_constant(u, i);
        elem type;
        if (!elem_find_msl(c->type, &type))
            type = ELEM_U8; /* bool */
        ones[i] = (constant_value){.index = (uint32_t)c->index, .type = type};
        elem_write(type, &ones[i].bits, 0, 1);
    }
    return ones;
}

static void print_pipeline(FILE *out, const pipeline *p) {
    fprintf(out, "  %-48s %7u threads %4u lanes %7u bytes\n", p->kernel, p->max_group_threads,
            p->simd_width, p->threadgroup_bytes);
}

/* The same text does not compile for each of its kernels: its messages are printed once. */
static void print_failure(FILE *out, const err *why, char *last, size_t size) {
    fprintf(out, "  %s\n", why->text);
    if (strncmp(last, why->detail, size - 1) == 0)
        return;
    size_t length = strlen(why->detail);
    fprintf(out, "%s%s", why->detail, why->detail[length - 1] == '\n' ? "" : "\n");
    snprintf(last, size, "%s", why->detail);
}

static answer compile_unit(const bench *b, const msl_unit *u, FILE *out) {
    answer a = {.is_read = true};
    static char last[sizeof((err *)0)->detail];
    last[0] = 0;
    constant_value *ones = lint_make_ones(u);
    for (size_t i = 0; i < msl_count_kernels(u); i++) {
        const char *name = msl_get_kernel(u, i)->host_name;
        err why = {.code = EXIT_OK};
        if (msl_get_problem(u, i))
            continue;
        a.kernels++;
        pipeline *p =
            device_new_pipeline(b->device, u, name, ones, msl_count_constants(u), MATH_SAFE, &why);
        a.compiled += p != NULL;
        if (!p)
            print_failure(out, &why, last, sizeof last);
        else if (!b->settings->brief)
            print_pipeline(out, p);
        pipeline_free(p);
    }
    free(ones);
    return a;
}

static void *compile_file(void *context, const char *task, size_t *bytes, bool *retire) {
    (void)retire;
    bench *b = context;
    const char *path = strchr(task, '/') + 1;
    char *text = NULL;
    size_t used = 0;
    err why = {.code = EXIT_OK};
    FILE *out = open_memstream(&text, &used);
    assert(out);
    msl_unit *u = msl_load_with(path, &b->extras, &why);
    answer a = u ? compile_unit(b, u, out) : (answer){0};
    if (!u)
        fprintf(out, "  %s\n%s\n", why.text, why.detail);
    msl_free(u);
    fclose(out);
    *bytes = sizeof a + used;
    char *both = array_new(1, *bytes + 1);
    memcpy(both, &a, sizeof a);
    memcpy(both + sizeof a, text, used);
    free(text);
    return both;
}

exit_code lint_device_serve(const lint_device_settings *s, const msl_extras *extras, err *e) {
    bench b = {.device = device_open(s->device, e), .settings = s};
    if (b.device)
        b.extras = device_complete_extras(b.device, extras);
    bool ok = b.device && worker_serve(compile_file, &b, e);
    device_close(b.device);
    return ok ? EXIT_OK : e->code;
}

/* The other side ------------------------------------------------------------------------------- */

typedef struct {
    const char *const *paths;
    size_t errors, kernels;
} totals;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    totals *t = context;
    answer a = {0};
    if (o->failure[0]) {
        printf("%s: %s\n", t->paths[task], o->failure);
        t->errors++;
        return output_flush(e);
    }
    if (o->bytes < sizeof a)
        return err_set(e, EXIT_CANNOT, WORKER_OTHER_BUILD);
    memcpy(&a, o->answer, sizeof a);
    printf("%s: %zu of %zu kernel%s compile%s\n", t->paths[task], a.compiled, a.kernels,
           a.kernels == 1 ? "" : "s", a.kernels == 1 ? "s" : "");
    fwrite((const char *)o->answer + sizeof a, 1, o->bytes - sizeof a, stdout);
    t->errors += a.is_read ? a.kernels - a.compiled : 1;
    t->kernels += a.kernels;
    return output_flush(e);
}

/* A path after a number of its own: each file is a group, and a hang gives up that group alone. */
static const char **make_tasks(const char *const *paths, size_t count) {
    const char **tasks = array_new(count + 1, sizeof *tasks);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(paths[i]) + 24;
        char *text = array_new(1, size);
        snprintf(text, size, "%zu/%s", i, paths[i]);
        tasks[i] = text;
    }
    return tasks;
}

bool lint_device_run(const lint_device_settings *s, const char *const *paths, size_t count,
                     size_t *errors, err *e) {
    device *d = device_open(s->device, e); /* what it is; workers have their own */
    if (!d)
        return false;
    printf("# device: %s\n# compiler: %s\n", device_get_facts(d)->name,
           device_get_facts(d)->compiler);
    device_close(d);
    const char **tasks = make_tasks(paths, count);
    totals t = {.paths = paths};
    progress p = progress_new(stderr, "files", count);
    bool ok = worker_run(&(worker_plan){.arguments = s->arguments,
                                        .tasks = tasks,
                                        .count = count,
                                        .jobs = worker_count_jobs(16),
                                        .timeout_s = FILE_SECONDS,
                                        .deliver = deliver,
                                        .context = &t,
                                        .progress = &p},
                         e);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)tasks[i]);
    free(tasks);
    *errors = t.errors;
    if (ok)
        printf("%zu kernel%s in %zu file%s, %zu of them %s not compile\n", t.kernels,
               t.kernels == 1 ? "" : "s", count, count == 1 ? "" : "s", t.errors,
               t.errors == 1 ? "does" : "do");
    return ok;
}
