/* cmd_experiment: `assay experiment`. Experiments run in a worker, so that a crash in one does not
 * end the others; those of a worker share the roof and the model. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/experiment.h"
#include "experiments/lab.h"
#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/worker.h"
#include "harness/check/suite.h"
#include "harness/measure/freshness.h"
#include "harness/measure/plot.h"
#include "harness/measure/publish.h"
#include "verb.h"

static struct {
    bool quick, smoke, resume, json, worker;
    const char *device, *out, *model;
    uint64_t seed;
    double timeout_s;
} settings = {.seed = 1, .timeout_s = 3600};

static const option options[] = {
    FLAG_OPTION("quick", &settings.quick, "fewer points, less time for each: minutes for all"),
    FLAG_OPTION("smoke", &settings.smoke, "only shows that each works: the numbers mean nothing"),
    FLAG_OPTION("resume", &settings.resume, "skip those whose files are still true"),
    DEVICE_OPTION(&settings.device),
    TEXT_OPTION("out", &settings.out, "DIR", "where the files go (default results/<device>)"),
    LAB_MODEL_OPTION(&settings.model),
    SEED_OPTION(&settings.seed, "inputs and tokens"),
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "give up on an experiment after this many seconds (default 3600)"),
    FLAG_OPTION("json", &settings.json, "print one JSON object in place of the text"),
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

/* The answer of a worker: this, then each conclusion with its end of string. Both sides are the same
 * program. */
typedef struct {
    bool made;
    err error;
    double seconds;
    size_t conclusions;
} answer;

static lab_level get_level(void) {
    return settings.smoke ? LEVEL_SMOKE : settings.quick ? LEVEL_QUICK : LEVEL_FULL;
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    const device *d = library_get_device(lab_get_library(context));
    answer a = {.made = false};
    memory_file *text = memory_file_new();
    sheet *s = NULL;
    uint64_t start = os_now_ns();
    const experiment *x = experiment_find(task);
    assert(x);
    a.made = experiment_run(x, context, ASSAY_VERSION, settings.out, &s, &a.error);
    a.seconds = (double)(os_now_ns() - start) * 1e-9;
    if (!a.made)
        device_tell_loss(d, &a.error);
    a.conclusions = s ? sheet_count_conclusions(s) : 0;
    for (size_t i = 0; i < a.conclusions; i++)
        fprintf(text->out, "%s%c", sheet_get_conclusion(s, i), 0);
    sheet_free(s);
    *retire = !a.made || device_is_lost(d); /* a wrong kernel may have written anywhere */
    return worker_pack(&a, sizeof a, text, bytes);
}

static exit_code serve(err *e) {
    lab_options o = {settings.device, settings.model, get_level(), settings.seed};
    lab *l = lab_new(&o, e);
    bool ok = l && worker_serve(run_task, l, e);
    lab_free(l);
    return ok ? EXIT_OK : e->code;
}

/* The other side ------------------------------------------------------------------------------ */

typedef struct {
    const char *names[MOST_EXPERIMENTS];
    size_t count;
    device_facts facts;
    char folder[PATH_MAX];
    exit_code code;
    size_t done;
    json object; /* of --json */
} delivery;

/* Files of earlier runs; NULL if there is none that can be used. */
static csv_file *read_file(const delivery *s, const char *name) {
    char path[PATH_MAX];
    if (!path_print(path, sizeof path, NULL, "%s/%s.csv", s->folder, name))
        return NULL;
    publish_finish_all(s->folder); /* a failure too */
    csv_file *f = csv_read(path, NULL);
    if (f && results_check_schema(f, NULL))
        return f;
    csv_file_free(f);
    return NULL;
}

static bool is(const csv_file *f, const char *key, const char *value) {
    return strcmp(csv_find_meta(f, key), value) == 0;
}

/* A model is named in the head by its file, without folders. */
static bool is_same_model(const csv_file *f) {
    return !csv_get_meta(f, "model") || !settings.model ||
           is(f, "model", path_get_name(settings.model));
}

/* Is its file still true: of this program, device, seed, level, math mode and model, and of code that has not
 * changed since? */
