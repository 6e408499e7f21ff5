#include "suite.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/base/worker.h"
#include "harness/device/cuda/sanitizer.h"
#include "harness/device/validation.h"

/* What is unknown, or makes no sense for the class, is empty. */
typedef struct {
    finding of;
    const char *class;
    char where[160], buffer[64], index[16]; /* buffer: index and label */
    char thread[40], group[40], element[24], outside[24];
    char threads[40], groups[40]; /* with blanks, in files */
} finding_row;

static const field fields[] = {
    FIELD(finding_row, of.kernel, FIELD_CHARS, "case"),
    FIELD(finding_row, class, FIELD_TEXT, "class", "finding", .is_painted = true),
    FIELD(finding_row, where, FIELD_CHARS, NULL, "where"),
    FIELD(finding_row, of.file, FIELD_CHARS, "file"),
    FIELD(finding_row, of.line, FIELD_INTEGER, "line"),
    FIELD(finding_row, thread, FIELD_CHARS, NULL, "thread"),
    FIELD(finding_row, group, FIELD_CHARS, NULL, "threadgroup", .rank = 1),
    FIELD(finding_row, threads, FIELD_CHARS, "thread"),
    FIELD(finding_row, groups, FIELD_CHARS, "group"),
    FIELD(finding_row, buffer, FIELD_CHARS, NULL, "buffer"),
    FIELD(finding_row, index, FIELD_CHARS, "buffer"),
    FIELD(finding_row, of.label, FIELD_CHARS, "label"),
    FIELD(finding_row, element, FIELD_CHARS, NULL, "element"),
    FIELD(finding_row, outside, FIELD_CHARS, NULL, "bytes outside", .rank = 2),
    FIELD(finding_row, of.element, FIELD_INTEGER, "element"),
    FIELD(finding_row, of.by, FIELD_INTEGER, "outside_by"),
    FIELD(finding_row, of.bytes, FIELD_COUNT, "bytes"),
    FIELD(finding_row, of.count, FIELD_COUNT, "count", "times", .rank = 3),
    FIELD(finding_row, of.text, FIELD_CHARS, "text"),
};

static void print_position(char *text, size_t size, const uint32_t at[3], char between) {
    snprintf(text, size, "%" PRIu32 "%c%" PRIu32 "%c%" PRIu32, at[0], between, at[1], between,
             at[2]);
}

static finding_row make_row(const finding *f) {
    finding_row r = {.of = *f, .class = finding_get_name(f->what)};
    int used = snprintf(r.where, sizeof r.where, "%s", f->file);
    if (f->line > 0)
        snprintf(r.where + used, sizeof r.where - (size_t)used, ":%d", f->line);
    print_position(r.thread, sizeof r.thread, f->thread, ',');
    print_position(r.group, sizeof r.group, f->group, ',');
    print_position(r.threads, sizeof r.threads, f->thread, ' ');
    print_position(r.groups, sizeof r.groups, f->group, ' ');
    if (f->buffer >= 0)
        snprintf(r.index, sizeof r.index, "%d", f->buffer);
    snprintf(r.buffer, sizeof r.buffer, "%s%s%s", r.index, r.index[0] ? " " : "", f->label);
    if (f->label[0])
        snprintf(r.element, sizeof r.element, "%" PRId64, f->element);
    if (f->by)
        snprintf(r.outside, sizeof r.outside, "%" PRId64, f->by);
    return r;
}

void findings_print(FILE *out, const finding_list *list, size_t most) {
    sink s = {.record = RECORD(fields), .out = out};
    for (size_t i = 0; i < list->count && i < most; i++) {
        char text[sizeof list->items->kernel + sizeof list->items->text + 2];
        finding_row r = make_row(&list->items[i]);
        snprintf(text, sizeof text, "%s: %s", r.of.kernel, r.of.text);
        sink_add(&s, &r, PAINT_BAD);
        sink_note(&s, 4, text);
    }
    if (list->count > 0 && most > 0)
        sink_end(&s);
    if (most < list->count)
        fprintf(out, "and %zu more; --max-findings shows more of them\n", list->count - most);
}

void findings_add_csv(csv *file, const finding_list *list) {
    sink s = {.record = RECORD(fields), .csv = file};
    record_add_titles(&s.record, file);
    for (size_t i = 0; i < list->count; i++) {
        finding_row r = make_row(&list->items[i]);
        sink_add(&s, &r, PAINT_NONE);
    }
}

