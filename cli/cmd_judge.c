/* cmd_judge: `assay judge CANDIDATE.metal`. One verdict: is it right, and is it faster than its base?
 * Composes judge.h (right, in workers) and bench.h (timed, one at a time). */
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/check/judge.h"
#include "harness/check/shapes.h"
#include "harness/check/suite.h"
#include "harness/measure/comparison.h"
#include "kernels/ops.h"
#include "report.h"
#include "verb.h"

static struct {
    judge_settings judge;
    bench_settings bench;
    const char *shapes; /* that are timed; NULL: see choose_timed */
    const char *op, *base, *kernel;
    bool json, untimed, worker;
} settings = {
    .judge = {.random = 12, .timeout_s = 60, .compile_s = 60, .validate_most = 1 << 25},
    .bench = {.budget_s = 1, .timeout_s = 120, .min_effect = 3, .again_s = 12, .fresh = true}};

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
    TEXT_OPTION(
        "shape", &settings.shapes, "S,...",
        "the shapes that are timed (default: the last and a middle one of the base, and two "
        "that are held out)"),
    SECONDS_OPTION("budget", &settings.bench.budget_s, "S",
                   "at most this many seconds of samples (default 1)"),
    SECONDS_OPTION("again", &settings.bench.again_s, "S",
                   "time an ambiguous candidate again, at most S seconds (default 12)"),
    PERCENT_OPTION("min-effect", &settings.bench.min_effect, "PERCENT",
                   "smallest change worth a verdict (default 3)"),
    FLAG_OPTION("json", &settings.json, "print one JSON object"),
    DEVICE_OPTION(&settings.judge.device),
    {"jobs", OPTION_NUMBER, &settings.judge.jobs, "N",
     "candidates checked at the same time (default: one per CPU, up to 16)", 1, 256},
    SECONDS_OPTION("timeout", &settings.judge.timeout_s, "S",
                   "what a candidate may take; then it is refused, or judged by the cases so far "
                   "(default 60)"),
    SECONDS_OPTION("compile-limit", &settings.judge.compile_s, "S",
                   "CPU time that all compiles of a candidate may take (default 60)"),
    /* For tests/judge_cheats.py, which has no time for more. */
    {"validate-most", OPTION_NUMBER, &settings.judge.validate_most, NULL, NULL, 1, UINT64_MAX},
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

/* Cases and candidates ------------------------------------------------------------------------- */

#define MOST_KIND_VALUES 0x1p22 /* of cases with a timed shape and other inputs */

static void add_shape(const shape *s, char *text, size_t size) {
    char one[96];
    const size_t used = strlen(text);
    shape_get_text(s, one, sizeof one);
    snprintf(text + used, size - used, "%s%s", used ? "," : "", one);
}

/* The larger of `best` and one that has at most an eighth of the values of `above`. */
static const shape *choose_shape(const shape *best, const shape *s, const shape *above) {
    const double values = shape_count_values(s);
    return 8 * values <= shape_count_values(above) && (!best || values > shape_count_values(best))
               ? s
               : best;
}

/* The shapes that are timed, the main one first: the last that is listed, the largest listed one of an eighth
 * of its values, and of the held-out ones the largest of an eighth of either. */
static void choose_timed(const case_list *l, size_t listed, char *text, size_t size) {
    const kernel_case *any = &l->items[0];
    const shape_list *shapes = op_get_shapes(any->op, any->kernel);
    const shape *last = &any->shape, *middle = NULL, *drawn = NULL, *small = NULL;
    for (size_t i = 0; i < shapes->count; i++)
        last = op_takes(any->op, any->kernel, &shapes->items[i], NULL) ? &shapes->items[i] : last;
    for (size_t i = 0; i < shapes->count; i++)
        if (op_takes(any->op, any->kernel, &shapes->items[i], NULL))
            middle = choose_shape(middle, &shapes->items[i], last);
    for (size_t i = listed; i < l->count; i++) {
        drawn = choose_shape(drawn, &l->items[i].shape, last);
        small = middle ? choose_shape(small, &l->items[i].shape, middle) : NULL;
    }
    const shape *const chosen[] = {last, middle, drawn, small == drawn ? NULL : small};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (chosen[i])
            add_shape(chosen[i], text, size);
}

