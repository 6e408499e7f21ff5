/* cmd_doctor: `assay doctor`. Everything that one run can say about a machine, in one file to send.
 *
 * Each step is another program, mostly this one with another verb, and has a time limit. However it ends,
 * the next one follows. The last line that a step prints is what it found. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/device/msl/msl.h"
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
                "only this device; may be repeated (default: every available kind)"),
    FLAG_OPTION("quick", &settings.quick, "a few kernels of each step, within 2 minutes"),
    FLAG_OPTION("risky", &settings.risky,
                "also a kernel that runs for seconds and one that stores far outside its buffer"),
    SECONDS_OPTION("limit", &settings.limit_s, "S",
                   "end each step after S seconds (default 10 to 150, by step)"),
    SECONDS_OPTION("total", &settings.total_s, "S",
                   "end after S seconds, whatever is left (default 600; 120 with --quick)"),
};

enum { LOG_BYTES = 16 << 20, COLUMNS = 80, TAIL = 6 };

/* Steps -------------------------------------------------------------------------------------------- */

typedef enum {
    STEP_DEVICE = 1,   /* once for each device */
    STEP_LANGUAGE = 2, /* on Metal, once for each version of the language */
    STEP_OPENS = 4,    /* any failure is wrong; the device's other steps are not tried after it */
    STEP_TELLS = 8,    /* it only reports: however it ends, nothing is wrong */
    STEP_MAY_BE_CUT = 16, /* it ends hanging kernels itself; at its limit it is only slow */
    STEP_RISKY = 32,
} step_flags;

typedef struct {
    const char *name, *command;
    const char *quick; /* with --quick instead; NULL: the same */
    double limit_s;
    unsigned flags;
    const char *meaning; /* of a failure: one sentence */
} step_kind;

#define CHECK "\"$ASSAY\" check --device \"$DEVICE\" --quiet --timeout 20"
#define VALIDATE "\"$ASSAY\" validate --device \"$DEVICE\" --quick --quiet --timeout 30"
#define BENCH "\"$ASSAY\" bench --device \"$DEVICE\" --out \"$FILE.csv\" --budget "
#define MODEL_BENCH "\"$ASSAY\" model bench --device \"$DEVICE\" --csv \"$FILE.csv\" "
#define LINT "\"$ASSAY\" lint --device \"$DEVICE\" "
#define LAUNCH "\"$ASSAY\" launch \"$PROBES\" --device \"$DEVICE\" --grid 1 --group 64 "

/* No launch takes longer on the GPU's clock than on the wall clock. */
#define TIMES                                                                                      \
    LAUNCH "spin --arg 0=u32[1]:value:20000 --arg 1=u32[64] --repeat 5 | awk '"                    \
           "function ns(n, unit) { return n * (unit ~ /^ns/ ? 1 : unit ~ /^ms/ ? 1e6 : "           \
           "unit ~ /^s/ ? 1e9 : 1e3) } /^time/ { sub(/.*: GPU/, \"GPU\"); print; "                 \
           "gpu = ns($2, $3); wall = ns($8, $9); found = 1 } "                                     \
           "END { exit !(found && gpu > 0 && gpu <= wall * 1.02) }'"
/* It is harmless to allow for flushed denormals where they are kept; the opposite fails right kernels. */
#define DENORMALS                                                                                  \
    "kept=$(" LAUNCH                                                                               \
    "denormals --arg 0=f32[2]:value:1e-39,1 --arg 1=u32[1] | awk 'END { print $2 "                 \
    "}'); info=$(\"$ASSAY\" info --device \"$DEVICE\" --field denormals); "                        \
    "case $kept in 1) echo \"f32 kept; info: $info\" ;; 0) echo \"f32 flushed; info: $info\"; "    \
    "case $info in flushed*) ;; *) exit 1 ;; esac ;; *) exit 1 ;; esac"
/* Each kernel runs about four times as long as the one before it, up to one of seconds. */
#define LONG                                                                                       \
    "for n in 1 4 16 64 256 1024; do t=$(" LAUNCH "spin --arg 0=u32[1]:value:$((n * 1048576)) "    \
    "--arg 1=u32[64] --timeout 50) || exit 1; echo \"$t\" | grep ^time; "                          \
    "case $t in *'GPU '*' s, encode'*) break ;; esac; done"
