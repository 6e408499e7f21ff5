/* cmd_tune: `assay tune`. Which kernels make a model faster on this device than those of the rules, as
 * the whole model shows, written to the table that models use. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_cases.h"
#include "harness/base/array.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "kernels/ops.h"
#include "open_model.h"
#include "output.h"
#include "runner/choice/tune.h"
#include "runner/choice/variants.h"
#include "runner/model/check.h"
#include "verb.h"

static struct {
    tune_settings tune;
    const char *model, *device, *out;
    option_numbers prompts, tokens, depths;
    double timeout_s;
    bool list, resume, json;
} settings = {.tune = {.seed = 1, .budget_s = 2, .min_effect = 1},
              .prompts = {.items = {8, 64, 512}, .count = 3},
              .tokens = {.items = {32}, .count = 1},
              .depths = {.items = {0, 512, 1900}, .count = 3},
              .timeout_s = 120};

static const option options[] = {
    TEXT_OPTION("m|model", &settings.model, "FILE",
                "GGUF file (default: the model that comes with Assay)"),
    {"p|prompt", OPTION_NUMBERS, &settings.prompts, "N,N",
     "lengths of prompts, at the start of a text; 0 is none (default 8,64,512)", 0, 1u << 24},
    {"n|tokens", OPTION_NUMBERS, &settings.tokens, "N,N",
     "numbers of tokens to generate at each depth; 0 is none (default 32)", 0, 1u << 24},
    {"d|depth", OPTION_NUMBERS, &settings.depths, "N,N",
     "context depths: tokens already seen (default 0,512,1900)", 0, 1u << 24},
    SECONDS_OPTION("budget", &settings.tune.budget_s, "S",
                   "seconds of samples per test of the model, about (default 2)"),
    PERCENT_OPTION("min-effect", &settings.tune.min_effect, "PERCENT",
                   "smallest change of a test that counts (default 1)"),
    FLAG_OPTION("list", &settings.list, "list the choices and time nothing"),
    FLAG_OPTION(
        "resume", &settings.resume,
        "keep the rows of the table that are still true, and decide only the other choices"),
    FLAG_OPTION("json", &settings.json, "print one JSON object; what is tried goes to stderr"),
    TEXT_OPTION("out", &settings.out, "FILE.csv", "the table (default results/<device>/tuned.csv)"),
    SEED_OPTION(&settings.tune.seed, "the inputs"),
    DEVICE_OPTION(&settings.device),
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "give up on a kernel alone after this many seconds (default 120)"),
};

/* A way that may be better than what a choice takes now. */
typedef struct {
    const choice *choice;
    const kernel *way;
    double ns; /* alone; NaN: not a kernel, or without a time */
    bool is_current;
} candidate;

typedef struct {
    open_model opened; /* file, device and library: the models are the tuner's */
    tuner tuner;
    results_meta meta;
    char path[PATH_MAX], title[96];
    choice_list choices;
    candidate *candidates;
    size_t count, capacity;
    size_t delivered; /* of those that are timed alone */
    size_t tried, kept, wrong;
    uint64_t start_ns;
    FILE *rows; /* with --json: what was tried, as objects, in `text` */
    char *text;
    size_t bytes;
} run;

/* Where lines for people go. */
static FILE *get_out(void) {
    return settings.json ? stderr : stdout;
}

/* What there is to try ---------------------------------------------------------------------- */

static bool is_asked(const choice *c, const char *const *filters, size_t count) {
    char text[CHOICE_TEXT];
    choice_get_text(c, text, sizeof text);
    for (size_t i = 0; i < count; i++)
        if (registry_find_op(filters[i]) ? strcmp(c->op->name, filters[i]) == 0
                                         : strstr(text, filters[i]) != NULL)
            return true;
    return count == 0;
}

/* Ranges of fewer keys than a threadgroup reads at a time are never worth a launch. */
static bool is_worth_a_try(const device_facts *d, const choice *c, const kernel *way) {
    enum { LEAST_KEYS = 32 };
    uint32_t ranges = choice_count_ranges(way);
    return device_offers(d, way->needs, NULL) &&
           (ranges == 1 || c->shape.dim[0] / ranges >= LEAST_KEYS);
}

static void add_candidates(run *r, const choice *c) {
    const kernel *ways[CHOICE_WAYS];
    variants_basis v = {.facts = device_get_facts(r->opened.device), .table = r->tuner.table};
    const kernel *now = variants_find(&v, c, NULL);
    size_t count = choice_list_ways(c, ways);
    for (size_t i = 0; i < count && count > 1; i++)
        if (ways[i] == now || is_worth_a_try(v.facts, c, ways[i]))
            *ARRAY_ADD(r->candidates, r->count, r->capacity) =
                (candidate){c, ways[i], NAN, ways[i] == now};
}

