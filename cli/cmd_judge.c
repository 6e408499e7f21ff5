/* cmd_judge: `assay judge CANDIDATE.metal`. One verdict: is it right, and is it faster than its base?
 * Composes judge.h (right, in workers) and judge_time.h (timed, one at a time). */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/check/shapes.h"
#include "harness/check/suite.h"
#include "judge_report.h"
#include "kernels/ops.h"
#include "output.h"
#include "report.h"
#include "verb.h"

static struct {
    judge_settings judge;
    judge_time_settings time;
    const char *op, *base, *kernel;
    bool json, untimed, worker;
} settings = {.judge = {.random = 12, .timeout_s = 300, .compile_s = 60, .validate_most = 1 << 25},
              .time = {.bench = {.budget_s = 1, .timeout_s = 120, .min_effect = 3, .again_s = 12}}};

static const option options[] = {
    TEXT_OPTION("op", &settings.op, "OP", "what the candidate computes"),
    TEXT_OPTION("base", &settings.base, "KERNEL",
                "the kernel whose place it takes (default: the first of the op)"),
    TEXT_OPTION("kernel", &settings.kernel, "NAME",
                "the kernel of its file (default: the only one, or the one called as the base)"),
    TEXT_OPTION("launch", &settings.judge.launch, "FILE.launch",
                "how it is launched, if not as the base: see docs/side-by-side.md"),
    {"seed", OPTION_SEED, &settings.judge.seed, "N",
     "seed of inputs and held-out shapes (default: a random one, which is printed)", 1, UINT64_MAX},
    {"held-out", OPTION_NUMBER, &settings.judge.random, "N",
     "shapes that the op does not list (default 12)", 1, HELD_OUT_MOST},
    FLAG_OPTION("untimed", &settings.untimed, "only whether it is right"),
    TEXT_OPTION("shape", &settings.time.shape, "S",
                "the shape that is timed (default: the last of the base)"),
    SECONDS_OPTION("budget", &settings.time.bench.budget_s, "S",
                   "at most this many seconds of samples (default 1)"),
    SECONDS_OPTION("again", &settings.time.bench.again_s, "S",
                   "time an ambiguous candidate again, at most S seconds (default 12)"),
    PERCENT_OPTION("min-effect", &settings.time.bench.min_effect, "PERCENT",
                   "smallest change worth a verdict (default 3)"),
    FLAG_OPTION("json", &settings.json, "print one JSON object"),
    DEVICE_OPTION(&settings.judge.device),
    {"jobs", OPTION_NUMBER, &settings.judge.jobs, "N",
     "candidates checked at the same time (default: one per CPU, up to 16)", 1, 256},
    SECONDS_OPTION("timeout", &settings.judge.timeout_s, "S",
                   "refuse a candidate that takes longer (default 300)"),
    SECONDS_OPTION("compile-limit", &settings.judge.compile_s, "S",
                   "CPU time that all compiles of a candidate may take (default 60)"),
    /* For tests/judge_cheats.py, which has no time for more. */
    {"validate-most", OPTION_NUMBER, &settings.judge.validate_most, NULL, NULL, 1, UINT64_MAX},
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

/* Cases and candidates ------------------------------------------------------------------------- */

static bool find_cases(const char *name, size_t random, uint64_t seed, case_list *out, err *e) {
    char extra[32];
    snprintf(extra, sizeof extra, "random:%zu", random);
    return cases_find_kernel(name, random ? extra : NULL, seed, out, e);
}

/* The base: the kernel that is named, or the first of the op that both this device and the software
 * device, which validates, can run. */
static const kernel *find_base(const device_facts *f, const op **owner, err *e) {
    const op *o = settings.op ? registry_find_op(settings.op) : NULL;
    const kernel *k = settings.base ? registry_find_kernel(settings.base, owner) : NULL;
    device_facts soft;
    const suite software = {.device = "soft"};
    if (!settings.op && !settings.base)
        return err_null(e, EXIT_USAGE, "--op OP says what the candidate computes: see assay list");
    if (settings.op && !o)
        return err_null(e, EXIT_USAGE, "there is no op '%.60s': see assay list", settings.op);
    if (settings.base && !k)
        return err_null(e, EXIT_USAGE, "there is no kernel '%.60s': see assay list", settings.base);
    if (k && o && *owner != o)
        return err_null(e, EXIT_USAGE, "the base %.60s is of the op %.60s, not of %.60s", k->name,
                        (*owner)->name, o->name);
    if (!suite_find_device(&software, &soft, e))
        return NULL;
    for (size_t i = 0; !k && i < o->kernel_count; i++)
        if (device_offers(f, o->kernels[i].needs, NULL) &&
            device_offers(&soft, o->kernels[i].needs, NULL))
            k = &o->kernels[i];
    *owner = o ? o : *owner;
    err why;
    if (k && device_offers(f, k->needs, &why) && device_offers(&soft, k->needs, &why))
        return k;
    return err_null(e, EXIT_CANNOT, "%.60s cannot be judged on this machine: it %.120s",
                    k ? k->name : o->name, k ? why.text : "has no kernel for this device");
}

typedef struct {
    judgement *items;
    size_t count, room;
} judgement_list;

static void add_candidate(judgement_list *l, const char *path, const kernel *base) {
    judgement *j = ARRAY_ADD(l->items, l->count, l->room);
    *j = (judgement){.given = {strdup(path), settings.kernel, base->name}};
}

/* A folder stands for its .metal files. */
static bool add_folder(judgement_list *l, const char *folder, const kernel *base, err *e) {
    struct dirent **entries;
    size_t before = l->count;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        return err_set(e, EXIT_USAGE, "cannot read the folder %.200s", folder);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        const char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && strcmp(dot, ".metal") == 0 &&
            path_join(path, sizeof path, NULL, folder, entries[i]->d_name))
            add_candidate(l, path, base);
        free(entries[i]);
    }
    free(entries);
    return l->count > before || err_set(e, EXIT_USAGE, "there is no .metal file in %.200s", folder);
}