/* Canaries ---------------------------------------------------------------------------------- */

enum { ELEMENTS = 128, GROUP = 64, PATIENCE_NS = 2000000000 };

/* Every fourth element is a NaN, which the kernel replaces. */
static void replace_nan(const launch *l, oracle_io *io) {
    (void)l;
    for (size_t i = 0; i < ELEMENTS; i++)
        io->out[1].value[i] = i % 4 == 3 ? 0 : elem_read(ELEM_F32, io->in[0], i);
    io->out[1].exact = true;
}

const canary canaries[] = {
    {"canary_load_outside", FINDING_LOAD_OUTSIDE, .tool = "memcheck", .on_metal = true},
    {"canary_store_outside", FINDING_STORE_OUTSIDE, .tool = "memcheck", .on_metal = true},
    {"canary_threadgroup_outside", FINDING_STORE_OUTSIDE, .tool = "memcheck", .on_metal = true},
    {"canary_array_index", FINDING_LOAD_OUTSIDE, .tool = "memcheck"},
    {"canary_array_pointer", .what = FINDING_STORE_OUTSIDE},
    {"canary_table", FINDING_LOAD_OUTSIDE, .build = CANARY_OPTIMISED},
    {"canary_guard_below", .what = FINDING_LOAD_OUTSIDE},
    {"canary_other_binding", .what = FINDING_LOAD_OUTSIDE},
    {"canary_unbound", .what = FINDING_UNBOUND},
    {"canary_unwritten_device", FINDING_UNWRITTEN, .tool = "initcheck"},
    {"canary_unwritten_threadgroup", .what = FINDING_UNWRITTEN},
    {"canary_unwritten_private", .what = FINDING_UNWRITTEN},
    {"canary_unset_member", .what = FINDING_UNWRITTEN},
    {"canary_unset_stored", .what = FINDING_UNWRITTEN},
    {"canary_race_in_group", FINDING_RACE_IN_GROUP, .tool = "racecheck"},
    {"canary_race_of_bytes", .what = FINDING_RACE_IN_GROUP},
    {"canary_race_with_atomic", .what = FINDING_RACE_IN_GROUP},
    {"canary_fence_alone", FINDING_RACE_IN_GROUP, .since = 320},
    {"canary_race_of_groups", .what = FINDING_RACE_OF_GROUPS},
    {"canary_same_store", .what = FINDING_SAME_STORE},
    {"canary_read_only", .what = FINDING_READ_ONLY},
    {"canary_misaligned", .what = FINDING_MISALIGNED},
    {"canary_barrier", .what = FINDING_BARRIER},
    {"canary_other_barrier", .what = FINDING_BARRIER},
    {"canary_branch_barrier", FINDING_BARRIER, .tool = "synccheck"},
    {"canary_diverged", .what = FINDING_DIVERGED},
    {"canary_broadcast", .what = FINDING_DIVERGED},
    {"canary_matrix", .what = FINDING_DIVERGED},
    {"canary_divide", .what = FINDING_DIVIDE},
    {"canary_shift", .what = FINDING_SHIFT},
    {"canary_convert", .what = FINDING_CONVERT},
    {"canary_overflow", .what = FINDING_OVERFLOW},
    {"canary_least_by_minus_one", .what = FINDING_OVERFLOW},
    {"canary_clamp", .what = FINDING_CLAMP},
    {"canary_no_return", .what = FINDING_NO_RETURN},
    {"canary_endless", .what = FINDING_ENDLESS},
    {"canary_lock", .what = FINDING_ENDLESS},
    {"canary_fast_math", FINDING_CLASSES, .oracle = replace_nan, .build = CANARY_OPTIMISED},
    {"canary_nan", FINDING_NAN_BORN, .build = CANARY_TRACED},
};
const size_t canary_count = sizeof canaries / sizeof *canaries;

bool canary_is_for(const canary *c, const device_facts *f) {
    const char *tool = sanitizer_get_tool();
    if (f->language < c->since)
        return false;
    if (f->kind == DEVICE_CUDA)
        return c->tool && tool && strcmp(c->tool, tool) == 0;
    if (c->build != CANARY_ANY && (c->build == CANARY_TRACED) != f->traces)
        return false;
    return c->on_metal || f->kind != DEVICE_METAL;
}

