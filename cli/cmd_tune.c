/* cmd_tune: `assay tune`. Which kernels make a model faster on this device than those of the rules,
 * as the whole model shows, written to the table that models use. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "kernels/ops.h"
#include "open_model.h"
#include "runner/choice/rules.h"
#include "runner/choice/tune.h"
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
    MODEL_OPTION(&settings.model),
    {"p|prompt", OPTION_NUMBERS, &settings.prompts, "N,N",
     "lengths of prompts, at the start of a text; 0 is none (default 8,64,512)", 0, 1u << 24},
    {"n|tokens", OPTION_NUMBERS, &settings.tokens, "N,N",
     "numbers of tokens to generate at each depth; 0 is none (default 32)", 0, 1u << 24},
    {"d|depth", OPTION_NUMBERS, &settings.depths, "N,N",
     "context depths: tokens already seen (default 0,512,1900)", 0, 1u << 24},
    SECONDS_OPTION("budget", &settings.tune.budget_s, "S",
                   "seconds of samples per test (default 2)"),
    PERCENT_OPTION("min-effect", &settings.tune.min_effect, "PERCENT",
                   "smallest change of a test that counts (default 1)"),
    FLAG_OPTION("list", &settings.list, "list the choices and time nothing"),
    FLAG_OPTION("resume", &settings.resume,
                "keep the rows that are still true, and decide only the other choices"),
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
    bool is_current, is_tried, is_kept;
    tune_comparison found;
} candidate;

typedef struct {
    open_model opened; /* file, device and library: the models are the tuner's */
    tuner tuner;
    results_meta meta;
    char path[PATH_MAX], title[96];
    candidate *candidates;
    size_t count, capacity;
    size_t delivered; /* of those that are timed alone */
    size_t tried, kept, wrong;
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
                                         : *filters[i] && strstr(text, filters[i]))
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

/* Every filter has to name a choice. */
static bool check_filters(const run *r, const char *const *filters, size_t count, err *e) {
    for (size_t f = 0; f < count; f++) {
        size_t i = 0;
        while (i < r->tuner.choices.count && !is_asked(&r->tuner.choices.items[i], &filters[f], 1))
            i++;
        if (i == r->tuner.choices.count)
            return err_set(e, EXIT_USAGE,
                           "no choice of the model is called '%.60s'; assay tune --list shows them",
                           filters[f]);
    }
    return true;
}

/* Rows of the table that hold for what is asked are decided again, except with --resume. */
static bool find_candidates(run *r, const char *const *filters, size_t filter_count, err *e) {
    variants_basis v = {.facts = device_get_facts(r->opened.device)};
    if (!check_filters(r, filters, filter_count, e))
        return false;
    for (size_t i = 0; i < r->tuner.choices.count; i++) {
        const choice *c = &r->tuner.choices.items[i];
        const kernel *ways[CHOICE_WAYS];
        if (!is_asked(c, filters, filter_count) ||
            (settings.resume && tuned_get(r->tuner.table, c)))
            continue;
        if (!settings.resume)
            tuned_drop_near(r->tuner.table, c);
        v.table = r->tuner.table;
        const kernel *now = variants_find(&v, c, NULL);
        size_t count = choice_list_ways(c, ways);
        for (size_t k = 0; k < count && count > 1; k++)
            if (ways[k] == now || is_worth_a_try(v.facts, c, ways[k]))
                *ARRAY_ADD(r->candidates, r->count, r->capacity) =
                    (candidate){c, ways[k], NAN, .is_current = ways[k] == now};
    }
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
    const double alone_s = 0.1;
    const device_facts *f = device_get_facts(r->opened.device);
    bench_settings s = {.seed = settings.tune.seed,
                        .budget_s = alone_s,
                        .timeout_s = settings.timeout_s,
                        .min_effect = settings.tune.min_effect,
                        .again_s = alone_s /* nothing is compared */};
    bench_list cases = {.items = NULL};
    const bench_listener listener = {.deliver = deliver, .context = r};
    for (size_t i = 0; i < r->count; i++) {
        const candidate *c = &r->candidates[i];
        kernel_case k = case_new(c->choice->op, c->way, &c->choice->shape, INPUT_NORMAL);
        bench_case b = bench_cases_new(&k, TIMING_CHAINED, f->emulated ? TIMING_WARM : TIMING_COLD);
        if (!choice_is_apart(c->way))
            bench_cases_add(&cases, &b);
    }
    bench_set_workers(&s, f, cases.count);
    bool ok = cases.count == 0 || bench_run(&s, f, &cases, &listener, e);
    bench_cases_free(&cases);
    return ok;
}

