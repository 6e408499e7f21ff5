#include "doctor_steps.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/device/msl/msl.h"
#include "options.h"

#define CHECK "\"$ASSAY\" check --device \"$DEVICE\" --quiet --timeout 20"
#define VALIDATE "\"$ASSAY\" validate --device \"$DEVICE\" --quick --quiet --timeout 30"
#define BENCH "\"$ASSAY\" bench --device \"$DEVICE\" --out \"$FILE.csv\" --budget "
#define MODEL_BENCH "\"$ASSAY\" model bench --device \"$DEVICE\" --csv \"$FILE.csv\" "
#define LINT "\"$ASSAY\" lint --device \"$DEVICE\" "
#define LAUNCH "\"$ASSAY\" launch \"$PROBES\" --device \"$DEVICE\" --grid 1 --group 64 "

/* Times of one launch, which no GPU works on for longer than the clock on the wall goes. */
#define TIMES                                                                                      \
    LAUNCH "spin --arg 0=u32[1]:value:20000 --arg 1=u32[64] --repeat 5 | awk '"                    \
           "function ns(n, unit) { return n * (unit ~ /^ns/ ? 1 : unit ~ /^ms/ ? 1e6 : "           \
           "unit ~ /^s/ ? 1e9 : 1e3) } /^time/ { sub(/.*: GPU/, \"GPU\"); print; "                 \
           "gpu = ns($2, $3); wall = ns($8, $9); found = 1 } "                                     \
           "END { exit !(found && gpu > 0 && gpu <= wall * 1.02) }'"
/* A tolerance that allows for denormals that are not flushed does no harm; the opposite does. */
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

/* Commands are for sh. ASSAY is this program, DEVICE the device, FILE a file of the step, LANGUAGE a
 * version of MSL; KERNELS, CANARIES and PROBES are files of Assay. Expected seconds are those of an
 * M-series Mac. */
/* clang-format off */
static const doctor_row rows[] = {
    {"system", "uname -srm", NULL, 0.1, 10, STEP_TELLS, ""},
    {"macos", "sw_vers", NULL, 0.1, 10, STEP_TELLS, ""},
#if defined(__APPLE__)
    {"machine", "sysctl hw.model hw.memsize hw.ncpu hw.pagesize machdep.cpu.brand_string",
     NULL, 0.1, 10, STEP_TELLS, ""},
#endif
    {"xcode", "xcode-select -p", NULL, 0.1, 10, STEP_TELLS, ""},
    {"sdk", "xcrun --show-sdk-version", NULL, 0.2, 20, STEP_TELLS, ""},
    {"nvidia", "nvidia-smi --format=csv "
               "--query-gpu=name,driver_version,memory.total,compute_cap,clocks.max.sm",
     NULL, 0.2, 20, STEP_TELLS, ""},
    {"cc", "cc --version", NULL, 0.1, 10, STEP_TELLS, ""},
    {"clang", "clang --version", NULL, 0.1, 10, STEP_TELLS, ""},
    {"info", "\"$ASSAY\" info --device \"$DEVICE\"", NULL, 0.5, 30, STEP_DEVICE | STEP_OPENS,
     "The device cannot be opened; none of its other steps was tried."},
    {"times", TIMES, NULL, 1, 60, STEP_DEVICE,
     "The device's times of launches cannot be used as they are."},
    {"mapping", "\"$ASSAY\" info --device \"$DEVICE\" --field weights", NULL, 1, 60,
     STEP_DEVICE | STEP_TELLS, ""},
    {"denormals", DENORMALS, NULL, 1, 60, STEP_DEVICE,
     "It flushes denormals, unlike what info says: check expects too much."},
    {"check", CHECK " --csv \"$FILE.csv\"",
     CHECK " --csv \"$FILE.csv\" --quick buffer_copy residual_add rmsnorm argmax_reduce",
     40, 150, STEP_DEVICE | STEP_MAY_BE_CUT,
     "A kernel computes something else than its oracle, or does not run."},
    {"model", "\"$ASSAY\" model check --device \"$DEVICE\"", NULL, 5, 120, STEP_DEVICE,
     "A launch of a whole model computes something else than its oracle."},
    {"compile", LINT "$LANGUAGE \"$KERNELS\" \"$CANARIES\"",
     LINT "$LANGUAGE \"$KERNELS/buffer_copy.metal\" \"$KERNELS/rmsnorm.metal\"",
     30, 120, STEP_DEVICE | STEP_LANGUAGE | STEP_MAY_BE_CUT,
     "The device's compiler refuses a kernel; its message says where and why."},
    {"validate", VALIDATE, VALIDATE " buffer_copy", 60, 150, STEP_DEVICE | STEP_MAY_BE_CUT,
     "Validation found a bad access or missed a planted bug: see reports/."},
    {"roofs", BENCH "0.3 bandwidth_copy bandwidth_read compute_fma dispatch_overhead_noop",
     BENCH "0.05 dispatch_overhead_noop", 30, 60, STEP_DEVICE | STEP_MAY_BE_CUT,
     "A kernel failed while it was timed."},
    {"bench", BENCH "0.3 matvec --format q4_0 --batch 1", BENCH "0.05 rmsnorm", 60, 120,
     STEP_DEVICE | STEP_MAY_BE_CUT, "A kernel failed while it was timed."},
    {"model-bench", MODEL_BENCH "-p 8,64 -n 32", MODEL_BENCH "-p 8 -n 4 -r 1", 60, 120,
     STEP_DEVICE | STEP_MAY_BE_CUT, "A whole model failed while it was timed."},
    {"long", LONG, NULL, 20, 60, STEP_DEVICE | STEP_RISKY,
     "A kernel of less than a second is ended, or one of seconds never returns."},
    {"fault", FAULT, NULL, 2, 60, STEP_DEVICE | STEP_RISKY | STEP_TELLS, ""},
    {"after-fault", CHECK " buffer_copy/33/normal", NULL, 2, 60, STEP_DEVICE | STEP_RISKY,
     "After one kernel's bad store, other processes cannot use the device."},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static bool check_names(const doctor_wish *w, err *e) {
    const char *names[ROWS];
    char valid[400] = "";
    for (size_t i = 0; i < ROWS; i++) {
        size_t used = strlen(valid);
        names[i] = rows[i].name;
        snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "", rows[i].name);
    }
    for (size_t k = 0; k < w->name_count; k++) {
        size_t i = 0;
        while (i < ROWS && strcmp(rows[i].name, w->names[k]) != 0)
            i++;
        const char *nearest = options_find_nearest(w->names[k], names, ROWS);
        if (i == ROWS)
            return err_set(e, EXIT_USAGE, "no step is called '%.40s'%s%s; there are %s",
                           w->names[k], nearest ? "; did you mean " : "", nearest ? nearest : "",
                           valid);
        if (rows[i].flags & STEP_RISKY && !w->risky)
            return err_set(e, EXIT_USAGE, "the step '%s' may hang the machine: it needs --risky",
                           rows[i].name);
    }
    return true;
}