/* The lines of a kernel that are marked "bug": from its name to the next empty line. */
static bool is_marked(const char *text, const char *name, int line) {
    int at = 1;
    bool inside = false;
    for (const char *p = text; *p; at++) {
        const char *end = p + strcspn(p, "\n");
        const char *start = strstr(p, name), *bug = strstr(p, "// bug");
        inside = (inside && end > p) || (start && start < end);
        if (inside && at == line && bug && bug < end)
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

typedef struct {
    buffer *in, *out;
} buffer_pair;

static bool record_canary(tape *t, const canary *c, const buffer_pair *at, err *e) {
    const constant_value off = {.index = 0, .type = ELEM_U8, .bits = 0};
    launch *l = tape_add_specialised(t, "canary.metal", c->kernel, &off, 1, e);
    if (!l)
        return false;
    launch_bind(l, 0, slice_whole(at->in), ACCESS_READ, ELEM_F32);
    /* Two bindings of one buffer, side by side. */
    if (strcmp(c->kernel, "canary_other_binding") == 0) {
        launch_bind(l, 0, slice_part(at->in, 0, at->in->bytes / 2), ACCESS_READ, ELEM_F32);
        launch_bind(l, 3, slice_part(at->in, at->in->bytes / 2, at->in->bytes / 2), ACCESS_READ,
                    ELEM_F32);
    }
    launch_bind(l, 1, slice_whole(at->out), ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 2, ELEMENTS);
    launch_set_groups(l, (size3){ELEMENTS / GROUP, 1, 1}, (size3){GROUP, 1, 1});
    l->oracle = c->oracle;
    return true;
}

static bool find_folder(char *folder, size_t size, err *e) {
    char home[PATH_MAX - 64];
    if (!os_find_home(home, sizeof home, e))
        return false;
    snprintf(folder, size, "%s/harness/check/canaries", home);
    return true;
}

library *canary_new_library(device *d, err *e) {
    char folder[PATH_MAX];
    return find_folder(folder, sizeof folder, e) ? library_new(d, folder, e) : NULL;
}

/* The text of the canaries, read once; NULL if it cannot be. */
static const char *get_text(err *e) {
    static char *text;
    char folder[PATH_MAX], path[PATH_MAX + 32];
    if (text || !find_folder(folder, sizeof folder, e))
        return text;
    snprintf(path, sizeof path, "%s/canary.metal", folder);
    return text = os_read_file(path, NULL, e);
}

/* Was it found where it stands? If not, the message says what was. has_lines: every finding has a
 * line; else one may be missing. */
static bool canary_judge(const canary *c, const finding_list *found, bool has_lines, char *message,
                         size_t size) {
    err e;
    const char *text = get_text(&e);
    for (size_t i = 0; text && i < found->count; i++) {
        const finding *f = &found->items[i];
        if (f->what == c->what && strcmp(f->kernel, c->kernel) == 0 &&
            (is_marked(text, c->kernel, f->line) || (!has_lines && f->line == 0)))
            return true;
    }
    if (!text)
        snprintf(message, size, "%.150s", e.text);
    else if (found->count > 0)
        snprintf(message, size, "'%s' was not found at its line, but '%s' in %.60s at line %d",
                 finding_get_name(c->what), finding_get_name(found->items[0].what),
                 found->items[0].kernel, found->items[0].line);
    else
        snprintf(message, size, "'%s' was not found", finding_get_name(c->what));
    return false;
}

/* Is the output what the oracle says, compiled with this math? */
static bool check_with(device *d, const canary *c, math_mode math, const buffer_pair *at,
                       check_result *result, err *e) {
    const check_options how = {.unordered = false};
    library *lib = canary_new_library(d, e);
    if (!lib)
        return false;
    library_set_math(lib, math);
    tape *t = tape_new(lib);
    bool ok = record_canary(t, c, at, e) && check_tape(t, &how, result, e);
    tape_free(t);
    library_free(lib);
    return ok;
}

static bool play_maths(device *d, const canary *c, const buffer_pair *at, bool *caught,
                       char *message, size_t size, err *e) {
    check_result safe, fast;
    if (!check_with(d, c, MATH_SAFE, at, &safe, e) || !check_with(d, c, MATH_FAST, at, &fast, e))
        return false;
    *caught = safe.verdict == CHECK_PASS && fast.verdict == CHECK_FAIL;
    snprintf(message, size, "%.190s",
             safe.verdict == CHECK_PASS ? "fast math gives the right output" : safe.message);
    return true;
}

/* Looks for findings until they arrive: reports of a GPU's tools come late, and each look at them takes a few
 * milliseconds. */
static bool play_found(library *lib, const canary *c, const buffer_pair *at, bool *caught,
                       char *message, size_t size, err *e) {
    device *d = library_get_device(lib);
    const device_facts *facts = device_get_facts(d);
    tape *t = tape_new(lib);
    device_clear_findings(d);
    bool is_recorded = record_canary(t, c, at, e);
    bool ok = is_recorded && tape_play(t, PLAY_WHOLE, NULL, NULL, e);
    bool may_be_late = strcmp(facts->api, "soft") != 0;
    uint64_t start = os_now_ns();
    do /* a launch that is ended for what it did fails, and is reported all the same */
        *caught = is_recorded &&
                  canary_judge(c, device_get_findings(d), facts->names_lines, message, size);
    while (is_recorded && !*caught && may_be_late && os_now_ns() - start < PATIENCE_NS);
    device_clear_findings(d);
    tape_free(t);
    return ok || *caught;
}

bool canary_play(library *lib, const canary *c, bool *caught, char *message, size_t size, err *e) {
    device *d = library_get_device(lib);
    buffer_pair at = {NULL, NULL};
    float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)i * 0.25f;
    bool ok = get_text(e) &&
              (at.in = device_new_buffer(d, sizeof values, STORAGE_SHARED, "in", e)) &&
              (at.out = device_new_buffer(d, sizeof values, STORAGE_SHARED, "out", e)) &&
              buffer_upload(at.in, 0, values, sizeof values, e) &&
              (c->oracle ? play_maths(d, c, &at, caught, message, size, e)
                         : play_found(lib, c, &at, caught, message, size, e));
    buffer_free(at.in);
    buffer_free(at.out);
    return ok;
}

/* The worker's side ------------------------------------------------------------------------- */

/* What travels back, followed by findings. Both sides are the same program, so it is the bytes of
 * structs. */
typedef struct {
    bool made, uncompiled; /* uncompiled: there is no pipeline, so the other cases fail too */
    check_result result;
    err error;
    size_t finding_count;
} answer;

typedef struct {
    const suite *suite;
    library *lib;
    library *canaries; /* NULL until there is one to play */
} server;

static bool check_captured(const server *s, const kernel_case *c, answer *a) {
    device *d = library_get_device(s->lib);
    const char *capture = s->suite->capture;
    if (capture && !device_start_capture(d, capture, &a->error))
        return false;
    bool made = check_case(s->lib, c, NULL, s->suite->seed, &a->result, &a->error);
    if (capture)
        device_stop_capture(d);
    return made;
}

static const char canary_prefix[] = "canary/";

/* A canary that is caught passes. */
static void check_canary(server *s, const char *name, answer *a) {
    bool is_caught = false;
    if (!s->canaries)
        s->canaries = canary_new_library(library_get_device(s->lib), &a->error);
    for (size_t i = 0; s->canaries && i < canary_count; i++)
        if (strcmp(canaries[i].kernel, name) == 0)
            a->made = canary_play(s->canaries, &canaries[i], &is_caught, a->result.message,
                                  sizeof a->result.message, &a->error);
    a->result.verdict = is_caught ? CHECK_PASS : CHECK_FAIL;
}

static void *check_named_case(void *context, const char *name, size_t *bytes, bool *retire) {
    server *s = context;
    answer a = {.made = false};
    kernel_case c;
    size_t prefix = strlen(canary_prefix);
    if (strncmp(name, canary_prefix, prefix) == 0)
        check_canary(s, name + prefix, &a);
    else if (s->suite->find(name, &c))
        a.made = check_captured(s, &c, &a);
    else
        err_set(&a.error, EXIT_USAGE, "no case is called '%.160s'", name);
    a.uncompiled = !a.made && library_has_failed(s->lib);
    if (!a.made)
        device_tell_loss(library_get_device(s->lib), &a.error);
    const finding_list *found = device_get_findings(library_get_device(s->lib));
    /* A wrong kernel may have written anywhere. */
    bool is_canary = strncmp(name, canary_prefix, prefix) == 0;
    *retire = !a.made || a.result.verdict == CHECK_FAIL ||
              device_is_lost(library_get_device(s->lib)) ||
              (sanitizer_is_watching() && (is_canary || found->count > 0));
    a.finding_count = found->count;
    *bytes = sizeof a + found->count * sizeof *found->items;
    char *all = array_new(1, *bytes);
    memcpy(all, &a, sizeof a);
    if (found->count > 0)
        memcpy(all + sizeof a, found->items, found->count * sizeof *found->items);
    return all;
}

static bool start_watching(const suite *s, err *e) {
    return sanitizer_get_tool() ? sanitizer_enter(s->arguments, e) : validation_start_log(e);
}

exit_code suite_serve(const suite *s, err *e) {
    warn_agx_compile(s->agx);
    device *d = start_watching(s, e) ? device_open(s->device, e) : NULL;
    server own = {s, d ? library_new(d, NULL, e) : NULL, NULL};
    bool ok = own.lib && worker_serve(check_named_case, &own, e);
    library_free(own.canaries);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}

/* The side that hands out cases ------------------------------------------------------------- */

typedef struct {
    const case_list *cases;
    const suite_listener *listener;
    finding_list *findings;
} delivery;

static void gather(finding_list *all, const finding_list *found, const char *case_name) {
    for (size_t i = 0; all && i < found->count; i++) {
        finding f = found->items[i];
        snprintf(f.kernel, sizeof f.kernel, "%.127s", case_name);
        finding_add(all, &f);
    }
}

/* What a worker has answered, or why it has not. The findings stay the outcome's. */
static case_report read_outcome(const worker_outcome *o) {
    case_report r = {.failure = o->failure[0] ? o->failure : NULL, .is_untried = o->is_untried};
    const answer *a = o->answer;
    if (r.failure)
        return r;
    if (o->bytes < sizeof *a || o->bytes != sizeof *a + a->finding_count * sizeof(finding)) {
        r.failure = WORKER_OTHER_BUILD;
        return r;
    }
    r.made = a->made;
    r.result = a->result;
    r.error = a->error;
    r.findings = (finding_list){.items = (finding *)(a + 1), .count = a->finding_count};
    return r;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    const kernel_case *c = &s->cases->items[task];
    const case_report r = read_outcome(o);
    bool ok = s->listener->deliver(s->listener->context, c, &r, e);
    gather(s->findings, &r.findings, c->name);
    return ok;
}

/* What does not compile is compiled and reported once. With a compiler's message the file is wrong;
 * without one it may be the kernel alone, which needs too much private memory. */
static worker_scope give_up(void *context, size_t task, const worker_outcome *o, char *why,
                            size_t size) {
    const delivery *s = context;
    const answer *a = o->answer;
    if (o->bytes < sizeof *a)
        return WORKER_NO_OTHERS;
    bool is_file = a->error.detail[0] != 0, is_text = a->error.code == EXIT_USAGE;
    snprintf(why, size, is_text ? "%.50s cannot be used" : "%.50s does not compile",
             is_file || is_text ? s->cases->items[task].kernel->file : "it");
    return !a->uncompiled || (a->error.code != EXIT_WRONG && !is_text) ? WORKER_NO_OTHERS
           : is_file                                                   ? WORKER_FILE
                                                                       : WORKER_GROUP;
}

/* Compilers and oracles run on the CPU, and take most of the time on every device. Under
 * compute-sanitizer the GPU does: on an H200 8 workers took 37 s, 4 took 43 and 16 took 41. */
static int choose_jobs(const suite *s) {
    return s->jobs ? (int)s->jobs : worker_count_jobs(sanitizer_get_tool() ? 8 : 16);
}

/* Fills in what is the same for all tasks. */
static bool run_workers(const suite *s, worker_plan *plan, err *e) {
    plan->arguments = s->arguments;
    plan->jobs = choose_jobs(s);
    plan->timeout_s = s->timeout_s;
    return worker_run(plan, e);
}

bool suite_run(const suite *s, const case_list *cases, const suite_listener *listener,
               finding_list *findings, err *e) {
    const char **names = array_new(cases->count, sizeof *names);
    const char **files = array_new(cases->count, sizeof *files);
    for (size_t i = 0; i < cases->count; i++) {
        names[i] = cases->items[i].name;
        files[i] = cases->items[i].kernel->file;
    }
    delivery own = {.cases = cases, .listener = listener, .findings = findings};
    progress shown = progress_new(stderr, "cases", cases->count);
    worker_plan plan = {.tasks = names,
                        .files = files,
                        .count = cases->count,
                        .deliver = deliver,
                        .give_up = give_up,
                        .context = &own,
                        .progress = &shown};
    bool ok = run_workers(s, &plan, e);
    free(names);
    free(files);
    return ok;
}

enum { CANARY_NAME = 96, CANARY_WHY = 200 };

typedef struct {
    const canary *kernel;
    char name[CANARY_NAME], why[CANARY_WHY]; /* it was not caught */
    bool is_caught;
} bird;

static bool deliver_canary(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)e;
    bird *b = (bird *)context + task;
    const case_report r = read_outcome(o);
    b->is_caught = r.made && r.result.verdict == CHECK_PASS;
    snprintf(b->why, sizeof b->why, "%.199s",
             r.failure ? r.failure
             : !r.made ? r.error.text
                       : r.result.message);
    return true;
}