static bool is_finished(const delivery *s, const char *name, freshness *fresh,
                        const results_meta *now) {
    file_origin made;
    csv_file *f = read_file(s, name);
    char failed[PATH_MAX];
    bool yes =
        f && csv_count_rows(f) > 0 && !csv_get_meta(f, "failed") &&
        path_print(failed, sizeof failed, NULL, "%s/%s.failed.csv", s->folder, name) &&
        access(failed, F_OK) != 0 && is(f, "device", s->facts.name) &&
        is(f, "compiler", s->facts.compiler) && is(f, "seed", results_meta_find(now, "seed")) &&
        is(f, "level", lab_get_level_name(get_level())) &&
        is(f, "math", math_mode_get_name(s->facts.math)) && is_same_model(f) &&
        freshness_is_same_program(csv_find_meta(f, "build"), csv_find_meta(f, "commit"), now);
    if (yes) {
        freshness_judge_file(fresh, f, &made);
        yes = made.stale == 0 && made.unknown == 0;
    }
    csv_file_free(f);
    return yes;
}

static bool drop_finished(delivery *s, err *e) {
    size_t left = 0;
    freshness *fresh = settings.resume ? freshness_new(e) : NULL;
    if (!fresh)
        return !settings.resume;
    results_meta now = results_meta_new("", &s->facts, settings.seed);
    for (size_t i = 0; i < s->count; i++)
        if (!is_finished(s, s->names[i], fresh, &now))
            s->names[left++] = s->names[i];
    freshness_free(fresh);
    fprintf(stderr, "%zu of %zu experiments are already there\n", s->count - left, s->count);
    s->count = left;
    return true;
}

/* The seconds that `name` took at this level last time, or a guess. */
static double expect_seconds(const delivery *s, const char *name) {
    static const double guess_s[LEVEL_COUNT] = {200, 7, 3};
    csv_file *f = read_file(s, name);
    double known = f && is(f, "level", lab_get_level_name(get_level()))
                       ? strtod(csv_find_meta(f, "seconds"), NULL)
                       : 0;
    csv_file_free(f);
    return known > 0 ? known : guess_s[get_level()];
}

/* One experiment in the list that run_chosen opens. */
static void add_json(json *j, const char *name, const answer *a, const char *conclusion,
                     const char *error) {
    json_open(j, NULL, '{');
    json_add_text(j, "experiment", name);
    if (error)
        json_add_text(j, "error", error);
    else {
        json_add_real(j, "seconds", a->seconds);
        json_open(j, "conclusions", '[');
        for (size_t i = 0; i < a->conclusions; i++, conclusion += strlen(conclusion) + 1)
            json_add_text(j, NULL, conclusion);
        json_close(j);
    }
    json_close(j);
}

static void print_conclusions(const char *name, const answer *a, const char *conclusion) {
    printf("%s (%.1f s)\n", name, a->seconds);
    for (size_t i = 0; i < a->conclusions; i++, conclusion += strlen(conclusion) + 1)
        printf("  %s\n", conclusion);
}

static void tell_failure(delivery *s, const char *name, const char *why, const char *detail,
                         exit_code code) {
    fprintf(stderr, "%s: %s\n%s", name, why, detail);
    s->code = s->code ? s->code : code;
}

/* A file says so too, beside what an earlier run found. */
static bool fail(delivery *s, const char *name, const char *why, const char *detail, exit_code code,
                 err *e) {
    const results_meta m = results_meta_new(ASSAY_VERSION, &s->facts, settings.seed);
    if (settings.json)
        add_json(&s->object, name, NULL, NULL, why);
    tell_failure(s, name, why, detail, code);
    return experiment_write_failure(name, &m, s->folder, why, e);
}

static bool draw(delivery *s, const char *name, err *e) {
    char path[PATH_MAX];
    const char *file = path;
    if (!plot_is_available())
        return true;
    return path_print(path, sizeof path, e, "%s/%s.csv", s->folder, name) &&
           plot_draw(name, experiment_find(name)->finding, &file, 1, s->folder, e);
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    const char *name = s->names[task];
    answer a;
    err chart = {.code = EXIT_OK}, why = {.code = EXIT_OK};
    const char *conclusions = worker_unpack(o, &a, sizeof a, &why);
    if (!conclusions)
        return fail(s, name, why.text, "", EXIT_WRONG, e);
    if (!a.made)
        return fail(s, name, a.error.text, a.error.detail, a.error.code, e);
    s->done++;
    if (settings.json)
        add_json(&s->object, name, &a, conclusions, NULL);
    else
        print_conclusions(name, &a, conclusions);
    if (!verb_flush(e))
        return false;
    if (!draw(s, name, &chart))
        tell_failure(s, name, chart.text, chart.detail, chart.code);
    return true;
}

