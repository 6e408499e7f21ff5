/* mutant_trial: one mutant in a worker, from its text to its fate.
 *
 * Cheap steps first: compile; check, small cases before large ones; compare the machine code with
 * that of the unmutated kernel; validate. The first failure ends it. Cases too large to run for
 * thousands of mutants are left out: a mistake that only shows there counts as a survivor.
 *
 * A worker takes one mutant and ends: a wrong kernel may have written anywhere, and its compiled
 * code is of no use to the next. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "harness/device/soft/inspect.h"
#include "mutants.h"

/* The largest product of a shape's sizes for which a case is run. */
#define CHECK_WORK 2097152.0
#define VALIDATE_WORK 131072.0

typedef struct {
    const char *scratch;
    uint64_t seed;
    double limit_s;
    mutant_finder *find;
    char folder[PATH_MAX]; /* of this worker */
} trial_plan;

typedef struct {
    const trial_plan *plan;
    char *task; /* its text, with NUL for tabs and commas */
    const char *kernels[256];
    size_t kernel_count;
    library *original, *fast, *checked;
    mutant_outcome *out;
} trial;

/* Tasks --------------------------------------------------------------------------------------- */

/* "number/file<TAB>begin bytes<TAB>kernel,kernel,<TAB>text in its place": the number makes each a group of its
 * own (worker.h). An unmutated kernel has no file. */
char *mutant_get_task(size_t number, const mutant *m, const kernel *plain) {
    size_t count = m ? m->kernel_count : 1;
    size_t room = 256 + (m ? strlen(m->file->name) + strlen(m->edit->with) : 0) + 128 * count;
    char *text = array_new(1, room);
    int n = snprintf(text, room, "%zu/%s\t%u %u\t", number, m ? m->file->name : "",
                     m ? m->edit->begin : 0, m ? m->edit->bytes : 0);
    for (size_t i = 0; i < count; i++)
        n += snprintf(text + n, room - (size_t)n, "%.120s,", (m ? m->kernels[i] : plain)->name);
    snprintf(text + n, room - (size_t)n, "\t%s", m ? m->edit->with : "");
    return text;
}

static bool read_task(trial *t, const char *task, const char **file, mutation *edit, err *e) {
    enum { FIELDS = 4 };
    char *fields[FIELDS];
    t->task = strdup(task);
    if (!t->task || !worker_cut_task(t->task, fields, FIELDS) || !strchr(fields[0], '/') ||
        sscanf(fields[1], "%u %u", &edit->begin, &edit->bytes) != 2)
        return err_set(e, EXIT_CANNOT, "the task %.40s is malformed", task);
    *file = strchr(fields[0], '/') + 1;
    edit->with = fields[3];
    for (char *rest = fields[2], *name; (name = strtok_r(rest, ",", &rest));)
        if (t->kernel_count < sizeof t->kernels / sizeof *t->kernels)
            t->kernels[t->kernel_count++] = name;
    return true;
}

/* The mutant's folder: the original files, and the mutated one. */
static bool make_folder(const trial *t, const char *folder, const char *file, const mutation *edit,
                        err *e) {
    char original[PATH_MAX], path[PATH_MAX];
    if (!path_print(original, sizeof original, e, "%s/original", t->plan->scratch) ||
        !path_print(path, sizeof path, e, "%s/%s", folder, file))
        return false;
    if (!mutants_copy(original, folder, e) || !*file)
        return *e->text == 0;
    char *source = os_read_file(path, NULL, e);
    char *changed = source ? mutate_apply(source, edit) : NULL;
    bool ok = changed && os_write_file(path, changed, strlen(changed), e);
    free(source);
    free(changed);
    return ok;
}

/* Devices ------------------------------------------------------------------------------------- */

/* The process's own CPU time is that of kernels: compilers are other processes. The signal ends the
 * worker, and the other side knows what it means. */
static void limit_time(double seconds) {
    struct rusage used;
    struct rlimit limit;
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        return;
    double so_far = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec;
    rlim_t wanted = (rlim_t)(so_far + seconds + 1);
    if (limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max) {
        limit.rlim_cur = wanted;
        setrlimit(RLIMIT_CPU, &limit);
    }
}

static library *open_library(const char *folder, bool is_checked, err *e) {
    setenv("MTL_SHADER_VALIDATION", is_checked ? "1" : "0", 1);
    device *d = device_open("soft", e);
    library *lib = d ? library_new(d, folder, e) : NULL;
    if (!lib)
        device_close(d);
    return lib;
}

static void close_library(library *lib) {
    device *d = lib ? library_get_device(lib) : NULL;
    library_free(lib);
    if (d)
        device_close(d);
}

/* Cases --------------------------------------------------------------------------------------- */

static bool find_cases(const trial *t, const char *name, case_list *out, err *e) {
    if (!t->plan->find(name, out, e))
        return false;
    check_sort_cases(out->items, out->count);
    return true;
}

static void end_trial(trial *t, mutant_fate fate, const char *case_name, const char *why) {
    t->out->fate = fate;
    snprintf(t->out->by, sizeof t->out->by, "%.70s: %.110s", case_name, why);
}