/* Held-out shapes are small. What is timed is checked with mixed and with level inputs, too, and with as many
 * other kinds as there is time for, which the seed chooses. */
static void add_kinds(case_list *out, const kernel_case *timed, uint64_t seed) {
    const double most = MOST_KIND_VALUES / shape_count_values(&timed->shape);
    for (int k = 0; k < 2; k++)
        out->items[out->count++] =
            case_new(timed->op, timed->kernel, &timed->shape, k == 0 ? INPUT_MIXED : INPUT_LEVEL);
    for (size_t k = 0; k < CASES_KINDS && (k == 0 || (double)k < most); k++)
        out->items[out->count++] =
            cases_make_held_out(timed, &timed->shape, k + (size_t)(seed % CASES_KINDS));
}

static bool find_cases(const char *name, size_t random, uint64_t seed, case_list *out,
                       judge_parts *parts, err *e) {
    static char chosen[300]; /* "" until shapes are chosen */
    bench_query query = {.filters = &name, .filter_count = 1};
    case_list listed;
    bench_list timed;
    char extra[32];
    snprintf(extra, sizeof extra, "random:%zu", random);
    if (!cases_find_kernel(name, NULL, seed, &listed, e) ||
        !cases_find_kernel(name, extra, seed, out, e))
        return false;
    parts->listed = listed.count;
    parts->timed = parts->kinds = out->count;
    cases_free(&listed);
    if (settings.untimed)
        return true;
    if (!settings.shapes) {
        choose_timed(out, parts->listed, chosen, sizeof chosen);
        settings.shapes = chosen;
    }
    query.shapes = settings.shapes;
    if (!bench_cases_find(&query, &timed, e))
        return false;
    out->items = realloc(out->items,
                         (out->count + (CASES_KINDS + 3) * timed.count + 1) * sizeof *out->items);
    assert(out->items);
    size_t kept = 0;
    for (size_t i = 0; i < timed.count; i++)
        if (strcmp(timed.items[i].timed.kernel->name, name) == 0)
            timed.items[kept++] = timed.items[i];
    for (size_t i = 0; i < kept; i++)
        add_kinds(out, &timed.items[i].timed, seed);
    parts->timed = out->count;
    for (size_t i = 0; i < kept; i++)
        out->items[out->count++] = timed.items[i].timed;
    bench_cases_free(&timed);
    return true;
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
        return cases_refuse_op(settings.op, e), NULL;
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

/* A candidate timed with one shape, interleaved with its base. */
typedef struct {
    char name[288], shape[96]; /* "rmsnorm_rows/17x4096/normal/chained/warm", "17x4096" */
    verdict_case test;         /* medians, the interval of candidate / base, the verdict */
    const char *verdict;
    size_t samples;
    char labels[128]; /* of the candidate's row */
    double speedup, speedup_low, speedup_high;
} timed_shape;
enum { MOST_TIMED = 16 };

/* A candidate, what it was found to be and, if it is right, its times. */
typedef struct {
    judge_candidate given;
    judge_answer answer;
    char refusal[256]; /* why the candidate has no time, and so is refused; "" if it has one */
    timed_shape timed[MOST_TIMED]; /* the main one first */
    size_t timed_count;
    const timed_shape *worst; /* where it is slower than its base; NULL: nowhere */
    /* Of the rest: */
    exit_code code;
    bool is_rejected, is_right, is_accepted;
    const char *file; /* without its folder */
    const char *verdict, *stage, *reason;
    char why[600];
    double speedup, now_ns; /* with the main shape; NaN if it has no time */
} judgement;

typedef struct {
    const kernel *base;
    judgement *items;
    size_t count, room;
} judgement_list;

static bool add_candidate(void *context, const char *path, err *e) {
    judgement_list *l = context;
    (void)e;
    *ARRAY_ADD(l->items, l->count, l->room) =
        (judgement){.given = {strdup(path), settings.kernel, l->base->name}};
    return true;
}

static bool skip_folder(const char *name) {
    return name != NULL;
}

/* A folder stands for its .metal files. */
static bool find_candidates(judgement_list *l, const char *const *names, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        size_t before = l->count;
        if (os_is_folder(names[i])) {
            if (!folder_walk(names[i], ".metal", skip_folder, add_candidate, l, e))
                return false;
            if (l->count == before)
                return err_set(e, EXIT_USAGE, "there is no .metal file in %.200s", names[i]);
            continue;
        }
        if (!path_ends_with(names[i], ".metal"))
            return err_set(e, EXIT_USAGE, "a candidate is a .metal file, not %.160s", names[i]);
        char *text = os_read_source(names[i], 1 << 20, NULL, e);
        if (!text)
            return false;
        free(text);
        add_candidate(l, names[i], e);
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

/* Time ----------------------------------------------------------------------------------------- */

/* The base is known to be right, so that its failure is not one of the candidate. */
static bool deliver(void *context, const bench_case *c, const bench_outcome *o, err *e) {
    judgement *j = context;
    const bench_other *own = &o->others[0];
    if (strstr(o->row.message, "timed out") ||
        (o->other_count == 1 && strstr(own->row.message, "timed out")))
        return err_set(
            e, EXIT_INCONCLUSIVE,
            "%.80s: right in %zu cases, %zu validated; with %.60s it cannot be timed: %.160s",
            j->answer.kernel, j->answer.checked, j->answer.validated, o->row.shape, o->row.message);
    if (o->other_count == 1 && own->row.gpu.count == 0 && !own->skipped)
        snprintf(j->refusal, sizeof j->refusal, "%.60s: %.190s", o->row.shape, own->row.message);
    else if (o->row.gpu.count == 0 || own->row.gpu.count == 0)
        return err_set(e, EXIT_CANNOT, "%.80s cannot be timed: %.160s", c->name,
                       o->row.gpu.count == 0 ? o->row.message : own->row.message);
    else if (j->timed_count < MOST_TIMED) {
        timed_shape *t = &j->timed[j->timed_count++];
        comparison_list list = {.count = 0};
        bench_compare(&list, c->name, &o->row, o->samples, &own->row, own->samples);
        comparison_decide(&list, settings.bench.min_effect / 100, settings.bench.seed);
        *t = (timed_shape){.test = list.rows[0].test, .samples = own->row.gpu.count};
        snprintf(t->name, sizeof t->name, "%s", c->name);
        snprintf(t->shape, sizeof t->shape, "%s", o->row.shape);
        snprintf(t->labels, sizeof t->labels, "%s", own->row.labels);
        t->verdict = verdict_get_name(t->test.verdict);
        t->speedup = 1 / t->test.interval.ratio;
        t->speedup_low = 1 / t->test.interval.high;
        t->speedup_high = 1 / t->test.interval.low;
        comparison_free(&list);
    }
    return true;
}

static bool time_one(judgement *j, const kernel *base, const device_facts *f, err *e) {
    bench_settings bench = settings.bench;
    bench_query query = {.filters = &base->name, .filter_count = 1};
    bench_list cases;
    case_list checked = {.count = 0};
    judge_parts parts;
    const bench_listener listens = {NULL, deliver, j};
    char given[2 * PATH_MAX];
    if (!settings.shapes && /* chosen once, for all candidates */
        !find_cases(base->name, settings.judge.random, settings.judge.seed, &checked, &parts, e))
        return false;
    cases_free(&checked);
    query.shapes = settings.shapes;
    if (!path_print(given, sizeof given, e, "%s:%s", j->given.path, j->answer.kernel) ||
        !bench_set_rival(&bench, given, settings.judge.launch, e) ||
        !bench_cases_find(&query, &cases, e))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < cases.count; i++) /* an op may have the name of a kernel */
        if (cases.items[i].timed.kernel == base)
            cases.items[kept++] = cases.items[i];
    cases.count = kept;
    bench.again_s /= (double)cases.count;
    bench_set_workers(&bench, f, cases.count);
    bool ok = bench_against_choose(&bench, &cases, e) && bench_run(&bench, f, &cases, &listens, e);
    bench_cases_free(&cases);
    return ok;
}

static bool time_all(judgement_list *l, const kernel *base, const device_facts *f, err *e) {
    for (size_t i = 0; i < l->count && !settings.untimed; i++) {
        judgement *j = &l->items[i];
        err why = {.code = EXIT_OK};
        if (!j->answer.is_right || j->answer.is_our_failure || time_one(j, base, f, &why))
            continue;
        if (why.code == EXIT_INTERRUPTED || why.code == EXIT_USAGE) {
            *e = why;
            return false;
        }
        j->answer.is_our_failure = true;
        j->answer.error = why;
    }
    return true;
}

/* Verdicts ------------------------------------------------------------------------------------- */

/* One word: faster, same, slower, ambiguous, right (not timed), REJECT or not judged. It counts as slower
 * where it is so with any shape, and else as what it is with the main one. */
static void conclude(judgement *j) {
    const judge_answer *a = &j->answer;
    const timed_shape *main = j->timed_count > 0 ? &j->timed[0] : NULL;
    for (const timed_shape *t = j->timed; t < j->timed + j->timed_count; t++)
        if (t->test.verdict == VERDICT_SLOWER && (!j->worst || t->speedup < j->worst->speedup))
            j->worst = t;
    const verdict_kind v = j->worst ? VERDICT_SLOWER : main ? main->test.verdict : VERDICT_SAME;
    j->is_rejected = !a->is_our_failure && (!a->is_right || j->refusal[0]);
    j->is_right = !j->is_rejected && !a->is_our_failure;
    j->code = a->is_our_failure        ? a->error.code
              : j->is_rejected         ? EXIT_WRONG
              : v == VERDICT_SLOWER    ? EXIT_REGRESSION
              : v == VERDICT_AMBIGUOUS ? EXIT_INCONCLUSIVE
                                       : EXIT_OK;
    j->is_accepted = j->code == EXIT_OK;
    j->file = path_get_name(j->given.path);
    j->verdict = a->is_our_failure ? "not judged"
                 : j->is_rejected  ? "REJECT"
                 : main            ? verdict_get_name(v)
                                   : "right";
    j->stage = j->is_right ? "" : judge_get_stage_name(a->is_right ? JUDGE_TIME : a->stage);
    j->reason = a->is_our_failure ? a->error.text
                : !j->is_rejected ? ""
                : a->is_right     ? j->refusal
                                  : a->reason;
    snprintf(j->why, sizeof j->why, "%s%s%s", j->is_rejected ? j->stage : "",
             j->is_rejected ? ": " : "", j->reason);
    j->speedup = main ? main->speedup : NAN;
    j->now_ns = main ? main->test.now_median : NAN;
}

typedef struct {
    const device_facts *facts;
    const op *op;
    char again[512]; /* the command that gives the same verdict */
} heading;

static int get_limit(void) {
    int limit = table_find_limit(stdout);
    return limit > 0 ? limit : 100;
}

/* The lines around the place, if it is in the candidate's own text. */
static void print_source(const judgement *j) {
    enum { AROUND = 2 };
    const judge_answer *a = &j->answer;
    char *text = strcmp(a->file, j->file) == 0 && a->line > 0
                     ? os_read_source(j->given.path, 1 << 20, NULL, NULL)
                     : NULL;
    int number = 1;
    for (char *line = text; line && number <= a->line + AROUND; number++) {
        size_t length = strcspn(line, "\n");
        if (number >= a->line - AROUND) {
            printf("  %c %4d | ", number == a->line ? '>' : ' ', number);
            json_print_escaped(stdout, line, length < 100 ? length : 100);
            putchar('\n');
        }
        line = line[length] ? line + length + 1 : NULL;
    }
    free(text);
}

static void print_explanation(const judgement *j) {
    const judge_answer *a = &j->answer;
    if (a->case_name[0])
        printf("case:  %s%s\n", a->case_name, a->is_held_out ? " (held out)" : "");
    if (a->shown > 0)
        printf("  %-10s %14s %14s %14s   of %s\n", "element", "expected", "found", "tolerance",
               a->buffer);
    for (size_t i = 0; i < a->shown; i++) {
        char found[32];
        snprintf(found, sizeof found, "%.7g", a->first[i].got);
        printf("  %-10zu %14.7g %14s %14.3g\n", a->first[i].index, a->first[i].want,
               a->first[i].unwritten ? "not written" : found, a->first[i].tolerance);
    }
    if (a->file[0])
        printf("where: %s:%d%s%s\n", a->file, a->line, a->class[0] ? ", " : "", a->class);
    print_source(j);
    if (a->detail[0])
        printf("%s\n", a->detail);
}

static const field time_fields[] = {
    FIELD(timed_shape, name, FIELD_CHARS, "case"),
    FIELD(timed_shape, shape, FIELD_CHARS, "shape", "shape"),
    FIELD(timed_shape, test.base_median, FIELD_TIME, "base_ns", "base"),
    FIELD(timed_shape, test.now_median, FIELD_TIME, "candidate_ns", "candidate"),
    FIELD(timed_shape, speedup, FIELD_REAL, "speedup", "speed-up", "%.3g"),
    FIELD(timed_shape, speedup_low, FIELD_REAL, "speedup_low", "from", "%.3g"),
    FIELD(timed_shape, speedup_high, FIELD_REAL, "speedup_high", "to", "%.3g"),
    FIELD(timed_shape, verdict, FIELD_TEXT, "verdict", "verdict"),
    FIELD(timed_shape, test.p, FIELD_REAL, "p"),
    FIELD(timed_shape, samples, FIELD_COUNT, "samples", "samples"),
    FIELD(timed_shape, labels, FIELD_CHARS, "labels", "labels"),
};

/* What the times come to, in a sentence. */
static void explain_times(const judgement *j, char *text, size_t size) {
    const timed_shape *main = &j->timed[0];
    char more[200] = "";
    if (j->worst && j->worst != main)
        snprintf(more, sizeof more, ", but slower with %s: %.3g times as fast", j->worst->shape,
                 j->worst->speedup);
    else if (main->test.verdict == VERDICT_AMBIGUOUS)
        snprintf(more, sizeof more, "; %s",
                 strstr(main->labels, "busy")
                     ? "the machine was busy: this verdict needs an idle one"
                     : "the samples cannot tell: give them more time with --budget and --again");
    snprintf(text, size, "%.3g times as fast (%.3g to %.3g) with %s%s", main->speedup,
             main->speedup_low, main->speedup_high, main->shape, more);
}

static void print_one(const heading *h, const judgement *j) {
    const judge_answer *a = &j->answer;
    const bool is_timed = j->timed_count > 0 && !j->is_rejected;
    char text[1024], time[512] = "";
    if (is_timed)
        explain_times(j, time, sizeof time);
    snprintf(text, sizeof text, "%s %s%s%s against %s: %s%s%s",
             j->is_rejected               ? "REJECT"
             : j->is_accepted             ? "ACCEPT"
             : j->code == EXIT_REGRESSION ? "SLOWER"
                                          : "UNCLEAR",
             j->file, a->kernel[0] ? ":" : "", a->kernel, j->given.base,
             j->is_rejected ? j->stage : j->verdict, j->is_rejected || time[0] ? ": " : "",
             j->is_rejected ? j->reason : time);
    table_print_text(stdout, get_limit(), 0, text);
    if (j->is_rejected)
        print_explanation(j);
    else
        printf("right in %zu cases, %zu of them held out; %zu validated; %zu lint warnings\n",
               a->checked, a->held_out, a->validated, a->warnings);
    if (a->untried > 0)
        printf("there was no time to validate %zu more: see --timeout\n", a->untried);
    sink s = {.record = RECORD(time_fields), .out = stdout};
    for (size_t i = 0; i < j->timed_count && is_timed; i++)
        sink_add(&s, &j->timed[i], PAINT_NONE);
    if (is_timed)
        sink_end(&s);
    printf("again: %s\n", h->again);
}

/* A ranking: the right ones by speed, then the others with their reasons. */
static int by_rank(const void *a, const void *b) {
    const judgement *x = a, *y = b;
    int p = x->is_rejected + 2 * x->answer.is_our_failure,
        q = y->is_rejected + 2 * y->answer.is_our_failure;
    double s = x->timed_count ? x->speedup : 0, t = y->timed_count ? y->speedup : 0;
    return p != q ? p - q : s != t ? (s < t) - (s > t) : strcmp(x->given.path, y->given.path);
}

#define ANSWER(member, ...) FIELD(judgement, answer.member, __VA_ARGS__)
static const field fields[] = {
    FIELD(judgement, file, FIELD_TEXT, NULL, "candidate"),
    FIELD(judgement, given.path, FIELD_TEXT, "file"),
    ANSWER(kernel, FIELD_CHARS, "kernel"),
    FIELD(judgement, given.base, FIELD_TEXT, "base"),
    FIELD(judgement, verdict, FIELD_TEXT, "verdict", "verdict", .is_painted = true),
    FIELD(judgement, is_right, FIELD_FLAG, "right"),
    FIELD(judgement, is_accepted, FIELD_FLAG, "accepted"),
    FIELD(judgement, code, FIELD_INTEGER, "exit"),
    ANSWER(checked, FIELD_COUNT, "checked"),
    ANSWER(held_out, FIELD_COUNT, "held_out"),
    ANSWER(validated, FIELD_COUNT, "validated"),
    ANSWER(untried, FIELD_COUNT, "untried"),
    ANSWER(warnings, FIELD_COUNT, "warnings"),
    FIELD(judgement, speedup, FIELD_REAL, NULL, "speed-up"),
    FIELD(judgement, now_ns, FIELD_TIME, NULL, "time"),
    FIELD(judgement, why, FIELD_CHARS, NULL, "why"),
    FIELD(judgement, stage, FIELD_TEXT, "stage"),
    FIELD(judgement, reason, FIELD_TEXT, "reason"),
    ANSWER(case_name, FIELD_CHARS, "case"),
    ANSWER(is_held_out, FIELD_FLAG, "is_held_out"),
    ANSWER(file, FIELD_CHARS, "where"),
    ANSWER(line, FIELD_INTEGER, "line"),
    ANSWER(class, FIELD_CHARS, "finding"),
    ANSWER(buffer, FIELD_CHARS, "buffer"),
    ANSWER(detail, FIELD_CHARS, "detail"),
};
static const field element_fields[] = {
    FIELD(bad_element, index, FIELD_COUNT, "index"),
    FIELD(bad_element, want, FIELD_REAL, "expected"),
    FIELD(bad_element, got, FIELD_REAL, "found"),
    FIELD(bad_element, tolerance, FIELD_REAL, "tolerance"),
    FIELD(bad_element, unwritten, FIELD_FLAG, "unwritten"),
};

static void print_json(const heading *h, const judgement_list *l) {
    json j = verb_open_json(stdout, "judge", h->facts, settings.judge.seed);
    json_add_text(&j, "op", h->op->name);
    json_add_text(&j, "again", h->again);
    json_open(&j, "candidates", '[');
    for (const judgement *x = l->items; x < l->items + l->count; x++) {
        json_open(&j, NULL, '{');
        record_add_json(&(record)RECORD(fields), x, &j);
        record_list_json(&(record)RECORD(element_fields), x->answer.first, x->answer.shown,
                         sizeof *x->answer.first, "elements", &j);
        if (x->timed_count > 0) {
            json_open(&j, "time", '{'); /* with the main shape */
            record_add_json(&(record)RECORD(time_fields), x->timed, &j);
            json_close(&j);
        }
        record_list_json(&(record)RECORD(time_fields), x->timed, x->timed_count, sizeof *x->timed,
                         "times", &j);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

static void print_all(const heading *h, const judgement_list *l) {
    size_t accepted = 0, rejected = 0;
    sink s = {.record = RECORD(fields), .out = stdout};
    qsort(l->items, l->count, sizeof *l->items, by_rank);
    for (judgement *j = l->items; j < l->items + l->count; j++) {
        rejected += j->is_rejected;
        accepted += j->is_accepted;
        sink_add(&s, j, j->is_rejected ? PAINT_BAD : PAINT_GOOD);
    }
    sink_end(&s);
    printf("%zu accepted, %zu slower or unclear, %zu rejected; again: %s\n", accepted,
           l->count - accepted - rejected, rejected, h->again);
}

static void set_again(heading *h, const char *const *names, size_t count, const kernel *base) {
    const char *how = settings.judge.launch;
    snprintf(h->again, sizeof h->again,
             "assay judge %.160s%s --base %.80s%s%.80s%s%.160s --seed %" PRIu64, names[0],
             count > 1 ? " ..." : "", base->name, settings.kernel ? " --kernel " : "",
             settings.kernel ? settings.kernel : "", how ? " --launch " : "", how ? how : "",
             settings.judge.seed);
}

static exit_code report_all(const heading *h, judgement_list *l, bool is_one, err *e) {
    const judgement *first = l->items;
    exit_code code = EXIT_WRONG;
    for (size_t i = 0; i < l->count; i++)
        conclude(&l->items[i]);
    if (settings.json)
        print_json(h, l);
    else if (!is_one)
        print_all(h, l);
    else if (!first->answer.is_our_failure)
        print_one(h, first);
    if (is_one && first->answer.is_our_failure)
        *e = first->answer.error;
    /* Of several, that of the best. */
    static const exit_code order[] = {EXIT_OK, EXIT_INCONCLUSIVE, EXIT_REGRESSION};
    for (size_t k = sizeof order / sizeof *order; k-- > 0;)
        for (size_t i = 0; i < l->count; i++)
            if (l->items[i].code == order[k])
                code = order[k];
    if (is_one)
        code = first->code;
    return verb_flush(e) ? code : e->code;
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
    heading h = {.facts = &facts};
    const kernel *base = l.base = find_base(&facts, &h.op, e);
    settings.bench.seed = settings.judge.seed;
    bool ok = base && find_candidates(&l, names, count, e);
    if (ok && !settings.json)
        report_print_header(&facts, settings.judge.seed);
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
    verb_judge, "judge", run_verb, .names = "CANDIDATE.metal...",
    .about = "one verdict on a kernel that claims to be faster: is it right, and is it?",
    .notes =
        "The candidate takes the place of a kernel of the op, its base, with the same buffers and\n"
        "grid. It must compile and have no errors of lint; be right on the listed shapes and on\n"
        "held-out ones, with inputs from a random seed; and give no finding in the checked mode\n"
        "of the software device: races, accesses outside, reads of what nothing wrote, the\n"
        "output's earlier contents among it. Then it is timed, interleaved with its base, with\n"
        "several shapes, inputs drawn anew for each run, and every output compared. A\n"
        "refusal says what differs, where, and how to repeat it. Several candidates, or a folder\n"
        "of them, give a ranking. Each is compiled and run in a process of its own with limits of\n"
        "time and memory. Exit status, of several that of the best: 0 accepted, 1 rejected, 4 "
        "right\n"
        "and slower, 5 right and the samples cannot tell. See docs/judge.md.\n",
    VERB_OPTIONS(options), .math = "fast", .runs_ops = true);