/* The whole model --------------------------------------------------------------------------- */

static const field gain_fields[] = {
    FIELD(tune_comparison, items[0].test, FIELD_CHARS, "test"),
    FIELD(tune_comparison, items[0].gain, FIELD_REAL, "gain"),
    FIELD(tune_comparison, items[0].low, FIELD_REAL, "low"),
    FIELD(tune_comparison, items[0].high, FIELD_REAL, "high"),
};

static void add_candidate(json *j, const candidate *c) {
    char text[CHOICE_TEXT];
    choice_get_text(c->choice, text, sizeof text);
    json_open(j, NULL, '{');
    json_add_text(j, "choice", text);
    json_add_text(j, "kernel", c->way->name);
    json_add_flag(j, "kept", c->is_kept);
    record_list_json(&(record)RECORD(gain_fields), &c->found, c->found.count,
                     sizeof *c->found.items, "tests", j);
    json_close(j);
}

static void print_json(const run *r) {
    json j = verb_open_json(stdout, "tune", device_get_facts(r->opened.device), settings.tune.seed);
    json_add_text(&j, "model", r->title);
    json_add_text(&j, "table", r->path);
    json_add_count(&j, "tried", r->tried);
    json_add_count(&j, "kept", r->kept);
    json_add_count(&j, "wrong", r->wrong);
    json_add_count(&j, "rows", r->tuner.table->count);
    json_open(&j, "ways", '[');
    for (size_t i = 0; i < r->count; i++)
        if (r->candidates[i].is_tried)
            add_candidate(&j, &r->candidates[i]);
    json_close(&j);
    json_close(&j);
}

static bool try_way(run *r, candidate *c, err *e) {
    const kernel *rule = rules_find(device_get_facts(r->opened.device), c->choice, e);
    tuned_row row = {.choice = *c->choice, .way = c->way};
    char text[CHOICE_TEXT];
    if (!rule || !tuned_find_made_of(r->opened.lib, c->choice, c->way, rule, row.made_of, e))
        return false;
    snprintf(row.rule, sizeof row.rule, "%s", rule->name);
    snprintf(row.model, sizeof row.model, "%s", r->title);
    snprintf(row.date, sizeof row.date, "%.23s", results_meta_find(&r->meta, "date"));
    snprintf(row.commit, sizeof row.commit, "%.31s", results_meta_find(&r->meta, "commit"));
    if (!tuner_try(&r->tuner, &row, &c->found, &c->is_kept, e))
        return false;
    choice_get_text(c->choice, text, sizeof text);
    fprintf(get_out(), "%s: %s:", text, c->way->name);
    for (size_t i = 0; i < c->found.count; i++)
        fprintf(get_out(), "%s %s %.3f (%.3f to %.3f)", i ? "," : "", c->found.items[i].test,
                c->found.items[i].gain, c->found.items[i].low, c->found.items[i].high);
    fputs(c->found.count == 0 ? " the tests do not use it\n"
          : c->is_kept        ? ": kept\n"
                              : ": not kept\n",
          get_out());
    c->is_tried = true;
    r->tried++;
    r->kept += c->is_kept;
    return verb_flush(e);
}

/* The two kernels that are fastest alone, if they are faster than what is taken now, and all ways
 * that are not kernels: what those take alone is not known. */
static bool try_choice(run *r, size_t first, size_t end, err *e) {
    enum { KERNELS = 2 };
    double limit = INFINITY;
    for (size_t i = first; i < end; i++)
        if (r->candidates[i].is_current && !isnan(r->candidates[i].ns))
            limit = r->candidates[i].ns * (1 - settings.tune.min_effect / 100);
    for (int k = 0; k < KERNELS; k++) {
        candidate *best = NULL;
        for (size_t i = first; i < end; i++) {
            candidate *c = &r->candidates[i];
            if (!c->is_tried && c->ns < (best ? best->ns : limit))
                best = c;
        }
        if (best && !try_way(r, best, e))
            return false;
    }
    for (size_t i = first; i < end; i++)
        if (choice_is_apart(r->candidates[i].way) && !r->candidates[i].is_current &&
            !try_way(r, &r->candidates[i], e))
            return false;
    return true;
}