/* True if all cases pass; else it is caught. */
static bool check_cases(trial *t, library *lib, const case_list *cases, bool is_checked) {
    for (size_t i = 0; i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        check_result result;
        err why = {.code = EXIT_OK};
        if (i > 0 && shape_count_values(&c->shape) > (is_checked ? VALIDATE_WORK : CHECK_WORK))
            break;
        bool made = check_case(lib, c, NULL, t->plan->seed, &result, &why);
        if (made && result.verdict != CHECK_FAIL)
            continue;
        const finding_list *found = device_get_findings(library_get_device(lib));
        if (found->count > 0)
            snprintf(t->out->class, sizeof t->out->class, "%.31s",
                     finding_get_name(found->items[0].what));
        end_trial(t, is_checked ? MUTANT_VALIDATED : MUTANT_CHECKED, c->name,
                  made ? result.message : why.text);
        return false;
    }
    return true;
}

/* Opens the smallest case in both libraries: does each launch run the same code? */
static bool is_same_code(trial *t, const kernel_case *c, err *e) {
    kernel_case a = *c, b = *c;
    bool is_same = case_open(&a, t->original, 1, e);
    bool is_open = case_open(&b, t->fast, 1, e);
    is_same = is_same && is_open && a.tape->count == b.tape->count;
    for (size_t i = 0; is_same && i < a.tape->count; i++)
        is_same = soft_is_same_code(a.tape->launches[i].pipeline, b.tape->launches[i].pipeline);
    case_close(&a);
    case_close(&b);
    return is_same;
}

static bool does_compile(trial *t, const kernel_case *c) {
    kernel_case opened = *c;
    err why = {.code = EXIT_OK};
    bool ok = case_open(&opened, t->fast, 1, &why);
    case_close(&opened);
    if (!ok)
        end_trial(t, MUTANT_UNCOMPILED, c->name, why.detail[0] ? why.detail : why.text);
    return ok;
}

/* The kernels that contain it, one after another. Sets its fate. */
static bool try_kernels(trial *t, err *e) {
    size_t tried = 0, different = 0;
    bool ok = true, is_alive = true;
    for (; ok && is_alive && tried < t->kernel_count && different < MUTANT_KERNELS; tried++) {
        case_list cases;
        ok = find_cases(t, t->kernels[tried], &cases, e);
        if (!ok)
            break;
        is_alive = does_compile(t, &cases.items[0]) && check_cases(t, t->fast, &cases, false);
        different += is_alive && !is_same_code(t, &cases.items[0], e);
        free(cases.items);
    }
    limit_time(t->plan->limit_s);
    for (size_t i = 0; ok && is_alive && i < tried; i++) {
        case_list cases;
        ok = find_cases(t, t->kernels[i], &cases, e);
        is_alive = ok && check_cases(t, t->checked, &cases, true);
        free(cases.items);
    }
    if (ok && is_alive)
        t->out->fate = different == 0 ? MUTANT_EQUIVALENT : MUTANT_SURVIVED;
    return ok;
}

/* The worker ---------------------------------------------------------------------------------- */

static bool run_trial(trial *t, const char *name, err *e) {
    const char *file = "";
    mutation edit = {.with = NULL};
    char original[PATH_MAX], folder[PATH_MAX];
    if (!path_print(original, sizeof original, e, "%s/original", t->plan->scratch) ||
        !path_print(folder, sizeof folder, e, "%s/kernels", t->plan->folder))
        return false;
    bool ok = read_task(t, name, &file, &edit, e) && make_folder(t, folder, file, &edit, e) &&
              (t->original = open_library(original, false, e)) &&
              (t->fast = open_library(folder, false, e)) &&
              (t->checked = open_library(folder, true, e));
    limit_time(t->plan->limit_s);
    ok = ok && try_kernels(t, e);
    close_library(t->original);
    close_library(t->fast);
    close_library(t->checked);
    free(t->task);
    return ok;
}

static void *try_mutant(void *context, const char *name, size_t *bytes, bool *retire) {
    const trial_plan *plan = context;
    mutant_outcome *out = array_new(1, sizeof *out);
    trial t = {.plan = plan, .out = out};
    err e = {.code = EXIT_OK};
    if (!run_trial(&t, name, &e)) {
        out->fate = MUTANT_FATES;
        snprintf(out->by, sizeof out->by, "%.190s", e.text);
    }
    os_remove_folder(plan->folder);
    *bytes = sizeof *out;
    *retire = true;
    return out;
}

exit_code mutant_serve(const char *scratch, uint64_t seed, double limit_s, mutant_finder *find,
                       err *e) {
    trial_plan plan = {.scratch = scratch, .seed = seed, .limit_s = limit_s, .find = find};
    if (snprintf(plan.folder, sizeof plan.folder, "%s/worker-%ld", scratch, (long)getpid()) >=
            (int)sizeof plan.folder - 64 ||
        !os_make_folder(plan.folder, e))
        return err_set(e, EXIT_CANNOT, "cannot work in %.160s", scratch) ? EXIT_OK : e->code;
    /* Compiled mutants are of no further use, but precompiled headers and unmutated kernels are: all
     * workers share a cache that ends with the run. One thread, so that the same seed gives the same
     * fate. Strict: without its guard, a store by one lane becomes one of the same value by all. */
    setenv("XDG_CACHE_HOME", scratch, 1);
    setenv("ASSAY_CACHE_LIMIT", "200M", 1);
    setenv("ASSAY_THREADS", "1", 1);
    setenv("ASSAY_STRICT", "1", 1);
    setenv("ASSAY_LOOP_SECONDS", "3", 0);
    return worker_serve(try_mutant, &plan, e) ? EXIT_OK : e->code;
}
