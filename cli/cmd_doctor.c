/* cmd_doctor: `assay doctor`. Everything that one run can say about a machine, in one file to send.
 *
 * The steps are other programs: mostly this one again, with another verb. Each has a limit, and
 * whatever becomes of it, the next one follows. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor_file.h"
#include "doctor_steps.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "output.h"
#include "verb.h"

static struct {
    const char *out;
    option_list devices;
    double limit_s, total_s; /* 0: not given */
    bool quick, risky;
} settings = {.out = "assay-doctor.tar.gz"};

static const option options[] = {
    TEXT_OPTION("out", &settings.out, "FILE.tar.gz",
                "the file to leave (default assay-doctor.tar.gz)"),
    LIST_OPTION("device", &settings.devices, "D",
                "only this device; may be repeated (default: every kind that there is)"),
    FLAG_OPTION("quick", &settings.quick, "a few kernels of each step, within 2 minutes"),
    FLAG_OPTION("risky", &settings.risky,
                "also a kernel that runs for seconds and one that stores far outside its buffer"),
    SECONDS_OPTION("limit", &settings.limit_s, "S",
                   "end each step after S seconds (default 10 to 150, by step)"),
    SECONDS_OPTION("total", &settings.total_s, "S",
                   "end after S seconds, whatever is left (default 600; 120 with --quick)"),
};

enum { LOG_BYTES = 16 << 20, COLUMNS = 80, MOST_DEVICES = 8, SHOWN_LINES = 3 };

typedef enum { WENT_WELL, WENT_WRONG, WAS_CUT, CANNOT_RUN, NOT_RUN, VERDICTS } verdict;
static const char *const verdict_names[VERDICTS] = {"ok", "WRONG", "cut", "cannot", "not run"};

typedef struct {
    verdict verdict;
    child_end end;
    char text[256]; /* the line that says most */
} step_report;

typedef struct {
    char folder[PATH_MAX]; /* of everything that goes into the file */
    doctor_step *steps;
    step_report *found;
    size_t count, counts[VERDICTS];
    uint64_t start_ns;
    FILE *summary; /* what is printed, once more, into text */
    char *text;
    size_t text_bytes;
    progress progress;
} visit;