static bool find_candidates(judgement_list *l, const char *const *names, size_t count,
                            const kernel *base, err *e) {
    for (size_t i = 0; i < count; i++) {
        char *text = NULL;
        if (os_is_folder(names[i])) {
            if (!add_folder(l, names[i], base, e))
                return false;
            continue;
        }
        size_t length = strlen(names[i]);
        if (length < 7 || strcmp(names[i] + length - 6, ".metal") != 0)
            return err_set(e, EXIT_USAGE, "a candidate is a .metal file, not %.160s", names[i]);
        if (!(text = os_read_plain(names[i], 1 << 20, NULL, e)))
            return false;
        free(text);
        add_candidate(l, names[i], base);
    }
    return true;
}

/* Judging -------------------------------------------------------------------------------------- */

static bool keep_answer(void *context, size_t i, const judge_answer *a, err *e) {
    (void)e;
    ((judgement_list *)context)->items[i].answer = *a;
    return true;
}

static bool judge_all(judgement_list *l, err *e) {
    judge_candidate *given = array_new(l->count + 1, sizeof *given);
    for (size_t i = 0; i < l->count; i++)
        given[i] = l->items[i].given;
    bool ok = judge_run(&settings.judge, given, l->count, keep_answer, l, e);
    free(given);
    return ok;
}

static bool time_all(judgement_list *l, const kernel *base, const device_facts *f, err *e) {
    for (size_t i = 0; i < l->count && !settings.untimed; i++) {
        judgement *j = &l->items[i];
        size_t size = strlen(j->given.path) + sizeof j->answer.kernel + 2;
        char *given = array_new(1, size);
        snprintf(given, size, "%s:%s", j->given.path, j->answer.kernel);
        err why = {.code = EXIT_OK};
        if (j->answer.is_right && !j->answer.is_our_failure &&
            !judge_time_run(&settings.time, f, given, base, &j->time, &why)) {
            if (why.code == EXIT_INTERRUPTED || why.code == EXIT_USAGE) {
                *e = why;
                return false;
            }
            j->answer.is_our_failure = true;
            j->answer.error = why;
        }
    }
    return true;
}