/* Reports that came after the answer of their worker, which has ended by now. */
static bool hear_late_ones(bird *birds, size_t count, err *e) {
    validation_count logs;
    finding_list found = {0};
    if (!validation_read_folder(NULL, &sanitizer_log, &logs, &found, e))
        return false;
    for (bird *b = birds; b < birds + count; b++) {
        char why[CANARY_WHY] = "";
        size_t used = strlen(b->why);
        if (b->is_caught)
            continue;
        b->is_caught = canary_judge(b->kernel, &found, true, why, sizeof why);
        snprintf(b->why + used, CANARY_WHY - used, "; in the files: %s", why);
    }
    finding_free(&found);
    return true;
}

static bool count_caught(const bird *birds, size_t count, FILE *out, err *e) {
    const char *tool = sanitizer_get_tool();
    size_t caught = 0;
    for (size_t i = 0; i < count; i++) {
        caught += birds[i].is_caught;
        if (!birds[i].is_caught)
            fprintf(out, "%s not caught: %s\n", birds[i].name, birds[i].why);
    }
    fprintf(out, "# %s%scanaries: %zu of %zu caught\n", tool ? tool : "", tool ? ": " : "", caught,
            count);
    return caught == count ||
           err_set(e, EXIT_WRONG,
                   "%zu of %zu canaries were not caught: the validation of this device does not "
                   "work, so nothing is called clean",
                   count - caught, count);
}

