/* cmd_lint: `assay lint FILE.metal...`. Messages as compilers print them, then one line per file
 * and one for all. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/progress.h"
#include "harness/base/record.h"
#include "harness/base/worker.h"
#include "harness/check/lint.h"
#include "harness/device/device.h"
#include "lint_agx.h"
#include "outcome.h"
#include "project/project.h"
#include "verb.h"

static struct {
    lint_agx_settings on_agx;
    bool ptx, agx, worker;
    const char *sarif, *device;
    option_list folders, macros;
} settings;

static const option options[] = {
    FLAG_OPTION("brief", &settings.on_agx.brief, "print only messages and totals, not the kernels"),
    FLAG_OPTION("ptx", &settings.ptx,
                "only compile for NVIDIA GPUs, and assemble if ptxas exists; needs none"),
    TEXT_OPTION("device", &settings.device, "D",
                "only compile on this device: its compiler's messages, each pipeline's limits"),
    FLAG_OPTION(
        "agx", &settings.agx,
        "only compile for Apple's M1 with Mesa's compiler: instructions, registers, scratch"),
    TEXT_OPTION("compare", &settings.on_agx.compare, "FILE.metal",
                "with --agx: beside each kernel its other version in FILE.metal"),
    TEXT_OPTION("code", &settings.on_agx.code, "KERNEL", "with --agx: print KERNEL's machine code"),
    TEXT_OPTION("csv", &settings.on_agx.csv, "FILE.csv", "with --agx: also write a row per kernel"),
    FLAG_OPTION("json", &settings.on_agx.json, "print one JSON object instead of the messages"),
    TEXT_OPTION("sarif", &settings.sarif, "FILE.sarif",
                "also write them as SARIF, for code scanning"),
    LIST_OPTION("I|include", &settings.folders, "DIR", "look for included files in DIR"),
    LIST_OPTION("D|define", &settings.macros, "NAME[=V]", "define a macro"),
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

typedef struct {
    char **paths;
    size_t count, room;
} path_list;

static bool add_path(void *context, const char *path, err *e) {
    path_list *list = context;
    char *copy = strdup(path);
    (void)e;
    assert(copy);
    *ARRAY_ADD(list->paths, list->count, list->room) = copy;
    return true;
}

static void free_paths(path_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

/* Kernels in a folder called cuda are for NVIDIA GPUs, and no other compiler takes them. */
static bool is_for_others(const char *name) {
    bool is_nvidia = settings.ptx || (settings.device && strncmp(settings.device, "cuda", 4) == 0);
    return strcmp(name, "cuda") == 0 && !is_nvidia;
}

static bool find_files(const char *const *names, size_t count, const char *kernels, path_list *list,
                       err *e) {
    names = count ? names : &kernels;
    if (!names[0])
        return err_set(e, EXIT_USAGE, "name a .metal file or a folder, as in assay lint kernels");
    for (size_t i = 0; i < (count ? count : 1); i++) {
        size_t before = list->count;
        if (!os_is_folder(names[i]))
            add_path(list, names[i], e);
        else if (!folder_walk(names[i], ".metal", is_for_others, add_path, list, e))
            return false;
        else if (list->count == before)
            return err_set(e, EXIT_USAGE, "there is no .metal file in %.200s", names[i]);
    }
    return true;
}

static void print_count(size_t count, const char *what, const char *after) {
    printf("%zu %s%s%s", count, what, count == 1 ? "" : "s", after);
}

static void print_remarks(const remark_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const remark *m = &list->items[i];
        printf("%s:%d:%d: %s: %s [%s]\n", m->file, m->line, m->column,
               m->kind == REMARK_ERROR ? "error" : "warning", m->text, m->rule);
    }
}

typedef struct {
    size_t files, kernels, compiled, errors, warnings;
} totals;

static void print_totals(const totals *t) {
    print_count(t->kernels, "kernel", ", ");
    printf("%zu compile%s, ", t->compiled, t->compiled == 1 ? "s" : "");
    print_count(t->errors, "error", ", ");
    print_count(t->warnings, "warning", "");
}

static void print_report(const char *path, const lint_report *r, totals *all) {
    totals t = {1, r->kernel_count, 0, remark_count(&r->remarks, REMARK_ERROR),
                remark_count(&r->remarks, REMARK_WARNING)};
    print_remarks(&r->remarks);
    for (size_t i = 0; i < r->kernel_count; i++) {
        const lint_kernel *k = &r->kernels[i];
        t.compiled += k->compiles;
        if (!settings.on_agx.brief)
            printf("%s:%d: kernel %s%s\n", path, k->line, k->name,
                   !k->supported  ? " is not supported"
                   : !k->compiles ? " does not compile"
                                  : "");
    }
    printf("%s: ", path);
    print_totals(&t);
    if (!r->compiled)
        puts(", not linted: it does not compile");
    else if (!r->strict.taken)
        printf(", compiled, not linted: the strict parser does not accept %s\n", r->strict.why);
    else
        puts(", linted");
    *all = (totals){all->files + 1, all->kernels + t.kernels, all->compiled + t.compiled,
                    all->errors + t.errors, all->warnings + t.warnings};
}

