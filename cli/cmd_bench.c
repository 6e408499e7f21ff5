/* cmd_bench: `assay bench`. Times of kernels, in a table and in files, and against a baseline. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "cases.h"
#include "harness/base/os.h"
#include "harness/check/suite.h"
#include "kernels/kernels.h"
#include "project/project.h"
#include "report.h"
#include "verb.h"

static struct {
    bench_settings bench;
    bench_query query;
    const char *out, *baseline, *save;
    option_list against, launches;
    comparison_options shown; /* how, but the smallest effect in percent is that of bench */
    bool resume, worker;
} settings = {
    .bench = {.seed = 1, .budget_s = 1, .timeout_s = 120, .min_effect = 3, .again_s = 12}};

static const option options[] = {
    TEXT_OPTION("shape", &settings.query.shapes, "S,...",
                "shapes such as 576x576,4096x4096, or all (default: the last of each kernel)"),
    AXES_OPTIONS(settings.query.axes),
    TEXT_OPTION("regime", &settings.query.regimes, "R,...",
                "single, chained, independent or all (default chained)"),
    TEXT_OPTION("cache", &settings.query.caches, "C,...", "warm, cold or all (default warm)"),
    TEXT_OPTION("input", &settings.query.input, "D",
                "uniform, normal, zeros, denormals, large or negative (default normal)"),
    SECONDS_OPTION("budget", &settings.bench.budget_s, "S",
                   "seconds of samples per case (default 1)"),
    SEED_OPTION(&settings.bench.seed, "the inputs"),
    DEVICE_OPTION(&settings.bench.device),
    SECONDS_OPTION("timeout", &settings.bench.timeout_s, "S",
                   "seconds before a case is given up (default 120)"),
    TEXT_OPTION("out", &settings.out, "FILE.csv",
                "file for the rows, samples beside it (default results/<device>/bench.csv)"),
    FLAG_OPTION("resume", &settings.resume, "time only what has no row that is still true"),
    TEXT_OPTION("save", &settings.save, "NAME", "keep the rows as the baseline NAME too"),
    FLAG_OPTION("json", &settings.shown.json, "print JSON instead of the table"),
    FLAG_OPTION("md", &settings.shown.markdown, "print Markdown instead of the table"),
    TEXT_OPTION("baseline", &settings.baseline, "B",
                "a folder of kernels (timed interleaved), a saved NAME or a CSV"),
    LIST_OPTION("against", &settings.against, "F.metal:K",
                "time kernel K of another file beside ours; may be repeated"),
    LIST_OPTION("launch", &settings.launches, "FILE.launch",
                "how the kernel of --against is launched: see docs/side-by-side.md"),
    PERCENT_OPTION("min-effect", &settings.bench.min_effect, "PERCENT",
                   "when comparing: smallest change worth a verdict (default 3)"),
    SECONDS_OPTION("again", &settings.bench.again_s, "S",
                   "interleaved: time ambiguous cases again, at most S seconds each (default 12)"),
    {"compared", OPTION_NUMBER, &settings.bench.compared, NULL, NULL, 0, UINT64_MAX},
    PLAIN_OPTION("fresh", OPTION_FLAG, &settings.bench.fresh, NULL, NULL),
    FLAG_OPTION("explain", &settings.shown.explain, "when comparing: the numbers of each verdict"),
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

void bench_set_workers(bench_settings *s, const device_facts *f, size_t cases) {
    s->device = f->spec;
    s->compared = cases;
    settings.bench = *s;
    s->arguments = LIST_VALUES("bench", options);
}

bool bench_set_rival(bench_settings *s, const char *given, const char *how, err *e) {
    settings.against = (option_list){.items = {given}, .count = 1};
    settings.launches = (option_list){.items = {how}, .count = how ? 1 : 0};
    return bench_against_open(&settings.against, &settings.launches, s, e);
}

/* A run: what listens to bench_run. */
typedef struct {
    const bench_list *cases;
    const device_facts *facts;
    results_meta meta;
    char path[PATH_MAX], base_path[PATH_MAX], save_path[PATH_MAX];
    results *file, *saved;
    sink table;
    result_row *rows;
    size_t count, failed, skipped;
    results_list base; /* of a CSV */
    comparison_list comparison;
} run;

static bool is_quiet(void) {
    return settings.shown.json || settings.shown.markdown;
}

/* Files --------------------------------------------------------------------------------------- */

static void add_sweep(run *r, const roof_facts *f) {
    char text[320] = "";
    size_t used = 0;
    for (size_t i = 0; f->is_swept && i < f->sizes && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu KiB %.3g", i ? ", " : "",
                                 f->size[i] >> 10, f->read_gb_s[i]);
    if (f->is_swept)
        results_meta_add(&r->meta, "cache sweep, GB/s", text);
}

static bool open_files(run *r, err *e) {
    return (r->file = bench_files_open(r->path, &r->meta, e)) &&
           (!settings.save || (r->saved = bench_files_open(r->save_path, &r->meta, e)));
}

static bool start(void *context, const roof_facts *f, err *e) {
    run *r = context;
    char text[160];
    snprintf(text, sizeof text, "%zu bytes (%s)", f->cache_bytes, f->source);
    results_meta_add(&r->meta, "cache", text);
    add_sweep(r, f);
    if (!open_files(r, e))
        return false;
    if (!is_quiet()) {
        report_print_header(r->facts, settings.bench.seed);
        bench_print_start(&r->table, stdout, r->cases, &settings.bench);
    }
    return true;
}

static comparison_row *compare_interleaved(run *r, const char *key, const bench_outcome *o,
                                           const bench_other *other) {
    return bench_compare(&r->comparison, key, &other->row, other->samples, &o->row, o->samples);
}

static void compare_case(run *r, const char *key, const bench_outcome *o) {
    if (settings.bench.rival_count > 0) {
        for (size_t i = 0; i < o->other_count; i++)
            if (o->others[i].row.gpu.count > 0)
                snprintf(compare_interleaved(r, key, o, &o->others[i])->note,
                         sizeof r->comparison.rows->note, "%s", o->others[i].row.kernel);
    } else if (settings.bench.base_folder) {
        const bench_other *base = &o->others[0];
        comparison_row *c = compare_interleaved(r, key, o, base);
        made_of_compare(base->row.made_of, o->row.made_of, c->note, sizeof c->note);
        c->is_same_source = strcmp(c->note, MADE_OF_SAME) == 0;
        if (base->row.gpu.count > 0 && strcmp(base->row.kernel, o->row.kernel) != 0)
            comparison_add_note(c, "was ", base->row.kernel);
        if (base->row.gpu.count == 0 && !base->skipped)
            c->test.obstacle = "the base cannot be timed";
        char why[200];
        const char *message = o->row.message[0] ? o->row.message : base->row.message;
        snprintf(why, sizeof why, "%.*s", (int)strcspn(message, ";"),
                 message); /* the details apart */
        comparison_add_note(c, why, "");
    } else if (settings.baseline) {
        comparison_row *c = comparison_add(&r->comparison, key);
        const result_case *b = results_list_find(&r->base, key);
        if (b) {
            comparison_add_run(c, &c->base, b->samples, b->count, CLOCK_GPU, b->row.labels);
            comparison_note_pair(c, &r->base.meta, &b->row, &r->meta, &o->row);
        }
        comparison_add_run(c, &c->now, o->samples, o->row.gpu.count, CLOCK_GPU, o->row.labels);
    }
}

/* One row: to the table, to the files, and counted. */
static bool add_row(run *r, const bench_case *c, const result_row *made, bool skipped,
                    const timing_sample *samples, err *e) {
    result_row row = *made;
    const weight_format *format = c->timed.kernel->format; /* the harness knows no formats */
    size_t count = row.gpu.count;
    snprintf(row.format, sizeof row.format, "%s", format ? format->name : "");
    result_row_sign(&row, &r->meta);
    r->rows[r->count++] = row;
    r->skipped += skipped;
    r->failed += count == 0 && !skipped;
    if (!is_quiet())
        bench_print_row(&r->table, &row);
    /* The history first: a line of it is true without the row. */
    return verb_flush(e) && results_add_history(r->path, &r->meta, &row, samples, e) &&
           results_add(r->file, &row, samples, count, e) &&
           (!r->saved || count == 0 || results_add(r->saved, &row, samples, count, e));
}

static bool deliver(void *context, const bench_case *c, const bench_outcome *o, err *e) {
    run *r = context;
    compare_case(r, c->name, o);
    bool ok = add_row(r, c, &o->row, o->skipped, o->samples, e);
    for (size_t i = 0; ok && settings.bench.rival_count > 0 && i < o->other_count; i++) {
        const bench_other *x = &o->others[i];
        ok = add_row(r, c, &x->row, x->skipped, x->samples, e);
    }
    return ok;
}

static bool open_baseline(run *r, const device_facts *f, err *e) {
    bool is_folder;
    if (settings.save &&
        !bench_files_find_named(r->path, settings.save, r->save_path, sizeof r->save_path, e))
        return false;
    if (!settings.baseline)
        return true;
    if (!bench_files_find_baseline(r->path, settings.baseline, r->base_path, sizeof r->base_path,
                                   &is_folder, e))
        return false;
    if (is_folder) {
        settings.bench.base_folder = settings.baseline;
        return true;
    }
    if (settings.save && strcmp(r->save_path, r->base_path) == 0)
        return err_set(e, EXIT_USAGE,
                       "the baseline '%.60s' is compared with and would be replaced: save under "
                       "another name",
                       settings.save);
    return bench_files_read_baseline(r->base_path, settings.baseline, f, &r->base, e);
}

/* With a CSV and no other selection, the cases of the CSV are timed. */
static bool choose_cases(const run *r, bench_list *out, err *e) {
    const bench_query *q = &settings.query;
    const axes_query *a = &q->axes;
    bool is_asked = q->filter_count || q->shapes || a->formats || a->accumulate || a->variants ||
                    a->batches || q->input || q->regimes || q->caches;
    if (r->base.count == 0 || is_asked)
        return bench_cases_find(q, out, e);
    *out = (bench_list){.items = NULL};
    for (size_t i = 0; i < r->base.count; i++) {
        bench_case c;
        if (!bench_cases_parse(r->base.cases[i].row.name, &c, e)) {
            bench_cases_free(out);
            return false;
        }
        bench_cases_add(out, &c);
    }
    return true;
}

/* The verb ---------------------------------------------------------------------------------- */

static bool drop_finished(const run *r, const device_facts *f, bench_list *l, err *e) {
    size_t all = l->count, kept;
    if (!settings.resume)
        return true;
    if (!bench_files_drop_finished(r->path, &r->meta, f, l, &kept, e))
        return false;
    fprintf(stderr, "%zu of %zu cases are already there\n", kept, all);
    return true;
}

/* A run that was disturbed is ambiguous against any other. */
static void tell_saved(const run *r) {
    size_t disturbed = 0;
    for (size_t i = 0; i < r->count; i++)
        disturbed += timing_find_suspicion(r->rows[i].labels) != NULL;
    fprintf(stderr, "baseline %s: %s\n", settings.save, r->save_path);
    if (disturbed > 0)
        verb_say("%zu of %zu rows were disturbed (busy, throttled or ramp): against this baseline "
                 "they will be ambiguous. On a shared machine time both versions interleaved: git "
                 "worktree add ../base, then assay bench --baseline ../base",
                 disturbed, r->count);
}

static bool is_all_new(const comparison_list *l) {
    for (size_t i = 0; i < l->count; i++)
        if (l->rows[i].test.verdict != VERDICT_NEW)
            return false;
    return true;
}

static exit_code finish(run *r) {
    comparison_options o = settings.shown;
    o.min_effect = settings.bench.min_effect / 100;
    o.against = settings.bench.rival_count > 0;
    o.seed = settings.bench.seed;
    if (settings.shown.json)
        bench_print_json(stdout, &r->meta, r->rows, r->count, &r->comparison, &o);
    else if (settings.shown.markdown && r->comparison.count == 0)
        bench_print_markdown(stdout, &r->meta, r->rows, r->count);
    else if (r->comparison.count == 0) {
        bench_print_summary(stdout, r->rows, r->count, r->cases);
        fflush(stdout);
    }
    size_t timed = r->count - r->failed - r->skipped;
    fprintf(stderr, "%zu timed, %zu not timed", timed, r->failed);
    if (r->skipped > 0)
        fprintf(stderr, ", %zu skipped because %s", r->skipped,
                settings.against.count ? "they are not for these cases or this device"
                                       : "this device cannot run them");
    fprintf(stderr, "; rows in %s\n", r->path);
    if (settings.save)
        tell_saved(r);
    if (r->cases->skipped > 0)
        fprintf(stderr, "%zu more skipped, the first: %s\n", r->cases->skipped,
                r->cases->first_skip);
    exit_code code = r->failed > 0                  ? EXIT_WRONG
                     : r->skipped > 0 && timed == 0 ? EXIT_CANNOT
                                                    : EXIT_OK;
    if (r->comparison.count == 0)
        return code;
    o.json = false; /* the object has been printed */
    exit_code verdict = comparison_print(&r->comparison, &o, settings.shown.json ? stderr : stdout);
    if (settings.shown.markdown) {
        puts("\n<details><summary>Times</summary>\n");
        bench_print_markdown(stdout, &r->meta, r->rows, r->count);
        puts("\n</details>");
    }
    if (settings.bench.base_folder && is_all_new(&r->comparison)) {
        fprintf(stderr, "none of these kernels is in the base %s\n", settings.baseline);
        verdict = EXIT_OK;
    }
    return code ? code : verdict;
}

static bool drop_unoffered(const device_facts *f, bench_list *l, err *e) {
    size_t kept = 0;
    err why = {.code = EXIT_OK};
    for (size_t i = 0; i < l->count; i++)
        if (device_offers(f, l->items[i].timed.kernel->needs, &why))
            l->items[kept++] = l->items[i];
    bool ok = kept > 0 || err_set(e, why.code, "%s %s", l->items[0].timed.kernel->name, why.text);
    l->count = kept;
    return ok;
}

static exit_code bench_cases(run *r, const device_facts *f, err *e) {
    bench_list cases;
    if (!choose_cases(r, &cases, e))
        return e->code;
    r->cases = &cases;
    r->facts = f;
    r->rows = calloc(cases.count * (1 + settings.bench.rival_count) + 1, sizeof *r->rows);
    assert(r->rows);
    const bench_listener listener = {start, deliver, r};
    bool ok = drop_unoffered(f, &cases, e) && bench_against_choose(&settings.bench, &cases, e) &&
              drop_finished(r, f, &cases, e);
    bench_set_workers(&settings.bench, f, cases.count);
    ok = ok && (cases.count == 0 || bench_run(&settings.bench, f, &cases, &listener, e));
    if (!ok && e->code == EXIT_INTERRUPTED) {
        const err was = *e;
        err_set(e, was.code, "%.80s; --resume times those that have no row in %.100s yet", was.text,
                r->path);
    }
    exit_code code = ok ? finish(r) : e->code;
    results_close(r->saved);
    results_close(r->file);
    free(r->rows);
    bench_cases_free(&cases);
    return code;
}

static exit_code serve(err *e) {
    project_version version = {.ops = NULL};
    bench_base base = {.error = {.code = EXIT_OK}};
    if (settings.baseline && os_is_folder(settings.baseline))
        settings.bench.base_folder = settings.baseline;
    if (settings.bench.base_folder &&
        !project_load_version(settings.baseline, &version, &base.error))
        version.ops = NULL;
    base.ops = version.ops;
    base.op_count = version.count;
    base.sources = version.sources;
    return bench_serve(&settings.bench, bench_cases_parse, &base, &bandwidth_roof_kernels, e);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    const char *other = settings.baseline ? "--baseline" : settings.resume ? "--resume" : NULL;
    if (other && settings.against.count > 0)
        return err_code(e, EXIT_USAGE, "%s and --against exclude each other", other);
    if (!bench_against_open(&settings.against, &settings.launches, &settings.bench, e))
        return e->code;
    if (settings.worker)
        return serve(e);
    settings.query.filters = names;
    settings.query.filter_count = count;
    device_facts facts;
    static run r;
    suite find = {.device = settings.bench.device};
    bool ok = suite_find_device(&find, &facts, e) &&
              bench_files_find_rows(settings.out, settings.against.count ? "against" : "bench",
                                    &facts, r.path, sizeof r.path, e) &&
              open_baseline(&r, &facts, e);
    exit_code code = EXIT_OK;
    if (ok) {
        char budget[32];
        r.meta = results_meta_new(ASSAY_VERSION, &facts, settings.bench.seed);
        snprintf(budget, sizeof budget, "%g s", settings.bench.budget_s);
        results_meta_add(&r.meta, "budget", budget);
        code = bench_cases(&r, &facts, e);
    } else
        code = e->code;
    comparison_free(&r.comparison);
    results_list_free(&r.base);
    return code;
}

VERB(verb_bench, "bench", run_verb, .names = "[FILTER...]",
     .about = "time kernels, each checked before and after: one row per case, samples kept",
     .notes =
         "single: submit and wait per run. chained: runs back to back in one command buffer.\n"
         "independent: many runs in one command buffer that need not wait for each other. cold\n"
         "rotates over copies that are larger than the caches. The time is the median on the\n"
         "GPU's clock; iqr is the distance between the quartiles; % roof is relative to the\n"
         "fastest read, copy or triad of at least as many bytes, measured within seconds of\n"
         "it. A case that fails its check is not timed. Labels say under which conditions a\n"
         "time was taken: emulated, virtual, throttled (became slower), ramp (became faster),\n"
         "busy, gpu_is_wall, unsteady (the budget ended first), above_roof, validated, hot,\n"
         "low_power, battery. Rows of other cases stay in the file; NAME.history.csv has every\n"
         "run. --against checks another's kernel with our oracle and times it interleaved with\n"
         "each case of ours that computes the same; rows go to results/<device>/against.csv.\n"
         "With --baseline or --against the exit status is 4 if a case of ours is slower, 5 if\n"
         "the samples cannot tell.\n",
     VERB_OPTIONS(options), .math = "fast", .runs_ops = true);