static bool find_candidates(run *r, const char *const *filters, size_t count, err *e) {
    r->choices = tuner_list_choices(&r->tuner);
    for (size_t i = 0; i < r->choices.count; i++)
        if (is_asked(&r->choices.items[i], filters, count) &&
            !(settings.resume && tuned_get(r->tuner.table, &r->choices.items[i])))
            add_candidates(r, &r->choices.items[i]);
    return r->count > 0 || settings.resume ||
           err_set(e, EXIT_USAGE,
                   "nothing to choose: no choice of the model has two ways and "
                   "matches; assay tune --list shows them");
}

static void print_list(const run *r) {
    const choice *last = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const candidate *c = &r->candidates[i];
        char text[CHOICE_TEXT];
        choice_get_text(c->choice, text, sizeof text);
        if (c->choice != last)
            printf("%s%-44s", last ? "\n" : "", text);
        printf("%s%s%s", c->choice == last ? ", " : " ", c->way->name, c->is_current ? "*" : "");
        last = c->choice;
    }
    putchar('\n');
}

/* Kernels alone ----------------------------------------------------------------------------- */

#define ALONE_S 0.1

static bool start(void *context, const roof_facts *f, err *e) {
    (void)context;
    (void)f;
    (void)e;
    return true;
}

static bool deliver(void *context, const bench_case *c, const bench_outcome *o, err *e) {
    run *r = context;
    (void)e;
    while (r->candidates[r->delivered].way != c->timed.kernel)
        r->delivered++;
    r->candidates[r->delivered++].ns = o->row.gpu.count ? o->row.gpu.median : NAN;
    if (o->row.gpu.count > 0 || o->skipped)
        return true;
    r->wrong++;
    fprintf(stderr, "%s is wrong and not tried: %s\n", c->name, o->row.message);
    return true;
}

/* Every kernel is checked against its oracle on the shape. */
static bool time_alone(run *r, err *e) {
    const device_facts *f = device_get_facts(r->opened.device);
    timing_cache cache = f->emulated ? TIMING_WARM : TIMING_COLD;
    bench_settings s = {.seed = settings.tune.seed,
                        .budget_s = ALONE_S,
                        .timeout_s = settings.timeout_s,
                        .min_effect = settings.tune.min_effect,
                        .again_s = ALONE_S,
                        /* nothing is compared */};
    bench_list cases = {.items = NULL};
    const bench_listener listener = {start, deliver, r};
    for (size_t i = 0; i < r->count; i++) {
        const candidate *c = &r->candidates[i];
        kernel_case k = case_new(c->choice->op, c->way, &c->choice->shape, INPUT_NORMAL);
        bench_case b = bench_cases_new(&k, TIMING_CHAINED, cache);
        if (!choice_is_apart(c->way))
            bench_cases_add(&cases, &b);
    }
    bench_set_workers(&s, f, cases.count);
    bool ok = cases.count == 0 || bench_run(&s, f, &cases, &listener, e);
    bench_cases_free(&cases);
    return ok;
}

/* The whole model --------------------------------------------------------------------------- */

static void print_comparison(const tune_comparison *c) {
    for (size_t i = 0; i < c->count; i++) {
        char name[32];
        bench_test_get_name(c->items[i].test, name, sizeof name);
        fprintf(get_out(), "%s %s %.3f (%.3f to %.3f)", i ? "," : "", name, c->items[i].gain,
                c->items[i].low, c->items[i].high);
    }
}

static void print_json_row(const run *r, const char *choice_text, const char *way,
                           const tune_comparison *c, bool is_kept) {
    fputs(r->tried ? ",\n    {" : "\n    {", r->rows);
    json_print_field(r->rows, "choice", choice_text);
    json_add_field(r->rows, "kernel", way);
    fprintf(r->rows, ", \"kept\": %s, \"tests\": [", is_kept ? "true" : "false");
    for (size_t i = 0; i < c->count; i++) {
        char name[32];
        bench_test_get_name(c->items[i].test, name, sizeof name);
        fputs(i ? ", {" : "{", r->rows);
        json_print_field(r->rows, "test", name);
        fprintf(r->rows, ", \"gain\": %.4f, \"low\": %.4f, \"high\": %.4f}", c->items[i].gain,
                c->items[i].low, c->items[i].high);
    }
    fputs("]}", r->rows);
}

static void print_json(run *r) {
    fflush(r->rows);
    output_start_json(stdout, "tune", device_get_facts(r->opened.device), settings.tune.seed);
    fputs(",\n  ", stdout);
    json_print_field(stdout, "model", r->title);
    json_add_field(stdout, "table", r->path);
    printf(",\n  \"tried\": %zu, \"kept\": %zu, \"wrong\": %zu, \"rows\": %zu,\n  \"ways\": "
           "[%s%s]\n}\n",
           r->tried, r->kept, r->wrong, r->tuner.table->count, r->text, r->tried ? "\n  " : "");
}