static const field place_fields[] = {
    FIELD(place, path, FIELD_TEXT, "file"),        FIELD(place, line, FIELD_INTEGER, "line"),
    FIELD(place, column, FIELD_INTEGER, "column"), FIELD(place, level, FIELD_TEXT, "level"),
    FIELD(place, rule, FIELD_CHARS, "rule"),       FIELD(place, text, FIELD_CHARS, "message"),
};

static void print_json(const place_list *places, size_t files, size_t errors) {
    json j = json_start(stdout, '{');
    json_add_text(&j, "assay", ASSAY_VERSION);
    json_add_count(&j, "files", files);
    json_add_count(&j, "errors", errors);
    record_list_json(&(record)RECORD(place_fields), places->items, places->count, sizeof(place),
                     "messages", &j);
    json_close(&j);
}

static bool lint_files(const path_list *files, const msl_extras *extras, size_t *errors, err *e) {
    place_list places = {.count = 0};
    totals all = {0};
    linter *l = linter_new(e);
    bool ok = l != NULL;
    progress p = progress_new(stderr, "files", files->count);
    for (size_t i = 0; i < files->count && ok; i++) {
        lint_report r;
        ok = linter_check(l, files->paths[i], extras, &r, e);
        progress_hide(&p);
        if (ok) {
            places_add_remarks(&places, &r.remarks);
            if (!settings.on_agx.json)
                print_report(files->paths[i], &r, &all);
            *errors += remark_count(&r.remarks, REMARK_ERROR);
            ok = verb_flush(e);
        }
        lint_report_free(&r);
        progress_update(&p, i + 1);
    }
    progress_hide(&p);
    linter_free(l);
    if (ok && settings.on_agx.json)
        print_json(&places, files->count, *errors);
    if (all.files > 1 || (all.files && settings.on_agx.brief)) {
        print_count(all.files, "file", ": ");
        print_totals(&all);
        putchar('\n');
    }
    ok = ok && verb_flush(e);
    places_annotate(stderr, &places);
    ok = ok && (!settings.sarif || places_write_sarif(settings.sarif, "lint", &places, e));
    places_free(&places);
    return ok;
}

static bool compile_files(const path_list *files, const msl_extras *extras, size_t *errors,
                          err *e) {
    ptx_compiler *c = ptx_compiler_new(LINT_CAPABILITY, e);
    char assembler[PATH_MAX] = "";
    bool ok = c != NULL, assembles = ptx_find_tool("ptxas", assembler, sizeof assembler);
    if (ok)
        printf("# compiler: %s; %s%s\n", ptx_compiler_get_name(c),
               assembles ? "assembled by " : "not assembled: there is no ptxas",
               assembles ? assembler : "");
    progress p = progress_new(stderr, "files", files->count);
    for (size_t i = 0; i < files->count && ok; i++) {
        remark_list remarks = {0};
        size_t kernels, compiled;
        ok = lint_check_ptx(c, files->paths[i], extras, &remarks, &kernels, &compiled, e);
        progress_hide(&p);
        if (ok) {
            print_remarks(&remarks);
            printf("%s: ", files->paths[i]);
            print_count(kernels, "kernel", ", ");
            printf("%zu compile%s for NVIDIA GPUs\n", compiled, compiled == 1 ? "s" : "");
            *errors += kernels - compiled;
            ok = verb_flush(e);
        }
        remark_free(&remarks);
        progress_update(&p, i + 1);
    }
    progress_hide(&p);
    ptx_compiler_free(c);
    return ok;
}

/* On a device: every kernel of a file, compiled by the device's own compiler --------------------- */

enum { FILE_SECONDS = 60 };

/* Comes before the text to print. */
typedef struct {
    size_t kernels, compiled;
    bool is_read; /* the file was parsed */
} answer;

/* Files are compiled in workers, which are this verb again with the hidden option --worker: one at
 * which a compiler crashes or hangs fails alone. */
typedef struct {
    device *device;
    msl_extras extras;
} bench;

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
        else if (!settings.on_agx.brief)
            print_pipeline(out, p);
        pipeline_free(p);
    }
    free(ones);
    return a;
}

static void *compile_file(void *context, const char *task, size_t *bytes, bool *retire) {
    (void)retire;
    bench *b = context;
    err why = {.code = EXIT_OK};
    memory_file *text = memory_file_new();
    msl_unit *u = msl_load_with(strchr(task, '/') + 1, &b->extras, &why);
    answer a = u ? compile_unit(b, u, text->out) : (answer){0};
    if (!u)
        fprintf(text->out, "  %s\n%s\n", why.text, why.detail);
    msl_free(u);
    return worker_pack(&a, sizeof a, text, bytes);
}