static void say(visit *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(visit *v, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    vprintf(format, args);
    vfprintf(v->summary, format, again);
    va_end(again);
    va_end(args);
}

static double get_seconds(const visit *v) {
    return (double)(os_now_ns() - v->start_ns) * 1e-9;
}

/* What a step said --------------------------------------------------------------------------------- */

static char *read_log(const visit *v, const doctor_step *s) {
    char path[PATH_MAX];
    err ignored;
    size_t bytes;
    char *text = path_print(path, sizeof path, &ignored, "%s/%s.txt", v->folder, s->file)
                     ? os_read_file(path, &bytes, &ignored)
                     : NULL;
    return text ? text : strdup("");
}

static void copy_line(char *to, size_t size, const char *line) {
    line += strspn(line, " ");
    snprintf(to, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* The message of a program that failed, or else the line that says most: the first of one that only
 * tells, the device of info, and the last of the others, where totals stand. */
static void find_line(const char *log, unsigned flags, char *text, size_t size) {
    bool is_found = false;
    text[0] = 0;
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char whole[256];
        copy_line(whole, sizeof whole, line);
        bool is_message = strncmp(whole, "assay: ", 7) == 0;
        bool is_device = flags & STEP_OPENS && strncmp(whole, "device ", 7) == 0;
        bool is_cost = path_ends_with(whole, "the cache has them now") ||
                       path_ends_with(whole, "the next run finds them in the cache");
        if (!whole[0] || is_cost || (is_found && !is_message))
            continue;
        is_found = is_message || is_device || flags & STEP_TELLS;
        copy_line(text, size, is_message || is_device ? whole + 7 : whole);
    }
}

/* As in "  kernel/shape/input: what is wrong", of check and validate. */
static bool names_case(const char *line) {
    size_t indent = strspn(line, " "), length = strcspn(line + indent, " \n");
    return indent == 2 && length > 0 && line[indent + length - 1] == ':' &&
           memchr(line + indent, '/', length);
}

/* The next line that tells of a failure; NULL if there is none. */
static const char *find_failure(const char *log, char *text, size_t size) {
    static const char *const signs[] = {"error: ", "crashed", "timed out", "not caught",
                                        "does not compile"};
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        bool is_failure = names_case(line);
        copy_line(text, size, line);
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            is_failure |= strstr(text, signs[i]) != NULL;
        if (is_failure)
            return line;
    }
    return NULL;
}

/* Running ------------------------------------------------------------------------------------------ */

/* at_end: the limit was what is left of the time for all steps, so that being late says nothing. */
static verdict judge(const doctor_step *s, const child_end *o, const char *log, bool at_end) {
    char line[256];
    if (o->is_late && (at_end || s->row->flags & STEP_MAY_BE_CUT))
        return find_failure(log, line, sizeof line) ? WENT_WRONG : WAS_CUT;
    if (o->is_late || o->is_profuse)
        return WENT_WRONG;
    if (o->status == EXIT_OK || s->row->flags & STEP_TELLS)
        return WENT_WELL;
    return o->status == EXIT_CANNOT && !(s->row->flags & STEP_OPENS) ? CANNOT_RUN : WENT_WRONG;
}

/* Why it is not even tried; NULL if it is. */
static const char *find_obstacle(const visit *v, size_t i, double left_s) {
    const doctor_step *s = &v->steps[i];
    static char text[128];
    if (left_s < 1)
        return "the time for all steps is over";
    for (size_t k = 0; k < i; k++)
        if (v->steps[k].row->flags & STEP_OPENS && v->found[k].verdict == WENT_WRONG &&
            strcmp(v->steps[k].device, s->device) == 0) {
            snprintf(text, sizeof text, "%s failed", v->steps[k].name);
            return text;
        }
    return NULL;
}

static void describe_end(const doctor_step *s, const child_end *o, const char *log, char *text,
                         size_t size) {
    char line[200];
    find_line(log, s->row->flags, line, sizeof line);
    if (o->is_late)
        snprintf(text, size, "ended after %.0f s; last line: %s", o->seconds, line);
    else if (o->is_profuse)
        snprintf(text, size, "ended: it printed more than %d MB", LOG_BYTES >> 20);
    else if (o->status > 128)
        snprintf(text, size, "crashed with signal %d%s%s", o->status - 128,
                 line[0] ? "; last line: " : "", line);
    else
        snprintf(text, size, "%s", line);
}

/* What it printed is kept, whatever becomes of it. */
static bool run_logged(const visit *v, const char *const *argv, const char *file,
                       child_limits *limits, child_end *end, err *e) {
    char path[PATH_MAX], *output = NULL;
    limits->output_bytes = LOG_BYTES;
    limits->leads_group = true;
    bool ok = path_print(path, sizeof path, e, "%s/%s.txt", v->folder, file) &&
              child_run_within(argv, limits, &output, end, e) &&
              os_write_file(path, output ? output : "", output ? strlen(output) : 0, e);
    free(output);
    return ok;
}

static bool run_step(visit *v, size_t i, double left_s, err *e) {
    const doctor_step *s = &v->steps[i];
    step_report *f = &v->found[i];
    double limit_s = settings.limit_s > 0 ? settings.limit_s : s->row->limit_s;
    char path[PATH_MAX];
    if (!path_join(path, sizeof path, e, v->folder, s->file))
        return false;
    setenv("FILE", path, 1);
    setenv("DEVICE", s->device, 1);
    setenv("LANGUAGE", s->language, 1);
    const char *command = settings.quick && s->row->quick ? s->row->quick : s->row->command;
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    child_limits limits = {.seconds = fmin(limit_s, left_s), .progress = &v->progress};
    err own = {.code = EXIT_OK};
    if (!run_logged(v, argv, s->file, &limits, &f->end, &own)) {
        f->verdict = CANNOT_RUN;
        snprintf(f->text, sizeof f->text, "%s", own.text);
        if (own.code == EXIT_INTERRUPTED)
            *e = own;
        return own.code != EXIT_INTERRUPTED;
    }
    char *log = read_log(v, s);
    f->verdict = judge(s, &f->end, log, left_s < limit_s);
    describe_end(s, &f->end, log, f->text, sizeof f->text);
    free(log);
    return true;
}

static bool run_steps(visit *v, err *e) {
    double total_s = settings.total_s > 0 ? settings.total_s : settings.quick ? 120 : 600;
    for (size_t i = 0; i < v->count; i++) {
        step_report *f = &v->found[i];
        double left_s = total_s - get_seconds(v);
        const char *obstacle = find_obstacle(v, i, left_s);
        progress_update(&v->progress, i);
        if (obstacle) {
            f->verdict = NOT_RUN;
            snprintf(f->text, sizeof f->text, "%s", obstacle);
        } else if (!run_step(v, i, left_s, e))
            return false;
        v->counts[f->verdict]++;
        progress_hide(&v->progress);
        int room = COLUMNS - 1 - 38;
        say(v, "%-7s %6.1f s  %-18.18s  %.*s\n", verdict_names[f->verdict], f->end.seconds,
            v->steps[i].name, room, f->text);
        if (!output_flush(e))
            return false;
    }
    return true;
}

/* What came of it ---------------------------------------------------------------------------------- */

static void say_wrong(visit *v, size_t i) {
    const doctor_step *s = &v->steps[i];
    const step_report *f = &v->found[i];
    bool may_hang = f->end.is_late && !(s->row->flags & STEP_MAY_BE_CUT);
    say(v, "\n  %s (%s.txt)\n    %s\n    %.*s\n", s->name, s->file,
        may_hang ? "It hangs, or this machine is slow: --limit S gives it more time."
                 : s->row->meaning,
        COLUMNS - 5, f->text);
    char *log = read_log(v, s), line[256];
    const char *at = find_failure(log, line, sizeof line);
    for (int n = 0; at && n < SHOWN_LINES; n++) {
        say(v, "    %.*s\n", COLUMNS - 5, line);
        at = find_failure(at + strcspn(at, "\n"), line, sizeof line);
    }
    free(log);
}

static void say_summary(visit *v) {
    static const char *const others[VERDICTS] = {
        [WAS_CUT] = "cut at the limit", [CANNOT_RUN] = "impossible here", [NOT_RUN] = "not run"};
    size_t wrong = v->counts[WENT_WRONG];
    if (wrong == 0)
        say(v, "\nNothing wrong was found: ");
    else
        say(v, "\n%zu of %zu step%s found something wrong: ", wrong, v->count,
            v->count == 1 ? "" : "s");
    say(v, "%zu ok", v->counts[WENT_WELL]);
    for (int i = 0; i < VERDICTS; i++)
        if (others[i] && v->counts[i] > 0)
            say(v, ", %zu %s", v->counts[i], others[i]);
    say(v, ", in %.0f s\n", get_seconds(v));
    for (size_t i = 0; i < v->count; i++)
        if (v->found[i].verdict == WENT_WRONG)
            say_wrong(v, i);
}

static bool write_file(visit *v, err *e) {
    char path[PATH_MAX];
    struct stat file;
    fflush(v->summary);
    if (!path_print(path, sizeof path, e, "%s/summary.txt", v->folder) ||
        !os_write_file(path, v->text, v->text_bytes, e) || !doctor_pack(v->folder, settings.out, e))
        return false;
    if (stat(settings.out, &file) == 0)
        printf("\nSend %s (%.0f KB). `tar -xzf` shows what is in it.\n", settings.out,
               (double)file.st_size * 1e-3);
    return true;
}

static void make_progress(visit *v) {
    const char **names = array_new(v->count, sizeof *names);
    double *seconds = array_new(v->count, sizeof *seconds);
    for (size_t i = 0; i < v->count; i++) {
        names[i] = v->steps[i].name;
        seconds[i] = v->steps[i].row->expected_s;
    }
    v->progress = progress_new(stderr, "steps", v->count);
    v->progress.names = names;
    v->progress.expected_s = seconds;
}

static bool visit_machine(visit *v, err *e) {
    make_progress(v);
    bool ok = run_steps(v, e);
    progress_hide(&v->progress);
    free((void *)(uintptr_t)v->progress.names);
    free((void *)(uintptr_t)v->progress.expected_s);
    if (ok)
        say_summary(v);
    return ok && write_file(v, e);
}

/* Beginning ---------------------------------------------------------------------------------------- */

/* The kinds that info calls available. In a process of its own: a driver may crash. Metal counts as
 * wanted wherever this program was built with it. */
static size_t find_devices(const visit *v, const char **names, err *e) {
    char self[PATH_MAX];
    static char lines[4096];
    size_t count = 0;
    child_end end;
    if (!os_find_self(self, sizeof self, e))
        return 0;
    const char *const argv[] = {self, "info", "--field", "devices", NULL};
    if (!run_logged(v, argv, "00-devices", &(child_limits){.seconds = 60}, &end, e))
        return 0;
    char *text = read_log(v, &(doctor_step){.file = "00-devices"});
    snprintf(lines, sizeof lines, "%s", text);
    free(text);
    for (char *line = strtok(lines, "\n"); line && count < MOST_DEVICES;
         line = strtok(NULL, "\n")) {
        char *name = line, *state = line + strcspn(line, " ");
        bool is_there = strstr(state, " available") != NULL;
#if defined(ASSAY_METAL)
        is_there |= strncmp(name, "metal ", 6) == 0;
#endif
        if (is_there && *state) {
            *state = 0;
            names[count++] = name;
        }
    }
    if (count == 0)
        names[count++] = "auto"; /* its step says why there is none */
    return count;
}

/* Files that steps make for themselves are removed with the folder; reports of validation stay until
 * they are packed. The kernels are Assay's own, also in a project: the folder is none. */
static bool prepare(visit *v, err *e) {
    char tmp[PATH_MAX];
    if (!path_print(tmp, sizeof tmp, e, "%s/tmp", v->folder) || !os_make_folder(tmp, e))
        return false;
    return (setenv("TMPDIR", tmp, 1) == 0 && setenv("ASSAY_PROJECT", v->folder, 1) == 0 &&
            setenv("ASSAY_KEEP_REPORTS", "1", 1) == 0) ||
           err_set(e, EXIT_CANNOT, "the environment of this process cannot be set");
}

static bool make_plan(visit *v, const char *const *names, size_t count, err *e) {
    static const char *found[MOST_DEVICES]; /* steps have their names */
    const char *const *devices = settings.devices.items;
    size_t devices_given = settings.devices.count;
    if (devices_given == 0) {
        devices_given = find_devices(v, found, e);
        devices = found;
    }
    const doctor_wish wish = {.devices = devices,
                              .device_count = devices_given,
                              .names = names,
                              .name_count = count,
                              .quick = settings.quick,
                              .risky = settings.risky};
    v->count = devices_given > 0 ? doctor_plan(&wish, &v->steps, e) : 0;
    v->found = array_new(v->count + 1, sizeof *v->found);
    return v->count > 0;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char path[PATH_MAX];
    if (!path_ends_with(settings.out, ".tar.gz"))
        return err_code(e, EXIT_USAGE, "--out takes a name that ends in .tar.gz, not '%.100s'",
                        settings.out);
    if (!os_find_program("gzip", path, sizeof path))
        return err_code(e, EXIT_CANNOT, "the file is compressed by gzip, which is not installed");
    visit *v = array_new(1, sizeof *v);
    v->start_ns = os_now_ns();
    v->summary = open_memstream(&v->text, &v->text_bytes);
    assert(v->summary);
    os_watch_stop(true);
    bool ok = os_check_writable(settings.out, e) &&
              os_make_scratch(v->folder, sizeof v->folder, e) && prepare(v, e) &&
              make_plan(v, names, count, e) && visit_machine(v, e);
    os_watch_stop(false);
    exit_code code = !ok ? e->code : v->counts[WENT_WRONG] > 0 ? EXIT_WRONG : EXIT_OK;
    if (v->folder[0])
        os_remove_folder(v->folder);
    fclose(v->summary);
    free(v->text);
    free(v->steps);
    free(v->found);
    free(v);
    return code;
}

VERB(verb_doctor, "doctor", .names = "[STEP...]",
     .about = "find what is wrong with this machine, and leave one file to send",
     .notes =
         "Runs one step after another, each in a process of its own with a limit, and goes on\n"
         "after failures: system and compilers, info, probes of the device (times, mapping,\n"
         "denormals), check, model, compile (every kernel by the device's own compiler),\n"
         "validate, roofs, bench and model-bench on every device there is; with --risky also\n"
         "long, fault and after-fault. STEP runs only that step. One line per step, then what is\n"
         "wrong. It takes at most about 10 minutes, and nothing is sent anywhere.\n\n"
         "In the file: what each step printed, the rows of check and bench, and the raw reports\n"
         "of Metal's validation. That names the machine, its GPUs, the versions of its system\n"
         "and compilers, and folders of kernels and caches. Your home folder is written as ~ and\n"
         "your user name in paths as USER; no environment variables and no other files go in.\n\n"
         "Exit status: 0 nothing is wrong; 1 something is; 2 bad usage or path; 3 the file\n"
         "cannot be written.\n",
     VERB_OPTIONS(options));
