/* mutants: see mutants.h. First which mutants there are, then how one is tried. */
#include "mutants.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "fill.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "harness/device/soft/object.h"
#include "harness/device/tape.h"

/* Files --------------------------------------------------------------------------------------- */

typedef struct {
    mutant_list *list;
    size_t start; /* of a path: where the name inside the folder begins */
} reading;

static bool read_file(void *context, const char *path, err *e) {
    const reading *r = context;
    if (!path_ends_with(path, ".metal") && !path_ends_with(path, ".h"))
        return true;
    mutant_file *f = ARRAY_ADD(r->list->files, r->list->file_count, r->list->file_room);
    *f = (mutant_file){.source = NULL};
    return path_print(f->name, sizeof f->name, e, "%s", path + r->start) &&
           (f->source = os_read_file(path, NULL, e));
}

static bool read_folder(const char *folder, mutant_list *l, err *e) {
    reading r = {l, strlen(folder) + 1};
    return folder_walk(folder, "", NULL, read_file, &r, e);
}

bool mutants_copy(const char *from, const char *to, err *e) {
    mutant_list l = {0};
    char path[PATH_MAX];
    bool ok = os_make_folder(to, e) && read_folder(from, &l, e);
    for (size_t i = 0; ok && i < l.file_count; i++) {
        const mutant_file *f = &l.files[i];
        const int inside = (int)(path_get_name(f->name) - f->name);
        ok = path_print(path, sizeof path, e, "%s/%.*s", to, inside, f->name) &&
             os_make_folder(path, e) && path_print(path, sizeof path, e, "%s/%s", to, f->name) &&
             os_write_file(path, f->source, strlen(f->source), e);
    }
    mutants_free(&l);
    return ok;
}

/* The part of a path after a folder; NULL if it is elsewhere. */
static const char *find_inside(const char *path, const char *folder) {
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    return path + n + (path[n] == '/');
}

bool mutants_prepare(err *e) {
    static char folders[LIBRARY_INCLUDES][PATH_MAX];
    static const char *list[LIBRARY_INCLUDES];
    library_project p = *library_get_project(NULL);
    char path[PATH_MAX], kernels[PATH_MAX];
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib && path_print(path, sizeof path, e, "%s", library_get_folder(lib));
    library_free(lib);
    if (!ok || !realpath(path, kernels))
        return ok; /* a folder that is missing is the reader's to report */
    size_t count = 0;
    for (size_t i = 0; ok && i < p.include_count && count + 2 <= LIBRARY_INCLUDES; i++) {
        ok = path_join(path, sizeof path, e, kernels, p.includes[i]);
        if (!ok || !realpath(path, folders[i]))
            continue;
        const char *inside = find_inside(folders[i], kernels);
        if (inside)
            list[count++] = inside;
        list[count++] = folders[i]; /* also what is not copied */
    }
    p.includes = list;
    p.include_count = count;
    library_set_project(&p);
    return ok;
}

/* The files that a kernel's file is made of, as its line marks name them. */
typedef struct {
    mutant_file **files;
    size_t count, room;
} sources;

static void find_sources(const mutant_list *l, const char *folder, const msl_unit *u, sources *s) {
    static const char *const slashes[] = {"/",
                                          "//"}; /* where the folder itself is one of includes */
    for (size_t i = 0; i < l->file_count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < sizeof slashes / sizeof *slashes; k++) {
            char named[PATH_MAX + 80];
            snprintf(named, sizeof named, "\"%s%s%s\"", folder, slashes[k], l->files[i].name);
            is_there = is_there || strstr(msl_get_text(u), named);
        }
        if (is_there)
            *ARRAY_ADD(s->files, s->count, s->room) = &l->files[i];
    }
}

/* Mutants ------------------------------------------------------------------------------------- */

typedef struct {
    const kernel_case *first; /* a case of it */
    sources sources;
    mutate_parts parts;
    size_t turn; /* 0 for the first kernel of its op and axes, 1 for the second, ... */
} kernel_parts;

static bool has_same_axes(const kernel_case *a, const kernel_case *b) {
    const kernel *x = a->kernel, *y = b->kernel;
    return a->op == b->op && x->format == y->format && x->accumulates == y->accumulates &&
           !x->tokens == !y->tokens;
}

static bool read_kernels(const char *folder, const mutant_list *l, const case_list *cases,
                         kernel_parts *out, size_t *count, err *e) {
    library *lib = library_new(NULL, folder, e);
    bool ok = lib != NULL;
    *count = 0;
    for (size_t i = 0; ok && i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        bool is_msl = path_ends_with(c->kernel->file, ".metal"); /* or a description is wrong */
        if (!is_msl || (*count > 0 && out[*count - 1].first->kernel == c->kernel))
            continue;
        kernel_parts *k = &out[*count];
        *k = (kernel_parts){.first = c};
        for (size_t j = 0; j < *count; j++)
            k->turn += has_same_axes(out[j].first, c);
        const kernel_parts *before = *count > 0 ? k - 1 : NULL;
        const msl_unit *unit = library_find_unit(lib, c->kernel->file, e);
        const char *text = unit ? msl_get_expanded(unit) : NULL;
        ++*count;
        if (before && strcmp(before->first->kernel->file, c->kernel->file) == 0)
            k->sources = before->sources;
        else if (unit)
            find_sources(l, folder, unit, &k->sources);
        ok = unit && mutate_find_parts(&text, 1, c->kernel->name, &k->parts, e);
    }
    library_free(lib);
    return ok;
}