static bool try_way(run *r, const candidate *c, err *e) {
    const kernel *rule = variants_find_rule(device_get_facts(r->opened.device), c->choice, NULL);
    tuned_row row = tuned_row_new(c->choice);
    tune_comparison found;
    char text[CHOICE_TEXT];
    bool is_kept;
    row.way = c->way;
    snprintf(row.rule, sizeof row.rule, "%s", rule ? rule->name : "");
    snprintf(row.model, sizeof row.model, "%s", r->title);
    snprintf(row.date, sizeof row.date, "%.23s", results_meta_find(&r->meta, "date"));
    snprintf(row.commit, sizeof row.commit, "%.31s", results_meta_find(&r->meta, "commit"));
    if (!rule || !tuned_find_made_of(r->opened.lib, c->choice, c->way, rule, row.made_of, e) ||
        !tuner_try(&r->tuner, &row, &found, &is_kept, e))
        return false;
    choice_get_text(c->choice, text, sizeof text);
    fprintf(get_out(), "%s: %s:", text, c->way->name);
    print_comparison(&found);
    fprintf(get_out(), "%s\n",
            found.count == 0 ? " the tests do not use it"
            : is_kept        ? ": kept"
                             : ": not kept");
    print_json_row(r, text, c->way->name, &found, is_kept);
    r->tried++;
    r->kept += is_kept;
    return output_flush(e);
}

static bool is_of(const run *r, size_t at, const choice *c) {
    return at < r->count && r->candidates[at].choice == c;
}

/* The two kernels that are fastest alone, if they are faster than what is taken now, and all ways
 * that are not kernels: what those take alone is not known. */
static bool try_choice(run *r, size_t first, err *e) {
    enum { KERNELS = 2 };
    const choice *c = r->candidates[first].choice;
    double limit = INFINITY;
    for (size_t i = first; is_of(r, i, c); i++)
        if (r->candidates[i].is_current && !isnan(r->candidates[i].ns))
            limit = r->candidates[i].ns * (1 - settings.tune.min_effect / 100);
    double last = 0;
    for (int k = 0; k < KERNELS; k++) {
        const candidate *best = NULL;
        for (size_t i = first; is_of(r, i, c); i++) {
            const candidate *x = &r->candidates[i];
            if (!x->is_current && x->ns > last && x->ns < limit && (!best || x->ns < best->ns))
                best = x;
        }
        if (best && !try_way(r, best, e))
            return false;
        last = best ? best->ns : INFINITY;
    }
    for (size_t i = first; is_of(r, i, c); i++)
        if (choice_is_apart(r->candidates[i].way) && !r->candidates[i].is_current &&
            !try_way(r, &r->candidates[i], e))
            return false;
    return true;
}

/* Every launch of the model with the table against its oracle. */
static bool check_model(run *r, err *e) {
    enum { PROMPT = 8 };
    uint32_t prompt[PROMPT];
    model_report report;
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = i + 1;
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = PROMPT, .tokens = 1, .reference_tokens = 1};
    model *m = model_new(r->opened.lib, r->opened.file,
                         &(model_options){.context = 4 * PROMPT, .tuned = r->tuner.table}, e);
    bool ok = m && model_check(m, &o, &report, e);
    model_free(m);
    return ok &&
           (report.passed ||
            err_set(e, EXIT_WRONG, "the model is wrong with the table, which is not written"));
}

/* The table as a whole, and what becomes of it. */
static bool finish(run *r, err *e) {
    tune_comparison found;
    if (!tuner_compare_rules(&r->tuner, &found, e))
        return false;
    fprintf(get_out(), "the table against the rules alone:");
    print_comparison(&found);
    fprintf(get_out(), "%s\n",
            found.count == 0  ? " the same kernels"
            : found.is_slower ? ": slower, so it is dropped"
                              : "");
    if (found.is_slower) {
        tuner_drop_rows(&r->tuner);
        r->kept = 0;
    }
    if ((r->tuner.table->count > 0 && !check_model(r, e)) ||
        !tuned_write(r->tuner.table, &r->meta, r->path, e))
        return false;
    fprintf(stderr, "%zu of %zu ways kept in %.0f s; %s %s\n", r->kept, r->tried,
            (double)(os_now_ns() - r->start_ns) * 1e-9,
            r->tuner.table->count ? "table in" : "no table is needed:", r->path);
    return output_flush(e);
}