static bool run_all(delivery *s, err *e) {
    const bool is_alone = !s->facts.emulated || get_level() == LEVEL_FULL;
    settings.device = s->facts.spec;
    settings.out = s->folder;
    double expected_s[MOST_EXPERIMENTS];
    for (size_t i = 0; i < s->count; i++)
        expected_s[i] = expect_seconds(s, s->names[i]);
    progress shown = progress_new(stderr, "experiments", s->count);
    shown.names = s->names;
    shown.expected_s = expected_s;
    /* One after the other, or they would time each other. Emulated times say nothing about a GPU: only whole
     * sweeps, which compare them with each other, have the machine to themselves. */
    worker_plan plan = {.arguments = LIST_VALUES("experiment", options),
                        .tasks = s->names,
                        .count = s->count,
                        .jobs = is_alone ? 1 : worker_count_jobs(4),
                        .timeout_s = settings.timeout_s,
                        .deliver = deliver,
                        .context = s,
                        .progress = &shown};
    return worker_run(&plan, e);
}

/* A run that ends early has what it did until then. */
static bool run_chosen(delivery *s, err *e) {
    json *j = &s->object;
    if (settings.json) {
        *j = verb_open_json(stdout, "experiment", &s->facts, settings.seed);
        json_add_text(j, "level", lab_get_level_name(get_level()));
        json_add_text(j, "folder", s->folder);
        json_open(j, "experiments", '[');
    }
    bool ok = s->count == 0 || run_all(s, e);
    if (settings.json) {
        json_close(j);
        json_add_count(j, "done", s->done);
        json_close(j);
    }
    return ok;
}

static const field list_fields[] = {FIELD(experiment, name, FIELD_TEXT, "experiment"),
                                    FIELD(experiment, question, FIELD_TEXT, "question")};

static exit_code list_experiments(void) {
    if (!settings.json) {
        for (size_t i = 0; i < experiment_count; i++)
            printf("%-18s %s\n", experiments[i]->name, experiments[i]->question);
        return EXIT_OK;
    }
    json j = verb_open_json(stdout, "experiment", NULL, settings.seed);
    sink s = {.record = RECORD(list_fields), .json = &j};
    json_open(&j, "experiments", '[');
    for (size_t i = 0; i < experiment_count; i++)
        sink_add(&s, experiments[i], PAINT_NONE);
    json_close(&j);
    json_close(&j);
    return EXIT_OK;
}

/* "all", or names, each known; false with the valid ones. */
static bool choose(delivery *s, const char *const *names, size_t count, err *e) {
    const char *valid[MOST_EXPERIMENTS];
    for (size_t i = 0; i < experiment_count; i++)
        valid[i] = experiments[i]->name;
    if (count == 1 && strcmp(names[0], "all") == 0) {
        memcpy(s->names, valid, experiment_count * sizeof *valid);
        s->count = experiment_count;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        size_t found = options_find_name("experiment", names[i], valid, experiment_count,
                                         "`assay experiment` lists them", e);
        if (found == experiment_count)
            return false;
        s->names[s->count++] = valid[found];
    }
    return true;
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static delivery s;
    const suite find = {.device = settings.device};
    if (settings.worker)
        return serve(e);
    if (count == 0)
        return list_experiments();
    if (count > MOST_EXPERIMENTS)
        return err_code(e, EXIT_USAGE, "%zu names are too many; `all` is every experiment", count);
    if (!choose(&s, names, count, e) || !suite_find_device(&find, &s.facts, e) ||
        !(settings.out ? path_print(s.folder, sizeof s.folder, e, "%s", settings.out)
                       : results_find_folder(s.facts.name, s.folder, sizeof s.folder, e)) ||
        !drop_finished(&s, e) || !run_chosen(&s, e))
        return e->code;
    fprintf(stderr, "%zu of %zu experiments done%s; files in %s\n", s.done, s.count,
            s.facts.emulated     ? ", on the software device: its times say nothing about a GPU"
            : s.facts.is_virtual ? ", on a virtual GPU: its times are not those of the GPU"
                                 : "",
            s.folder);
    if (!plot_is_available())
        fputs("no charts: gnuplot is missing; install it (package gnuplot-nox or gnuplot) and run "
              "`assay plot`\n",
              stderr);
    return s.code;
}

VERB(verb_experiment, "experiment", run_verb, .names = "[NAME...|all]",
     .about = "answer a question about the device: rows, samples, a chart and a conclusion",
     .notes =
         "Without a name, lists them. Everything that is timed is checked against its oracle\n"
         "first, and things that are compared are timed interleaved. Each experiment writes a CSV\n"
         "file of rows, one of all samples, and a chart as SVG and PNG (by gnuplot) to\n"
         "results/<device>.\n",
     VERB_OPTIONS(options), .math = "fast", .reads_tuned = true);