#define FAULT                                                                                      \
    "if t=$(" LAUNCH "stray --arg 0=u32[1]:value:4 --arg 1=u32[64] 2>&1); "                        \
    "then echo 'a store 256 GB outside its buffer is not reported: it went nowhere'; "             \
    "else echo \"$t\" | tail -n 1; fi"

/* Kinds that `info` calls available, and Metal wherever this program was built with it. */
#if defined(ASSAY_METAL)
#define DEVICES "\"$ASSAY\" info --field devices | awk '/^metal / || / available/ { print $1 }'"
#else
#define DEVICES "\"$ASSAY\" info --field devices | awk '/ available/ { print $1 }'"
#endif
#define INFO "\"$ASSAY\" info --device \"$DEVICE\""
#define IN_A_LINE " | paste -s -d ' ' -"

/* Commands are for sh. ASSAY is this program, DEVICE the device, FILE a file of the step, LANGUAGE a
 * version of MSL; KERNELS, CANARIES and PROBES are files of Assay. */
/* clang-format off */
static const step_kind kinds[] = {
    {"system", "uname -srm", NULL, 10, STEP_TELLS, ""},
    {"macos", "sw_vers" IN_A_LINE, NULL, 10, STEP_TELLS, ""},
#if defined(__APPLE__)
    {"machine", "sysctl -n hw.model hw.memsize hw.ncpu hw.pagesize machdep.cpu.brand_string" IN_A_LINE,
     NULL, 10, STEP_TELLS, ""},
#endif
    {"xcode", "xcode-select -p", NULL, 10, STEP_TELLS, ""},
    {"sdk", "xcrun --show-sdk-version", NULL, 20, STEP_TELLS, ""},
    {"nvidia", "nvidia-smi --format=csv "
               "--query-gpu=name,driver_version,memory.total,compute_cap,clocks.max.sm",
     NULL, 20, STEP_TELLS, ""},
    {"cc", "cc --version | head -n 1", NULL, 10, STEP_TELLS, ""},
    {"clang", "env \"$ASSAY\" info --device soft --field compiler", NULL, 10, STEP_TELLS, ""},
    {"info", INFO " && " INFO " --field device", NULL, 30, STEP_DEVICE | STEP_OPENS,
     "The device cannot be opened; none of its other steps was tried."},
    {"times", TIMES, NULL, 60, STEP_DEVICE,
     "The device's times of launches cannot be used as they are."},
    {"mapping", INFO " --field weights", NULL, 60, STEP_DEVICE | STEP_TELLS, ""},
    {"denormals", DENORMALS, NULL, 60, STEP_DEVICE,
     "It flushes denormals although info says otherwise: check may fail correct kernels."},
    {"check", CHECK " --csv \"$FILE.csv\"",
     CHECK " --csv \"$FILE.csv\" --quick buffer_copy residual_add rmsnorm argmax_reduce",
     150, STEP_DEVICE | STEP_MAY_BE_CUT,
     "A kernel's results differ from its oracle's, or it does not run."},
    {"model", "\"$ASSAY\" model check --device \"$DEVICE\"", NULL, 120, STEP_DEVICE,
     "In a whole model, the results of a launch differ from its oracle's."},
    {"compile", LINT "$LANGUAGE \"$KERNELS\" \"$CANARIES\"",
     LINT "$LANGUAGE \"$KERNELS/buffer_copy.metal\" \"$KERNELS/rmsnorm.metal\"",
     120, STEP_DEVICE | STEP_LANGUAGE | STEP_MAY_BE_CUT,
     "The device's compiler refuses a kernel; its message says where and why."},
    {"validate", VALIDATE, VALIDATE " buffer_copy", 150, STEP_DEVICE | STEP_MAY_BE_CUT,
     "Validation found a bad access or missed a planted bug: see reports/."},
    {"roofs", BENCH "0.3 bandwidth_copy bandwidth_read compute_fma dispatch_overhead_noop",
     BENCH "0.05 dispatch_overhead_noop", 60, STEP_DEVICE | STEP_MAY_BE_CUT,
     "A kernel failed while it was timed."},
    {"bench", BENCH "0.3 matvec --format q4_0 --batch 1", BENCH "0.05 rmsnorm", 120,
     STEP_DEVICE | STEP_MAY_BE_CUT, "A kernel failed while it was timed."},
    {"model-bench", MODEL_BENCH "-p 8,64 -n 32", MODEL_BENCH "-p 8 -n 4 -r 1", 120,
     STEP_DEVICE | STEP_MAY_BE_CUT, "A whole model failed while it was timed."},
    {"long", LONG, NULL, 60, STEP_DEVICE | STEP_RISKY,
     "A kernel of less than a second is ended, or one of seconds never returns."},
    {"fault", FAULT, NULL, 60, STEP_DEVICE | STEP_RISKY | STEP_TELLS, ""},
    {"after-fault", CHECK " buffer_copy/33/normal", NULL, 60, STEP_DEVICE | STEP_RISKY,
     "After one kernel's bad store, other processes cannot use the device."},
};
/* clang-format on */
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef enum { WENT_WELL, WENT_WRONG, WAS_CUT, CANNOT_RUN, NOT_RUN, VERDICTS } verdict;
static const char *const verdict_names[VERDICTS] = {"ok", "WRONG", "cut", "cannot", "not run"};

