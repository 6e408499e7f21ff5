/* cmd_tune: `assay tune`. Which kernel is fastest for each op and shape on this device, measured
 * and written to the table that models use. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "output.h"
#include "runner/tune.h"
#include "tune_choices.h"
#include "tune_print.h"
#include "verb.h"

static struct {
    tune_settings tune;
    tune_query query;
    const char *out;
    bool quick, confirm, resume, stale, list, explain, json, worker;
} settings = {
    .tune = {.seed = 1, .budget_s = 0.3, .timeout_s = 180, .min_effect = 10, .math = MATH_DEFAULT},
    .query = {.presets = "smollm-135m,rwkv7-0.1b",
              .type = "q4_0",
              .tokens = {.items = {1, 8, 64, 512}, .count = 4}}};
#define QUICK_S 0.1

static const option options[] = {
    TEXT_OPTION("m|model", &settings.query.model, "FILE",
                "the choices of this GGUF file (default: those of the presets)"),
    TEXT_OPTION("preset", &settings.query.presets, "P,...",
                "shapes of models, as of model synth (default smollm-135m,rwkv7-0.1b)"),
    TEXT_OPTION("type", &settings.query.type, "T", "weights of the presets (default q4_0)"),
    TEXT_OPTION("shape", &settings.query.shapes, "S,...",
                "the ops that FILTER names with these shapes, such as 4096x4096"),
    TEXT_OPTION("format", &settings.query.axes.formats, "F,...",
                "with --shape: weight formats (default q4_0)"),
    TEXT_OPTION("accumulate", &settings.query.axes.accumulate, "yes|no",
                "with --shape: only += or only = (default both)"),
    {"tokens", OPTION_NUMBERS, &settings.query.tokens, "N,N",
     "numbers of tokens that go together (default 1,8,64,512)", 1, 65536},
    SECONDS_OPTION("budget", &settings.tune.budget_s, "S",
                   "seconds of samples per kernel that comes near, about (default 0.3)"),
    FLAG_OPTION("quick", &settings.quick, "a budget of 0.1 s"),
    PERCENT_OPTION("min-effect", &settings.tune.min_effect, "PERCENT",
                   "smallest gain that replaces the rule's kernel (default 10)"),
    TEXT_OPTION("cache", &settings.tune.cache, "C",
                "warm or cold (default: cold on a GPU, warm on the software device)"),
    FLAG_OPTION("confirm", &settings.confirm,
                "with -m: keep only what makes the whole model faster"),
    FLAG_OPTION("resume", &settings.resume,
                "only what has no row, or one of kernels that have changed since"),
    FLAG_OPTION("stale", &settings.stale,
                "only the rows of the table whose kernels have changed since"),
    FLAG_OPTION("list", &settings.list, "list the choices and time nothing"),
    FLAG_OPTION("explain", &settings.explain, "the time of every kernel"),
    TEXT_OPTION("out", &settings.out, "FILE.csv", "the table (default results/<device>/tuned.csv)"),
    FLAG_OPTION("json", &settings.json, "print JSON instead of the table"),
    SEED_OPTION(&settings.tune.seed, "the inputs"),
    DEVICE_OPTION(&settings.tune.device),
    MATH_OPTION(&settings.tune.math, "fast, as Metal's"),
    SECONDS_OPTION("timeout", &settings.tune.timeout_s, "S",
                   "give up on a choice after this many seconds (default 180)"),
    FLAG_OPTION("worker", &settings.worker, NULL),
};

typedef struct {
    char path[PATH_MAX];
    results_meta meta;
    tuned *table;
    choice_list choices;
    tune_table shown;
    size_t done, changed, failed, wrong;
    size_t stale; /* rows that this run leaves as they are */
    uint64_t start_ns;
} run;

/* Rows that there are ------------------------------------------------------------------------ */

static bool is_stale(const library *lib, const tuned_row *r) {
    char now[MADE_OF];
    const char *api = device_get_facts(library_get_device(lib))->api;
    return !tune_find_made_of(lib, api, &r->choice, now, NULL) || strcmp(now, r->made_of) != 0;
}