/* Two canaries never end: a kernel of 128 threads that takes as long as this is endless. What a user has asked
 * for stays if it is less. */
static bool run_canaries(const suite *s, worker_plan *plan, err *e) {
    static const char name[] = "ASSAY_LOOP_SECONDS", enough[] = "0.3";
    const char *given = getenv(name);
    char before[32] = "";
    if (given)
        snprintf(before, sizeof before, "%s", given);
    if (!given || atof(given) > atof(enough))
        setenv(name, enough, 1);
    bool ok = run_workers(s, plan, e);
    if (given)
        setenv(name, before, 1);
    else
        unsetenv(name);
    return ok;
}

bool suite_play_canaries(const suite *s, const device_facts *f, FILE *out, err *e) {
    bird *birds = array_new(canary_count, sizeof *birds);
    const char **names = array_new(canary_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < canary_count; i++) {
        if (!canary_is_for(&canaries[i], f))
            continue;
        birds[count].kernel = &canaries[i];
        snprintf(birds[count].name, CANARY_NAME, "%s%s", canary_prefix, canaries[i].kernel);
        names[count] = birds[count].name;
        count++;
    }
    progress shown = progress_new(stderr, "canaries", count);
    worker_plan plan = {.tasks = names,
                        .count = count,
                        .deliver = deliver_canary,
                        .context = birds,
                        .progress = &shown};
    bool ok = run_canaries(s, &plan, e) &&
              (!sanitizer_get_tool() || hear_late_ones(birds, count, e)) &&
              count_caught(birds, count, out, e);
    free(birds);
    free(names);
    return ok;
}

bool suite_find_device(const suite *s, device_facts *out, err *e) {
    device *d = device_open(s->device, e);
    if (!d)
        return false;
    *out = *device_get_facts(d);
    device_close(d);
    if (out->kind == DEVICE_CUDA && validation_is_on() && !s->validates)
        return err_set(e, EXIT_USAGE,
                       "MTL_SHADER_VALIDATION does nothing on the device 'cuda'; use `assay "
                       "validate --device cuda`");
    *e = (err){.code = EXIT_OK}; /* devices that `auto` tried before are not errors */
    return true;
}