typedef struct {
    const step_kind *kind;
    char name[64];         /* "check metal" */
    char file[64];         /* "07-check-metal": its files, without their ends */
    const char *on_device; /* "" for none */
    char language[24];     /* an option of lint, or "" */
    /* What came of it: */
    verdict verdict;
    child_end end;
    char text[256];           /* the line that says most */
    char tail[TAIL][COLUMNS]; /* its last lines */
    size_t tail_count;
} step;

typedef struct {
    char folder[PATH_MAX]; /* of everything that goes into the file */
    step *steps;
    size_t count, counts[VERDICTS];
    uint64_t start_ns;
    memory_file *summary; /* what is printed, once more */
    progress progress;
} visit;

/* Steps of programs that are not installed are left out. */
static bool is_wanted(const step_kind *k, const char *const *names, size_t count) {
    char program[64], path[PATH_MAX];
    bool is_named = count == 0;
    for (size_t i = 0; i < count && !is_named; i++)
        is_named = strcmp(k->name, names[i]) == 0;
    snprintf(program, sizeof program, "%.*s", (int)strcspn(k->command, " "), k->command);
    return is_named && (settings.risky || !(k->flags & STEP_RISKY)) &&
           (k->flags & STEP_DEVICE || os_find_program(program, path, sizeof path));
}

static bool check_names(const char *const *names, size_t count, err *e) {
    const char *known[KINDS];
    for (size_t i = 0; i < KINDS; i++)
        known[i] = kinds[i].name;
    for (size_t k = 0; k < count; k++) {
        size_t i =
            options_find_name("step", names[k], known, KINDS, "assay help doctor lists them", e);
        if (i == KINDS)
            return false;
        if (kinds[i].flags & STEP_RISKY && !settings.risky)
            return err_set(e, EXIT_USAGE, "the step '%s' may hang the machine: it needs --risky",
                           names[k]);
    }
    return true;
}