static bool read_table(run *r, const device_facts *f, err *e) {
    size_t lost = 0;
    bool is_there = access(r->path, F_OK) == 0;
    r->table = is_there ? tuned_read(r->path, f->name, &lost, e) : tuned_new();
    if (lost > 0)
        fprintf(stderr, "%zu row%s of %s named kernels that do not exist any more: left out\n",
                lost, lost == 1 ? "" : "s", r->path);
    return r->table != NULL;
}

/* --stale: the choices are those rows. --resume: those that have a row that is still true are
 * dropped. */
static bool choose(run *r, library *lib, err *e) {
    size_t kept = 0;
    if (settings.stale) {
        for (size_t i = 0; i < r->table->count; i++)
            if (is_stale(lib, &r->table->items[i]))
                choice_list_add(&r->choices, &r->table->items[i].choice);
        choice_list_sort(&r->choices);
        return true;
    }
    if (!tune_choices_find(&settings.query, lib, &r->choices, e))
        return false;
    for (size_t i = 0; i < r->choices.count; i++) {
        const tuned_row *row = tuned_get(r->table, &r->choices.items[i]);
        if (!settings.resume || !row || is_stale(lib, row))
            r->choices.items[kept++] = r->choices.items[i];
    }
    if (settings.resume)
        fprintf(stderr, "%zu of %zu choices are already there\n", r->choices.count - kept,
                r->choices.count);
    r->choices.count = kept;
    return true;
}

static void count_stale(run *r, const library *lib) {
    for (size_t i = 0; i < r->table->count; i++) {
        bool is_asked = false;
        for (size_t k = 0; k < r->choices.count; k++)
            is_asked =
                is_asked || choice_compare(&r->choices.items[k], &r->table->items[i].choice) == 0;
        r->stale += !is_asked && is_stale(lib, &r->table->items[i]);
    }
}