static void set_again(judge_heading *h, const char *const *names, size_t count,
                      const kernel *base) {
    const char *how = settings.judge.launch;
    snprintf(h->again, sizeof h->again,
             "assay judge %.160s%s --base %.80s%s%.80s%s%.160s --seed %" PRIu64, names[0],
             count > 1 ? " ..." : "", base->name, settings.kernel ? " --kernel " : "",
             settings.kernel ? settings.kernel : "", how ? " --launch " : "", how ? how : "",
             h->seed);
}

static exit_code report_all(const judge_heading *h, judgement_list *l, bool is_one, err *e) {
    exit_code code = EXIT_WRONG;
    if (settings.json)
        judge_print_json(stdout, h, l->items, l->count);
    else if (!is_one)
        judge_print_all(stdout, h, l->items, l->count);
    else if (!l->items[0].answer.is_our_failure)
        judge_print_one(stdout, h, &l->items[0]);
    if (is_one && l->items[0].answer.is_our_failure)
        *e = l->items[0].answer.error;
    /* Of several, that of the best. */
    static const exit_code order[] = {EXIT_OK, EXIT_INCONCLUSIVE, EXIT_REGRESSION};
    for (size_t k = sizeof order / sizeof *order; k-- > 0;)
        for (size_t i = 0; i < l->count; i++)
            if (judge_get_code(&l->items[i]) == order[k])
                code = order[k];
    if (is_one)
        code = judge_get_code(&l->items[0]);
    return output_flush(e) ? code : e->code;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (settings.judge.seed == 0)
        settings.judge.seed = rng_draw_seed() | 1;
    settings.judge.find = find_cases;
    settings.judge.arguments = LIST_VALUES("judge", options);
    if (settings.worker)
        return judge_serve(&settings.judge, e);
    device_facts facts;
    suite find = {.device = settings.judge.device};
    if (!suite_find_device(&find, &facts, e))
        return e->code;
    settings.judge.device = facts.spec;
    settings.judge.arguments = LIST_VALUES("judge", options);
    if (count == 0)
        return err_code(e, EXIT_USAGE,
                        "name a candidate, as in assay judge mine.metal --op rmsnorm");
    judgement_list l = {.count = 0};
    judge_heading h = {.facts = &facts, .seed = settings.judge.seed};
    const kernel *base = find_base(&facts, &h.op, e);
    settings.time.launch = settings.judge.launch;
    settings.time.bench.seed = settings.judge.seed;
    bool ok = base && find_candidates(&l, names, count, base, e);
    if (ok && !settings.json)
        report_print_header(&facts, h.seed);
    fflush(stdout);
    ok = ok && judge_all(&l, e) && time_all(&l, base, &facts, e);
    if (ok)
        set_again(&h, names, count, base);
    exit_code code = ok ? report_all(&h, &l, l.count == 1 && !os_is_folder(names[0]), e) : e->code;
    for (size_t i = 0; i < l.count; i++)
        free((void *)(uintptr_t)l.items[i].given.path);
    free(l.items);
    return code;
}

VERB(
    verb_judge, "judge", .names = "CANDIDATE.metal...",
    .about = "one verdict on a kernel that claims to be faster: is it right, and is it?",
    .notes =
        "The candidate takes the place of a kernel of the op, its base, with the same buffers and\n"
        "grid. It must compile and have no errors of lint; be right on the listed shapes and on\n"
        "held-out ones, with inputs from a random seed; and give no finding in the checked mode\n"
        "of the software device: races, accesses outside, reads of what nothing wrote, the\n"
        "output's earlier contents among it. Then it is timed, interleaved with its base. A\n"
        "refusal says what differs, where, and how to repeat it. Several candidates, or a folder\n"
        "of them, give a ranking. Each is compiled and run in a process of its own with limits of\n"
        "time and memory. Exit status, of several that of the best: 0 accepted, 1 rejected, 4 "
        "right\n"
        "and slower, 5 right and the samples cannot tell. See docs/judge.md.\n",
    VERB_OPTIONS(options), .math = "fast", .runs_ops = true);