static exit_code serve(const msl_extras *extras, err *e) {
    bench b = {.device = device_open(settings.device, e)};
    if (b.device)
        b.extras = device_complete_extras(b.device, extras);
    bool ok = b.device && worker_serve(compile_file, &b, e);
    device_close(b.device);
    return ok ? EXIT_OK : e->code;
}

typedef struct {
    const char *const *paths;
    size_t errors, kernels;
} device_totals;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    device_totals *t = context;
    answer a = {0};
    if (o->failure[0]) {
        printf("%s: %s\n", t->paths[task], o->failure);
        t->errors++;
        return verb_flush(e);
    }
    const char *text = worker_unpack(o, &a, sizeof a, e);
    if (!text)
        return false;
    printf("%s: %zu of %zu kernel%s compile%s\n", t->paths[task], a.compiled, a.kernels,
           a.kernels == 1 ? "" : "s", a.kernels == 1 ? "s" : "");
    fputs(text, stdout);
    t->errors += a.is_read ? a.kernels - a.compiled : 1;
    t->kernels += a.kernels;
    return verb_flush(e);
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

static bool compile_on_device(const char *const *paths, size_t count, const char *const *arguments,
                              size_t *errors, err *e) {
    device *d = device_open(settings.device, e); /* what it is; workers have their own */
    if (!d)
        return false;
    printf("# device: %s\n# compiler: %s\n", device_get_facts(d)->name,
           device_get_facts(d)->compiler);
    device_close(d);
    const char **tasks = make_tasks(paths, count);
    device_totals t = {.paths = paths};
    progress p = progress_new(stderr, "files", count);
    bool ok = worker_run(&(worker_plan){.arguments = arguments,
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

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    path_list files = {0};
    size_t errors = 0;
    library_project sources;
    if (!project_find_sources(&sources, e))
        return e->code;
    const char *folders[OPTION_LIST_MAX + PROJECT_INCLUDES];
    size_t folder_count = 0;
    for (size_t i = 0; i < settings.folders.count; i++)
        folders[folder_count++] = settings.folders.items[i];
    for (size_t i = 0; i < sources.include_count; i++)
        folders[folder_count++] = sources.includes[i];
    msl_extras extras = {.folders = folders,
                         .macros = settings.macros.items,
                         .folder_count = folder_count,
                         .macro_count = settings.macros.count};
    if (!msl_ask_language(&extras.language, e))
        return e->code;
    const char *const *arguments = LIST_VALUES("lint", options);
    if (settings.worker)
        return serve(&extras, e);
    if ((settings.on_agx.compare || settings.on_agx.code || settings.on_agx.csv) && !settings.agx)
        return err_code(e, EXIT_USAGE, "--compare, --code and --csv are for --agx");
    bool ok = find_files(names, count, sources.folder, &files, e) &&
              (settings.agx      ? lint_agx_run(&settings.on_agx, (const char *const *)files.paths,
                                                files.count, &extras, e)
               : settings.device ? compile_on_device((const char *const *)files.paths, files.count,
                                                     arguments, &errors, e)
               : settings.ptx    ? compile_files(&files, &extras, &errors, e)
                                 : lint_files(&files, &extras, &errors, e));
    free_paths(&files);
    return !ok ? e->code : errors > 0 ? EXIT_WRONG : EXIT_OK;
}

VERB(verb_lint, "lint", run_verb, .names = "FILE.metal...",
     .about = "find mistakes in .metal files without running them, and which kernels compile",
     .notes =
         "FILE is any .metal file or a folder of them (default: the kernels of the project, or\n"
         "--kernels; a folder called cuda in it is only read with --ptx or --device cuda). The\n"
         "project's include folders are searched too. Each file is compiled for the software\n"
         "device and parsed again as C++ for OpenCL, which has MSL's address spaces. What\n"
         "Apple's compiler refuses is reported in its words, in the version of the language\n"
         "that --language names (default 3.2). Also reported: buffer indices used twice or out\n"
         "of range, thread positions of mixed shapes, too much threadgroup memory, recursion,\n"
         "undefined helpers, macros that ask which compiler, processor, system or harness\n"
         "reads the text, and, as warnings, stores by thread position without a bounds check\n"
         "and tests for NaN or infinity, which fast math may leave out. A comment NOLINT(rule)\n"
         "on its line silences a warning. A file that the second parser does not accept\n"
         "(templates over vectors) is reported as compiled, not linted, a warning that nothing\n"
         "silences. Exit status: 1 if there is any error. --agx: numbers of a compiler that is\n"
         "not Apple's, for comparing variants (docs/agx.md).\n",
     VERB_OPTIONS(options), .reads_kernels = true);