/* Programs that are not installed have nothing to tell. */
static bool is_wanted(const doctor_wish *w, const doctor_row *r) {
    bool named = w->name_count == 0;
    char program[64], path[PATH_MAX];
    snprintf(program, sizeof program, "%.*s", (int)strcspn(r->command, " "), r->command);
    if (!(r->flags & STEP_DEVICE) && !os_find_program(program, path, sizeof path))
        return false;
    for (size_t k = 0; k < w->name_count; k++)
        named |= strcmp(r->name, w->names[k]) == 0;
    return named && (w->risky || !(r->flags & STEP_RISKY));
}

/* What commands call by these names. */
static bool set_places(err *e) {
    char self[PATH_MAX], home[PATH_MAX], kernels[PATH_MAX], canaries[PATH_MAX], probes[PATH_MAX];
    const char *given = getenv("ASSAY_KERNELS");
    if (!os_find_self(self, sizeof self, e) || !os_find_home(home, sizeof home, e) ||
        !path_join(kernels, sizeof kernels, e, home, "kernels") ||
        !path_join(canaries, sizeof canaries, e, home, "harness/check/canaries") ||
        !path_join(probes, sizeof probes, e, home, "cli/doctor.metal"))
        return false;
    return (setenv("ASSAY", self, 1) == 0 && setenv("CANARIES", canaries, 1) == 0 &&
            setenv("PROBES", probes, 1) == 0 &&
            setenv("KERNELS", given && *given ? given : kernels, 1) == 0) ||
           err_set(e, EXIT_CANNOT, "the environment of this process cannot be set");
}

static void add_step(doctor_step *s, size_t number, const doctor_row *r, const char *device,
                     int language) {
    char version[MSL_LANGUAGE_TEXT] = "";
    if (language)
        msl_spell_language(language, version);
    *s = (doctor_step){.row = r, .device = device};
    if (language)
        snprintf(s->language, sizeof s->language, "--language %s", version);
    snprintf(s->name, sizeof s->name, "%s%s%s%s%.40s", r->name, *version ? "-" : "", version,
             *device ? " " : "", device);
    snprintf(s->file, sizeof s->file, "%02zu-%.56s", number, s->name);
    for (char *c = s->file; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.')
            *c = '-';
}

size_t doctor_plan(const doctor_wish *w, doctor_step **out, err *e) {
    *out = NULL;
    if (!check_names(w, e) || !set_places(e))
        return 0;
    size_t count = 0;
    *out = array_new(ROWS * (w->device_count + 1) * (MSL_LANGUAGES + 1), sizeof **out);
    for (const doctor_row *r = rows; r < rows + ROWS; r++) {
        size_t devices = r->flags & STEP_DEVICE ? w->device_count : 1;
        for (size_t k = 0; k < devices && is_wanted(w, r); k++) {
            const char *device = r->flags & STEP_DEVICE ? w->devices[k] : "";
            bool many = r->flags & STEP_LANGUAGE && strncmp(device, "metal", 5) == 0;
            for (size_t n = 0; n < (many ? MSL_LANGUAGES : 1); n++, count++)
                add_step(*out + count, count + 1, r, device, many ? msl_languages[n] : 0);
        }
    }
    return count;
}