static void add_step(visit *v, const step_kind *k, const char *on_device, int language) {
    char version[MSL_LANGUAGE_TEXT] = "";
    step *s = &v->steps[v->count++];
    *s = (step){.kind = k, .on_device = on_device};
    if (language) {
        msl_spell_language(language, version);
        snprintf(s->language, sizeof s->language, "--language %s", version);
    }
    snprintf(s->name, sizeof s->name, "%s%s%s%s%.40s", k->name, *version ? "-" : "", version,
             *on_device ? " " : "", on_device);
    snprintf(s->file, sizeof s->file, "%02zu-%.56s", v->count, s->name);
    for (char *c = s->file; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.')
            *c = '-';
}

static void add_steps(visit *v, const char *const *devices, size_t device_count,
                      const char *const *names, size_t count) {
    v->steps = array_new(KINDS * (device_count + 1) * (MSL_LANGUAGES + 1), sizeof *v->steps);
    for (const step_kind *k = kinds; k < kinds + KINDS; k++) {
        size_t times = k->flags & STEP_DEVICE ? device_count : 1;
        for (size_t i = 0; i < times && is_wanted(k, names, count); i++) {
            const char *on_device = k->flags & STEP_DEVICE ? devices[i] : "";
            bool many = k->flags & STEP_LANGUAGE && strncmp(on_device, "metal", 5) == 0;
            for (size_t n = 0; n < (many ? MSL_LANGUAGES : 1); n++)
                add_step(v, k, on_device, many ? msl_languages[n] : 0);
        }
    }
}

/* Running ------------------------------------------------------------------------------------------ */

/* The message of a program that failed, or else the last line; without what compiling took. */
static void read_log(step *s, const char *log) {
    bool has_message = false;
    for (const char *p = log; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        bool is_message = strncmp(line, "assay: ", 7) == 0;
        if (!line[strspn(line, " ")] || strstr(line, "the cache") || !strncmp(line, "FAILED ", 7))
            continue;
        if (is_message || !has_message)
            snprintf(s->text, sizeof s->text, "%s", line + (is_message ? 7 : strspn(line, " ")));
        has_message |= is_message;
        if (s->tail_count == TAIL)
            memmove(s->tail, s->tail + 1, --s->tail_count * sizeof *s->tail);
        snprintf(s->tail[s->tail_count++], sizeof *s->tail, "%.*s", COLUMNS - 5, line);
    }
}

/* Did a step report something before it was ended at its limit? */
static bool has_failure(const char *log) {
    static const char *const signs[] = {"failed:",   "error: ",    "crashed",
                                        "timed out", "not caught", "does not compile"};
    bool has = false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        has |= strstr(log, signs[i]) != NULL;
    return has;
}

/* at_end: the limit was what is left of the time for all steps, so that being late says nothing. */
static verdict judge(const step *s, const char *log, bool at_end) {
    if (s->end.is_late && (at_end || s->kind->flags & STEP_MAY_BE_CUT))
        return has_failure(log) ? WENT_WRONG : WAS_CUT;
    if (s->end.is_late || s->end.is_profuse)
        return WENT_WRONG;
    if (s->end.status == EXIT_OK || s->kind->flags & STEP_TELLS)
        return WENT_WELL;
    return s->end.status == EXIT_CANNOT && !(s->kind->flags & STEP_OPENS) ? CANNOT_RUN : WENT_WRONG;
}

static void describe_end(step *s) {
    char line[160], how[64];
    if (s->end.is_late)
        snprintf(how, sizeof how, "ended after %.0f s", s->end.seconds);
    else if (s->end.is_profuse)
        snprintf(how, sizeof how, "ended: it printed more than %d MB", LOG_BYTES >> 20);
    else if (s->end.status > 128)
        snprintf(how, sizeof how, "crashed with signal %d", s->end.status - 128);
    else
        return;
    snprintf(line, sizeof line, "%.159s", s->text);
    snprintf(s->text, sizeof s->text, "%s%s%s", how, line[0] ? "; last line: " : "", line);
}

/* Why it is not even tried; NULL if it is. */
static const char *find_obstacle(const visit *v, const step *s, double left_s) {
    if (left_s < 1)
        return "the time for all steps is over";
    for (const step *k = v->steps; k < s; k++)
        if (k->kind->flags & STEP_OPENS && k->verdict == WENT_WRONG &&
            strcmp(k->on_device, s->on_device) == 0)
            return "info failed";
    return NULL;
}

/* *log is what it printed, which also goes into a file, whatever becomes of it. */
static bool run_logged(visit *v, const char *command, const char *file, double limit_s, char **log,
                       child_end *end, err *e) {
    char path[PATH_MAX];
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    child_limits limits = {.seconds = limit_s,
                           .output_bytes = LOG_BYTES,
                           .leads_group = true,
                           .progress = v->progress.what ? &v->progress : NULL};
    if (!path_print(path, sizeof path, e, "%s/%s.txt", v->folder, file) ||
        !child_run_within(argv, &limits, log, end, e))
        return false;
    *log = *log ? *log : strdup("");
    return os_write_file(path, *log, strlen(*log), e);
}

static bool run_step(visit *v, step *s, double left_s, err *e) {
    double limit_s = settings.limit_s > 0 ? settings.limit_s : s->kind->limit_s;
    char path[PATH_MAX], *log = NULL;
    if (!path_join(path, sizeof path, e, v->folder, s->file))
        return false;
    setenv("FILE", path, 1);
    setenv("DEVICE", s->on_device, 1);
    setenv("LANGUAGE", s->language, 1);
    const char *command = settings.quick && s->kind->quick ? s->kind->quick : s->kind->command;
    err own = {.code = EXIT_OK};
    if (run_logged(v, command, s->file, fmin(limit_s, left_s), &log, &s->end, &own)) {
        read_log(s, log);
        s->verdict = judge(s, log, left_s < limit_s);
        describe_end(s);
    } else {
        s->verdict = CANNOT_RUN;
        snprintf(s->text, sizeof s->text, "%s", own.text);
    }
    free(log);
    if (own.code == EXIT_INTERRUPTED)
        *e = own;
    return own.code != EXIT_INTERRUPTED;
}

static void say(visit *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(visit *v, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    vprintf(format, args);
    vfprintf(v->summary->out, format, again);
    va_end(again);
    va_end(args);
}

static bool run_steps(visit *v, err *e) {
    double total_s = settings.total_s > 0 ? settings.total_s : settings.quick ? 120 : 600;
    v->progress = progress_new(stderr, "steps", v->count);
    for (step *s = v->steps; s < v->steps + v->count; s++) {
        progress_update(&v->progress, (size_t)(s - v->steps));
        double left_s = total_s - (double)(os_now_ns() - v->start_ns) * 1e-9;
        const char *obstacle = find_obstacle(v, s, left_s);
        if (obstacle) {
            s->verdict = NOT_RUN;
            snprintf(s->text, sizeof s->text, "%s", obstacle);
        } else if (!run_step(v, s, left_s, e))
            return false;
        v->counts[s->verdict]++;
        progress_hide(&v->progress);
        say(v, "%-7s %6.1f s  %-18.18s  %.*s\n", verdict_names[s->verdict], s->end.seconds, s->name,
            COLUMNS - 39, s->text);
        if (!verb_flush(e))
            return false;
    }
    return true;
}

static void say_wrong(visit *v, const step *s) {
    bool may_hang = s->end.is_late && !(s->kind->flags & STEP_MAY_BE_CUT);
    say(v, "\n  %s (%s.txt)\n    %s\n    %.*s\n", s->name, s->file,
        may_hang ? "It hangs, or this machine is slow: --limit S gives it more time."
                 : s->kind->meaning,
        COLUMNS - 5, s->text);
    for (size_t i = 0; i < s->tail_count; i++)
        say(v, "    %s\n", s->tail[i]);
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
    say(v, ", in %.0f s\n", (double)(os_now_ns() - v->start_ns) * 1e-9);
    for (size_t i = 0; i < v->count; i++)
        if (v->steps[i].verdict == WENT_WRONG)
            say_wrong(v, &v->steps[i]);
}

/* The file: a .tar.gz of what the steps wrote, without what says who ran them -------------------- */

enum { MOST_BYTES = 16 << 20, GZIP_SECONDS = 120, RULES = 4, BLOCK = 512 };

typedef struct {
    const char *from, *to;
    bool in_path; /* only as a whole part of a path */
} rule;

typedef struct {
    FILE *out;
    const char *folder;
    rule rules[RULES];
} archive;

/* A whole word: what follows does not go on with it. */
static const rule *find_rule(const rule *rules, const char *text, const char *at) {
    for (size_t i = 0; i < RULES; i++) {
        const size_t n = rules[i].from ? strlen(rules[i].from) : 0;
        if (n > 1 && strncmp(at, rules[i].from, n) == 0 && !isalnum((unsigned char)at[n]) &&
            at[n] != '_' && at[n] != '-' && (!rules[i].in_path || (at > text && at[-1] == '/')))
            return &rules[i];
    }
    return NULL;
}

/* The caller frees it. The home folder becomes ~, the folder of the files TMP, and the user's name in paths
 * USER. */
static char *redact(const archive *a, const char *text, size_t *bytes) {
    char *out = NULL;
    const char *end = text + *bytes;
    FILE *to = open_memstream(&out, bytes);
    assert(to);
    for (const char *p = text; p < end;) {
        const rule *r = find_rule(a->rules, text, p);
        if (r)
            fputs(r->to, to);
        else
            fputc(*p, to);
        p += r ? strlen(r->from) : 1;
    }
    fclose(to);
    return out;
}

/* In the ustar format (POSIX pax, "ustar Interchange Format"), whose numbers are octal text: nothing about the
 * machine goes in, files belong to user and group 0 without names. */
static void add_text(archive *a, const char *name, const char *text, size_t bytes) {
    static const char zeros[BLOCK];
    char head[BLOCK + 1] = "", *redacted = redact(a, text, &bytes);
    unsigned sum = 0;
    snprintf(head, 100, "assay-doctor/%s", name);
    snprintf(head + 100, 157, "0000644%c0000000%c0000000%c%011zo%c%011" PRIo64 "%c        0", 0, 0,
             0, bytes, 0, (uint64_t)time(NULL) & 077777777777, 0);
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 7, "%06o", sum);
    fwrite(head, BLOCK, 1, a->out);
    fwrite(redacted, 1, bytes, a->out);
    fwrite(zeros, 1, (BLOCK - bytes % BLOCK) % BLOCK, a->out);
    free(redacted);
}

/* Files of the folder, and those of the folders in its tmp, which are reports. */
static bool add_file(void *context, const char *path, err *e) {
    archive *a = context;
    const char *name = path + strlen(a->folder) + 1;
    const bool is_report = strncmp(name, "tmp/", 4) == 0;
    char inside[86]; /* what is longer is cut */
    size_t depth = 0, bytes = 0;
    err why;
    (void)e;
    for (const char *p = name; *p; p++)
        depth += *p == '/';
    if (depth != (is_report ? 2 : 0))
        return true;
    snprintf(inside, sizeof inside, "%s%s", is_report ? "reports/" : "",
             name + (is_report ? 4 : 0));
    for (char *p = inside + 8; is_report && *p; p++)
        *p = *p == '/' ? '-' : *p;
    char *text = os_read_plain(path, MOST_BYTES, &bytes, &why);
    add_text(a, inside, text ? text : why.text, text ? bytes : strlen(why.text));
    free(text);
    return true;
}

static bool write_file(visit *v, err *e) {
    const struct passwd *user = getpwuid(getuid());
    char plain[PATH_MAX], *output = NULL;
    size_t bytes = 0;
    int status = 0;
    if (!path_print(plain, sizeof plain, e, "%s/all.tar", v->folder))
        return false;
    memory_file *tar = memory_file_new();
    archive a = {tar->out,
                 v->folder,
                 {{v->folder, "TMP", false},
                  {getenv("HOME"), "~", false},
                  {user ? user->pw_dir : NULL, "~", false},
                  {user ? user->pw_name : NULL, "USER", true}}};
    fflush(v->summary->out);
    add_text(&a, "summary.txt", v->summary->text, v->summary->bytes);
    folder_walk(v->folder, "", NULL, add_file, &a, NULL);
    for (size_t i = 0; i < 2 * BLOCK; i++) /* the end */
        fputc(0, a.out);
    const char *const argv[] = {"gzip", "-n", "-9", plain, NULL};
    bool ok = memory_file_write(tar, plain, e) &&
              child_run_for(argv, GZIP_SECONDS, &output, &status, e) &&
              (status == 0 || err_set(e, EXIT_CANNOT, "gzip failed with status %d", status));
    free(output);
    strcat(plain, ".gz");
    char *data = ok ? os_read_file(plain, &bytes, e) : NULL;
    ok = data && os_write_file(settings.out, data, bytes, e);
    free(data);
    if (ok)
        printf("\nSend %s (%.0f KB). `tar -xzf` shows what is in it.\n", settings.out,
               (double)bytes * 1e-3);
    return ok;
}

/* Beginning ---------------------------------------------------------------------------------------- */

/* In a process of its own: a driver may crash. */
static bool find_devices(visit *v, option_list *out, err *e) {
    static char *log; /* steps have names that are in it */
    child_end end;
    if (!run_logged(v, DEVICES, "00-devices", 60, &log, &end, e))
        return false;
    for (char *name = strtok(log, "\n"); name; name = strtok(NULL, "\n")) {
        assert(out->count < OPTION_LIST_MAX);
        out->items[out->count++] = name;
    }
    if (out->count == 0)
        out->items[out->count++] = "auto"; /* its step says why there is none */
    return true;
}

/* What commands call by these names. Files that steps make for themselves are removed with the folder;
 * reports of validation stay until they are in the file. The kernels are Assay's own, also in a project: the
 * folder is none. */
static bool set_environment(const visit *v, err *e) {
    char self[PATH_MAX], tmp[PATH_MAX], kernels[PATH_MAX], canaries[PATH_MAX], probes[PATH_MAX];
    const char *given = getenv("ASSAY_KERNELS");
    if (!path_join(tmp, sizeof tmp, e, v->folder, "tmp") || !os_make_folder(tmp, e) ||
        !os_find_self(self, sizeof self, e) ||
        !os_join_home(kernels, sizeof kernels, e, "kernels") ||
        !os_join_home(canaries, sizeof canaries, e, "harness/check/canaries") ||
        !os_join_home(probes, sizeof probes, e, "cli/doctor.metal"))
        return false;
    const char *const pairs[][2] = {{"TMPDIR", tmp},
                                    {"ASSAY_PROJECT", v->folder},
                                    {"ASSAY_KEEP_REPORTS", "1"},
                                    {"ASSAY", self},
                                    {"CANARIES", canaries},
                                    {"PROBES", probes},
                                    {"KERNELS", given && *given ? given : kernels}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!verb_set_environment(pairs[i][0], pairs[i][1], e))
            return false;
    return true;
}

static bool make_plan(visit *v, const char *const *names, size_t count, err *e) {
    option_list *devices = &settings.devices;
    if (!check_names(names, count, e) || !set_environment(v, e) ||
        (devices->count == 0 && !find_devices(v, devices, e)))
        return false;
    add_steps(v, devices->items, devices->count, names, count);
    return v->count > 0 ||
           err_set(e, EXIT_CANNOT, "nothing was run: %s is a program that is not installed here",
                   names[0]);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    char gzip[PATH_MAX];
    visit v = {.start_ns = os_now_ns()};
    if (!path_ends_with(settings.out, ".tar.gz"))
        return err_code(e, EXIT_USAGE, "--out takes a name that ends in .tar.gz, not '%.100s'",
                        settings.out);
    if (!os_find_program("gzip", gzip, sizeof gzip))
        return err_code(e, EXIT_CANNOT, "the file is compressed by gzip, which is not installed");
    v.summary = memory_file_new();
    os_watch_stop(true);
    bool ok = os_check_writable(settings.out, e) && os_make_scratch(v.folder, sizeof v.folder, e) &&
              make_plan(&v, names, count, e) && run_steps(&v, e);
    if (ok)
        say_summary(&v);
    ok = ok && write_file(&v, e);
    os_watch_stop(false);
    if (v.folder[0])
        os_remove_folder(v.folder);
    memory_file_free(v.summary);
    free(v.steps);
    return !ok ? e->code : v.counts[WENT_WRONG] > 0 ? EXIT_WRONG : EXIT_OK;
}

VERB(
    verb_doctor, "doctor", run_verb, .names = "[STEP...]",
    .about = "find what is wrong with this machine, and leave one file to send",
    .notes =
        "Runs one step after another, each in a process of its own with a time limit, and goes on\n"
        "after failures: system and compilers, info, probes of the device (times, mapping,\n"
        "denormals), check, model, compile (every kernel by the device's own compiler),\n"
        "validate, roofs, bench and model-bench on every available device; with --risky also\n"
        "long, fault and after-fault. STEP runs only that step. Prints one line per step, then\n"
        "what is wrong. It takes at most about 10 minutes, and nothing is sent anywhere.\n\n"
        "In the file: what each step printed, the rows of check and bench, and the raw reports of\n"
        "Metal's validation. That names the machine, its GPUs, the versions of its system and\n"
        "compilers, and folders of kernels and caches. Your home folder is written as ~ and\n"
        "your user name in paths as USER; no environment variables and no other files go in.\n\n"
        "Exit status: 0 nothing is wrong; 1 something is; 2 bad usage or path; 3 the file\n"
        "cannot be written.\n",
    VERB_OPTIONS(options));