static bool decide(run *r, err *e) {
    const choice *last = NULL;
    fprintf(get_out(), "# device: %s\n# model: %s\n", device_get_facts(r->opened.device)->name,
            r->title);
    if (r->count == 0) {
        fprintf(stderr, "every choice has a row in %s\n", r->path);
        return true;
    }
    if (!time_alone(r, e))
        return false;
    for (size_t i = 0; i < r->count; i++) {
        if (r->candidates[i].choice != last && !try_choice(r, i, e))
            return false;
        last = r->candidates[i].choice;
    }
    return finish(r, e);
}

/* The verb ---------------------------------------------------------------------------------- */

static size_t list_tests(bench_test tests[TUNE_TESTS]) {
    const uint64_t start_of_text = 0;
    bench_sizes none = {NULL, 0}, prompts = {settings.prompts.items, settings.prompts.count},
                tokens = {settings.tokens.items, settings.tokens.count},
                depths = {settings.depths.items, settings.depths.count};
    static bench_test all[OPTION_LIST_MAX * (OPTION_LIST_MAX + 1)];
    size_t count = bench_list_tests(prompts, none, (bench_sizes){&start_of_text, 1}, all);
    count += bench_list_tests(none, tokens, depths, all + count);
    count = count < TUNE_TESTS ? count : TUNE_TESTS;
    memcpy(tests, all, count * sizeof *tests);
    return count;
}

/* Rows that there are, but for those of this model's choices: they are decided again. */
static bool open_table(run *r, tuned **out, err *e) {
    const device_facts *f = device_get_facts(r->opened.device);
    bool ok = settings.out ? snprintf(r->path, sizeof r->path, "%s", settings.out) < PATH_MAX
                           : tuned_find_path(f, r->path, sizeof r->path, e);
    if (!ok)
        return false;
    *out = access(r->path, F_OK) == 0 ? tuned_read(r->path, r->opened.lib, e) : tuned_new();
    if (*out && (*out)->stale > 0)
        fprintf(stderr, "%zu row%s of %s left out: the kernels have changed since\n", (*out)->stale,
                (*out)->stale == 1 ? "" : "s", r->path);
    return *out != NULL;
}

static bool prepare(run *r, err *e) {
    bench_test tests[TUNE_TESTS];
    tuned *table;
    size_t count = list_tests(tests);
    open_model *o = &r->opened;
    if (!open_model_file(o, settings.model, e) || !open_model_device(o, settings.device, e) ||
        !open_table(r, &table, e))
        return false;
    open_model_get_title(o, r->title, sizeof r->title);
    r->meta = results_meta_new(ASSAY_VERSION, device_get_facts(o->device), settings.tune.seed);
    if (!tuner_open(&r->tuner, o->lib, o->file, tests, count, table, &settings.tune, e))
        return false;
    choice_list own = tuner_list_choices(&r->tuner);
    for (size_t i = 0; i < own.count && !settings.resume; i++)
        tuned_drop(r->tuner.table, &own.items[i]);
    choice_list_free(&own);
    return true;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static run r;
    r.start_ns = os_now_ns();
    r.rows = open_memstream(&r.text, &r.bytes);
    assert(r.rows);
    bool ok = prepare(&r, e) && find_candidates(&r, names, count, e);
    if (ok && settings.list)
        print_list(&r);
    else if (ok)
        ok = decide(&r, e);
    if (ok && settings.json && !settings.list)
        print_json(&r);
    fclose(r.rows);
    free(r.text);
    tuner_close(&r.tuner);
    choice_list_free(&r.choices);
    free(r.candidates);
    open_model_close(&r.opened);
    return !ok ? e->code : r.wrong > 0 ? EXIT_WRONG : EXIT_OK;
}

VERB(
    verb_tune, "tune", .names = "[FILTER...]",
    .about = "find the kernels that make a model faster on this device than the rules' do",
    .notes =
        "A choice is an op, the format of its weights, = or +=, and a shape; --list shows those "
        "of\n"
        "the model, with * at what is taken now. Each kernel is checked against its oracle on the\n"
        "shape and timed alone, which decides what is worth a try. Then the whole model is timed\n"
        "with and without it, interleaved, in every test that it changes: prompts, and tokens at\n"
        "several depths. A kernel is kept if a test is significantly faster and none is slower.\n"
        "'apart' is a launch for each step of a fused op, 'attention_ranges:N' attention with the\n"
        "keys cut into N ranges. At the end the table is timed against the rules alone, and "
        "dropped\n"
        "if a test is slower. results/<device>/tuned.csv is used by run, model and experiment,\n"
        "unless ASSAY_TUNED is off or another file. FILTER is an op, or a part of a text such as\n"
        "'matvec q4_0 += 576x1536x8'. The exit status is 1 if a kernel is wrong: it is never "
        "taken.\n",
    VERB_OPTIONS(options), .math = "fast", .reads_kernels = true);