static bool is_part(const kernel_parts *k, const mutant_file *f, const mutation *edit) {
    for (size_t i = 0; i < k->sources.count; i++)
        if (k->sources.files[i] == f)
            return mutate_has_part(&k->parts, edit->where);
    return false;
}

/* The first kernel of each op and its axes before the second of any. before: the last mutant of the list, or
 * NULL; one in the same part of the same file has the same kernels. */
static void find_kernels(const kernel_parts *kernels, size_t count, const mutant *before,
                         mutant *m) {
    m->kernels = array_new(count + 1, sizeof *m->kernels);
    if (before && before->file == m->file && strcmp(before->edit->where, m->edit->where) == 0) {
        m->kernel_count = before->kernel_count;
        memcpy(m->kernels, before->kernels, m->kernel_count * sizeof *m->kernels);
        return;
    }
    size_t last_turn = 0;
    for (size_t i = 0; i < count; i++)
        last_turn = kernels[i].turn > last_turn ? kernels[i].turn : last_turn;
    for (size_t turn = 0; turn <= last_turn; turn++)
        for (size_t i = 0; i < count; i++)
            if (kernels[i].turn == turn && is_part(&kernels[i], m->file, m->edit))
                m->kernels[m->kernel_count++] = kernels[i].first->kernel;
}

static void add_mutants(mutant_list *l, const mutant_file *f, const kernel_parts *kernels,
                        size_t count) {
    for (size_t i = 0; i < f->edits.count; i++) {
        mutant m = {.file = f, .edit = &f->edits.items[i]};
        find_kernels(kernels, count, l->count ? &l->items[l->count - 1] : NULL, &m);
        if (m.kernel_count == 0) {
            free(m.kernels);
            continue;
        }
        *ARRAY_ADD(l->items, l->count, l->room) = m;
    }
}

static bool is_used(const mutant_file *f, const kernel_parts *kernels, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < kernels[i].sources.count; j++)
            if (kernels[i].sources.files[j] == f)
                return true;
    return false;
}

bool mutants_find(const char *folder, const case_list *cases, mutant_list *out, err *e) {
    *out = (mutant_list){0};
    kernel_parts *kernels = array_new(cases->count + 1, sizeof *kernels);
    size_t count = 0;
    bool ok = read_folder(folder, out, e) && read_kernels(folder, out, cases, kernels, &count, e);
    for (size_t i = 0; ok && i < out->file_count; i++) {
        mutant_file *f = &out->files[i];
        if (!is_used(f, kernels, count))
            continue;
        ok = mutate_find(f->name, f->source, &f->edits, e);
        if (ok)
            add_mutants(out, f, kernels, count);
    }
    for (size_t i = 0; i < count; i++) {
        mutate_free_parts(&kernels[i].parts);
        if (i + 1 == count || kernels[i].sources.files != kernels[i + 1].sources.files)
            free(kernels[i].sources.files); /* the kernels of a file share them */
    }
    free(kernels);
    out->all = out->count;
    if (ok && out->count == 0)
        ok = err_set(e, EXIT_CANNOT, "nothing in %.160s can be mutated", folder);
    if (!ok)
        mutants_free(out);
    return ok;
}

void mutants_sample(mutant_list *l, size_t n, uint64_t seed) {
    rng r = rng_new(seed, "mutants");
    size_t kept = 0, left = l->count, wanted = n < left ? n : left;
    for (size_t i = 0; i < l->count; i++, left--) {
        if (wanted > 0 && rng_below(&r, (uint32_t)left) < wanted) {
            l->items[kept++] = l->items[i];
            wanted--;
        } else {
            free(l->items[i].kernels);
        }
    }
    l->count = kept;
}

void mutants_free(mutant_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].kernels);
    free(l->items);
    for (size_t i = 0; i < l->file_count; i++) {
        mutate_free(&l->files[i].edits);
        free(l->files[i].source);
    }
    free(l->files);
    *l = (mutant_list){0};
}

/* Trials: one mutant in a worker, from its text to its fate --------------------------------------

   Cheap steps first: compile; check, small cases before large ones; compare the machine code with
   that of the unmutated kernel; validate. The first failure ends it. Cases too large to run for
   thousands of mutants are left out: a mistake that only shows there counts as a survivor.

   A worker takes one mutant and ends: a wrong kernel may have written anywhere, and its compiled
   code is of no use to the next. */

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
    const char **kernels;
    size_t kernel_count, kernel_room;
    library *original, *fast, *checked;
    mutant_outcome *out;
} trial;

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
        *ARRAY_ADD(t->kernels, t->kernel_count, t->kernel_room) = name;
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
    free(t->kernels);
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