/* The device is closed again before the worker opens it. */
static bool prepare(run *r, device_facts *f, err *e) {
    device *d =
        device_open_with(settings.tune.device, &(device_options){.math = settings.tune.math}, e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    bool ok = lib != NULL;
    if (ok) {
        *f = *device_get_facts(d);
        ok = settings.out ? snprintf(r->path, sizeof r->path, "%s", settings.out) < PATH_MAX
                          : tuned_find_path(f, r->path, sizeof r->path, e);
        ok = ok && read_table(r, f, e) && choose(r, lib, e);
    }
    if (ok)
        count_stale(r, lib);
    library_free(lib);
    device_close(d);
    return ok;
}

/* Deciding ----------------------------------------------------------------------------------- */

static bool deliver(void *context, const choice *c, const tune_outcome *o, err *e) {
    run *r = context;
    tune_outcome *signed_one = array_new(1, sizeof *signed_one);
    *signed_one = *o;
    tuned_row *row = &signed_one->row;
    snprintf(row->date, sizeof row->date, "%.23s", results_meta_find(&r->meta, "date"));
    snprintf(row->commit, sizeof row->commit, "%.31s", results_meta_find(&r->meta, "commit"));
    if (settings.json)
        tune_print_json(stdout, signed_one, r->done == 0);
    else
        tune_table_add(&r->shown, c, signed_one, settings.explain);
    r->done++;
    r->failed += !o->made;
    r->changed += o->made && o->chosen > 0;
    for (size_t i = 0; i < o->count; i++)
        r->wrong += o->ways[i].state == WAY_WRONG;
    bool ok = output_flush(e);
    if (ok && o->made) {
        tuned_put(r->table, row);
        ok = tuned_write(r->table, &r->meta, r->path, e);
    }
    free(signed_one);
    return ok;
}

static void tell(void *context, const tuned_row *row, const tune_confirmation *c) {
    run *r = context;
    char text[CHOICE_TEXT];
    choice_get_text(&row->choice, text, sizeof text);
    r->changed -= !c->is_kept;
    if (!c->is_used)
        fprintf(stderr, "%s: the model does not use %s\n", text, row->way->name);
    else
        fprintf(stderr, "%s: the model is %.3f times as fast with %s (%.3f to %.3f): %s\n", text,
                c->gain, row->way->name, c->low, c->high, c->is_kept ? "kept" : "taken back");
}

static bool confirm(run *r, err *e) {
    device *d =
        device_open_with(settings.tune.device, &(device_options){.math = settings.tune.math}, e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    gguf *g = lib ? gguf_open(settings.query.model, e) : NULL;
    bool ok = g && tune_confirm(lib, g, &r->choices, &settings.tune, r->table, tell, r, e) &&
              tuned_write(r->table, &r->meta, r->path, e);
    gguf_free(g);
    library_free(lib);
    device_close(d);
    return ok;
}

static exit_code finish(run *r, err *e) {
    if (settings.json)
        fputs("\n  ]\n}\n", stdout);
    if (settings.confirm && !confirm(r, e))
        return e->code;
    fprintf(stderr, "%zu choice%s decided, %zu otherwise than by the rules", r->done - r->failed,
            r->done - r->failed == 1 ? "" : "s", r->changed);
    if (r->failed > 0)
        fprintf(stderr, ", %zu not decided", r->failed);
    if (r->wrong > 0)
        fprintf(stderr, "; %zu kernel%s wrong", r->wrong, r->wrong == 1 ? " is" : "s are");
    fprintf(stderr, "; %.0f s; table in %s\n", (double)(os_now_ns() - r->start_ns) * 1e-9, r->path);
    if (r->stale > 0)
        fprintf(stderr, "%zu other row%s of kernels that have changed since: assay tune --stale\n",
                r->stale, r->stale == 1 ? " is" : "s are");
    return r->wrong > 0 || r->failed > 0 ? EXIT_WRONG : EXIT_OK;
}

static exit_code decide(run *r, const device_facts *f, err *e) {
    r->meta = results_meta_new(ASSAY_VERSION, f, settings.tune.seed);
    settings.tune.table = r->path;
    if (settings.json) {
        output_start_json(stdout, "tune", f, settings.tune.seed);
        fputs(",\n  \"choices\": [", stdout);
    } else {
        printf("# device: %s\n# compiler: %s\n", f->name, f->compiler);
        tune_table_start(&r->shown, stdout, &r->choices);
    }
    return tune_run(&settings.tune, f, &r->choices, deliver, r, e) ? finish(r, e) : e->code;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static run r;
    device_facts facts;
    timing_cache cache;
    if (settings.tune.cache && !timing_find_cache(settings.tune.cache, &cache)) {
        err_set(e, EXIT_USAGE, "--cache is warm or cold, not '%.40s'", settings.tune.cache);
        return e->code;
    }
    if (settings.confirm && !settings.query.model) {
        err_set(e, EXIT_USAGE, "--confirm needs a model: -m FILE");
        return e->code;
    }
    if (settings.quick)
        settings.tune.budget_s = QUICK_S;
    if (settings.worker) {
        settings.tune.table = settings.out;
        return tune_serve(&settings.tune, e);
    }
    settings.query.filters = names;
    settings.query.filter_count = count;
    settings.query.seed = settings.tune.seed;
    exit_code code = EXIT_OK;
    r.start_ns = os_now_ns();
    if (!prepare(&r, &facts, e))
        code = e->code;
    else if (settings.list)
        tune_print_list(stdout, &r.choices);
    else if (r.choices.count == 0)
        fprintf(stderr, "nothing to time: every row of %s is still true\n", r.path);
    else
        code = decide(&r, &facts, e);
    choice_list_free(&r.choices);
    tuned_free(r.table);
    return code;
}

VERB(
    verb_tune, "tune", .names = "[FILTER...]",
    .about = "time the kernels that models choose among, and keep the fastest for this device",
    .notes =
        "A choice is an op, the format of its weights, = or +=, and a shape. Its kernels are "
        "checked\n"
        "against the oracle on that shape, then those that come near the fastest are timed\n"
        "interleaved, chained as in a model. A kernel replaces the one that the rule for this kind "
        "of\n"
        "device takes only if it is significantly faster. 'apart' is a launch for each step of a\n"
        "fused op, 'attention_ranges:N' attention with the cache cut into N ranges. The table\n"
        "results/<device>/tuned.csv is used by run, model and experiment, unless ASSAY_TUNED is "
        "off\n"
        "or another file. Rows of other choices stay in it. FILTER is an op, or a part of a text "
        "such\n"
        "as 'matvec q4_0 += 576x1536x8'; --list shows them. The exit status is 1 if a kernel is\n"
        "wrong: it is never chosen.\n",
    VERB_OPTIONS(options), .reads_kernels = true);
