#include "doctor_steps.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/device/msl/msl.h"
#include "options.h"

/* In a command, DEVICE is the device, KERNELS the folder of kernels, FILE a file of the step, and
 * assay this program. Expected seconds are those of an M-series Mac. */
typedef struct {
    const char *name, *command;
    const char *quick; /* with --quick instead; NULL: the same */
    double expected_s, limit_s;
    unsigned flags;
    const char *meaning;
} row;

#define CHECK "assay check --device DEVICE --quiet --timeout 20"
#define VALIDATE "assay validate --device DEVICE --quick --quiet --timeout 30"
#define BENCH "assay bench --device DEVICE --out FILE.csv --budget "
#define MODEL_BENCH "assay model bench --device DEVICE --csv FILE.csv "
#define PROBE "assay doctor --device DEVICE --probe "

/* clang-format off */
static const row rows[] = {
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
    {"info", "assay info --device DEVICE", NULL, 0.5, 30, STEP_DEVICE | STEP_OPENS,
     "The device cannot be opened; none of its other steps was tried."},
    {"times", PROBE "times", NULL, 1, 60, STEP_DEVICE,
     "The device's times of launches cannot be used as they are."},
    {"mapping", PROBE "mapping", NULL, 1, 60, STEP_DEVICE,
     "Mapped files are copied or misread: models need twice their size."},
    {"denormals", PROBE "denormals", NULL, 1, 60, STEP_DEVICE,
     "It flushes denormals, unlike what info says: check expects too much."},
    {"check", CHECK " --csv FILE.csv",
     CHECK " --csv FILE.csv --quick buffer_copy residual_add rmsnorm argmax_reduce",
     40, 150, STEP_DEVICE | STEP_MAY_BE_CUT,
     "A kernel computes something else than its oracle, or does not run."},
    {"model", "assay model check --device DEVICE", NULL, 5, 120, STEP_DEVICE,
     "A launch of a whole model computes something else than its oracle."},
    {"compile", "assay lint --device DEVICE KERNELS CANARIES",
     "assay lint --device DEVICE KERNELS/buffer_copy.metal KERNELS/rmsnorm.metal",
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
    {"long", PROBE "long", NULL, 20, 60, STEP_DEVICE | STEP_RISKY,
     "A kernel of less than a second is ended, or one of seconds never returns."},
    {"fault", PROBE "fault", NULL, 2, 60, STEP_DEVICE | STEP_RISKY | STEP_TELLS, ""},
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
static bool is_wanted(const doctor_wish *w, const row *r) {
    bool named = w->name_count == 0;
    char program[64], path[PATH_MAX];
    snprintf(program, sizeof program, "%.*s", (int)strcspn(r->command, " "), r->command);
    if (strcmp(program, "assay") != 0 && !os_find_program(program, path, sizeof path))
        return false;
    for (size_t k = 0; k < w->name_count; k++)
        named |= strcmp(r->name, w->names[k]) == 0;
    return named && (w->risky || !(r->flags & STEP_RISKY));
}

/* Where the kernels are, and the program. */
typedef struct {
    char self[PATH_MAX], kernels[PATH_MAX], canaries[PATH_MAX];
} places;

static bool find_places(places *p, err *e) {
    char home[PATH_MAX];
    const char *given = getenv("ASSAY_KERNELS");
    return os_find_self(p->self, sizeof p->self, e) && os_find_home(home, sizeof home, e) &&
           (given && *given ? path_print(p->kernels, sizeof p->kernels, e, "%s", given)
                            : path_join(p->kernels, sizeof p->kernels, e, home, "kernels")) &&
           path_join(p->canaries, sizeof p->canaries, e, home, "harness/check/canaries");
}

/* One word of a command: its first part may stand for something. */
static bool expand(const char *word, size_t length, const places *p, const doctor_step *s,
                   const char *folder, char *out, err *e) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", folder, s->file);
    const struct {
        const char *name, *value;
    } words[] = {{"assay", p->self},
                 {"KERNELS", p->kernels},
                 {"CANARIES", p->canaries},
                 {"DEVICE", s->device},
                 {"FILE", file}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].name);
        if (length >= n && strncmp(word, words[i].name, n) == 0)
            return path_print(out, PATH_MAX, e, "%s%.*s", words[i].value, (int)(length - n),
                              word + n);
    }
    return path_print(out, PATH_MAX, e, "%.*s", (int)length, word);
}

static bool fill_words(doctor_step *s, const char *command, int language, const places *p,
                       const char *folder, err *e) {
    size_t count = 0;
    for (const char *at = command; *at;) {
        size_t length = strcspn(at, " ");
        assert(count + 3 < DOCTOR_WORDS);
        if (!expand(at, length, p, s, folder, s->words[count++], e))
            return false;
        at += length + (at[length] == ' ');
    }
    if (language) {
        strcpy(s->words[count++], "--language");
        msl_spell_language(language, s->words[count++]);
    }
    for (size_t i = 0; i < count; i++)
        s->argv[i] = s->words[i];
    return true;
}

static bool add_step(doctor_step *s, size_t number, const row *r, const doctor_wish *w,
                     const char *name, int language, const places *p, err *e) {
    char version[MSL_LANGUAGE_TEXT] = "";
    if (language)
        msl_spell_language(language, version);
    *s = (doctor_step){.meaning = r->meaning,
                       .expected_s = r->expected_s,
                       .limit_s = r->limit_s,
                       .flags = r->flags};
    snprintf(s->device, sizeof s->device, "%s", name);
    snprintf(s->name, sizeof s->name, "%s%s%s%s%.40s", r->name, *version ? "-" : "", version,
             *name ? " " : "", name);
    snprintf(s->file, sizeof s->file, "%02zu-%.56s", number, s->name);
    for (char *c = s->file; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.')
            *c = '-';
    return fill_words(s, w->quick && r->quick ? r->quick : r->command, language, p, w->folder, e);
}

size_t doctor_plan(const doctor_wish *w, doctor_step **out, err *e) {
    places p;
    *out = NULL;
    if (!check_names(w, e) || !find_places(&p, e))
        return 0;
    doctor_step *steps = array_new(DOCTOR_STEPS, sizeof *steps);
    size_t count = 0;
    bool ok = true;
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        size_t devices = r->flags & STEP_DEVICE ? w->device_count : 1;
        for (size_t k = 0; k < devices && is_wanted(w, r); k++) {
            const char *name = r->flags & STEP_DEVICE ? w->devices[k] : "";
            bool many = r->flags & STEP_LANGUAGE && strncmp(name, "metal", 5) == 0;
            for (size_t n = 0; n < (many ? MSL_LANGUAGES : 1) && ok; n++, count++)
                ok = (count < DOCTOR_STEPS || err_set(e, EXIT_USAGE, "too many devices")) &&
                     add_step(&steps[count], count + 1, r, w, name, many ? msl_languages[n] : 0, &p,
                              e);
        }
    }
    if (!ok)
        free(steps);
    else
        *out = steps;
    return ok ? count : 0;
}