/* Every launch of the model with the table against its oracle. */
static bool check_model(run *r, err *e) {
    enum { PROMPT = 8 };
    const uint32_t prompt[PROMPT] = {1, 2, 3, 4, 5, 6, 7, 8};
    model_report report;
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

static bool decide(run *r, err *e) {
    fprintf(get_out(), "# device: %s\n# model: %s\n", device_get_facts(r->opened.device)->name,
            r->title);
    if (r->count == 0) {
        fprintf(stderr, "every choice has a row in %s\n", r->path);
        return true;
    }
    if (!time_alone(r, e))
        return false;
    for (size_t first = 0, end; first < r->count; first = end) {
        for (end = first; end < r->count; end++)
            if (r->candidates[end].choice != r->candidates[first].choice)
                break;
        if (!try_choice(r, first, end, e))
            return false;
    }
    if ((r->tuner.table->count > 0 && !check_model(r, e)) ||
        !tuned_write(r->tuner.table, &r->meta, r->path, e))
        return false;
    fprintf(stderr, "%zu of %zu ways kept; %s %s\n", r->kept, r->tried,
            r->tuner.table->count ? "table in" : "no table is needed:", r->path);
    return verb_flush(e);
}

static bool prepare(run *r, err *e) {
    static bench_test tests[OPTION_LIST_MAX * (OPTION_LIST_MAX + 1)];
    const uint64_t start_of_text = 0;
    bench_sizes none = {NULL, 0}, prompts = {settings.prompts.items, settings.prompts.count},
                tokens = {settings.tokens.items, settings.tokens.count},
                depths = {settings.depths.items, settings.depths.count};
    size_t count = bench_list_tests(prompts, none, (bench_sizes){&start_of_text, 1}, false, tests);
    count += bench_list_tests(none, tokens, depths, false, tests + count);
    open_model *o = &r->opened;
    if (!open_model_file(o, settings.model, e) || !open_model_device(o, settings.device, e) ||
        !(settings.out ? path_print(r->path, sizeof r->path, e, "%s", settings.out)
                       : tuned_find_path(device_get_facts(o->device), r->path, sizeof r->path, e)))
        return false;
    tuned *known = access(r->path, F_OK) == 0 ? tuned_read(r->path, o->lib, e) : tuned_new();
    if (known && known->stale > 0)
        fprintf(stderr, "%zu row%s of %s left out: the kernels have changed since\n", known->stale,
                known->stale == 1 ? "" : "s", r->path);
    open_model_get_title(o, r->title, sizeof r->title);
    r->meta = results_meta_new(ASSAY_VERSION, device_get_facts(o->device), settings.tune.seed);
    return known && tuner_open(&r->tuner, o->lib, o->file, tests, count, known, &settings.tune, e);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static run r;
    bool ok = prepare(&r, e) && find_candidates(&r, names, count, e);
    if (ok && settings.list)
        print_list(&r);
    else if (ok)
        ok = decide(&r, e);
    if (ok && settings.json && !settings.list)
        print_json(&r);
    tuner_close(&r.tuner);
    free(r.candidates);
    open_model_close(&r.opened);
    return !ok ? e->code : r.wrong > 0 ? EXIT_WRONG : EXIT_OK;
}

VERB(verb_tune, "tune", run_verb, .names = "[FILTER...]",
     .about = "find kernels that make a model faster on this device than the rules do",
     .notes =
         "A choice is an op, the format of its weights, = or +=, and a shape; --list shows those\n"
         "of the model, with * at those in use. Each kernel is checked against its oracle on the\n"
         "shape and timed alone, which decides what is worth a try. Then the whole model is timed\n"
         "with and without it, interleaved, in every test that it changes: prompts, and tokens at\n"
         "several depths. A kernel is kept if a test is significantly faster and none is slower.\n"
         "'apart' is one launch per step of a fused op, 'attention_ranges:N' attention with the\n"
         "keys cut into N ranges ('attention_ranges_shared:N': and one threadgroup for heads that\n"
         "share a head of the cache, 'attention_ranges_mma:N': by tensor cores).\n"
         "results/<device>/tuned.csv is used by run, model and experiment, unless ASSAY_TUNED is\n"
         "off or another file. FILTER is an op, or a part of a text such as 'matvec q4_0 +=\n"
         "576x1536x8'; rows of other choices stay. The exit status is 1 if a kernel is wrong: it\n"
         "is never taken.\n",
     VERB_OPTIONS(options), .math = "fast", .reads_kernels = true);
