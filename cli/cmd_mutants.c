/* cmd_mutants: `assay mutants`. How many planted mistakes do check and validate catch? The outcome of all mutants,
 * counted by operator and by what caught them, and the list of those that are known to survive. */
#include "mutant_known.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/root.h"
#include "harness/base/worker.h"
#include "harness/check/suite.h"
#include "report.h"
#include "verb.h"

static const char *const fates[MUTANT_FATES] = {
    [MUTANT_UNCOMPILED] = "does not compile",
    [MUTANT_CHECKED] = "check",
    [MUTANT_VALIDATED] = "validate",
    [MUTANT_CRASHED] = "crash",
    [MUTANT_TIMED_OUT] = "time-out",
    [MUTANT_EQUIVALENT] = "same code",
    [MUTANT_KNOWN] = "known",
    [MUTANT_SURVIVED] = "survived",
};

/* Is the line this character and this text, blanks aside? */
static bool is_line(const char *line, size_t length, char first, const char *text) {
    if (length == 0 || *line != first)
        return false;
    const char *end = line + length;
    for (line++;; line++, text++) {
        while (line < end && isspace((unsigned char)*line))
            line++;
        while (isspace((unsigned char)*text))
            text++;
        if (line == end || !*text)
            return line == end && !*text;
        if (*line != *text)
            return false;
    }
}

char *mutant_find_known(const char *list, const mutant *m) {
    char at_line[160], *before, *after, *reason = NULL;
    snprintf(at_line, sizeof at_line, "%s %s", m->file->name, m->edit->where);
    mutate_describe(m->file->source, m->edit, &before, &after);
    const char *const wanted[] = {at_line, before, after};
    size_t length, matched = 0;
    for (const char *line = list; *line && !reason; line += length, line += *line == '\n') {
        line += strspn(line, " \t\r");
        length = strcspn(line, "\n");
        if (*line == '@')
            matched = 0;
        if (matched < 3 && is_line(line, length, "@-+"[matched], wanted[matched]))
            matched++;
        else if (matched == 3 && length > 1 && strchr("=!", *line))
            reason = strndup(line, length);
        else if (length > 0 && strchr("-+", *line))
            matched = 4; /* another one: wait for the next @ */
    }
    free(before);
    free(after);
    return reason;
}

/* A mutant and its fate. */
typedef struct {
    const char *file, *function, *mutation, *fate, *class, *by;
    int line;
    char *before, *after;
} mutant_row;

static const field fields[] = {
    FIELD(mutant_row, file, FIELD_TEXT, "file"),
    FIELD(mutant_row, line, FIELD_INTEGER, "line"),
    FIELD(mutant_row, function, FIELD_TEXT, "in"),
    FIELD(mutant_row, mutation, FIELD_TEXT, "mutation"),
    FIELD(mutant_row, before, FIELD_TEXT, "before"),
    FIELD(mutant_row, after, FIELD_TEXT, "after"),
    FIELD(mutant_row, fate, FIELD_TEXT, "fate"),
    FIELD(mutant_row, class, FIELD_TEXT, "class"),
    FIELD(mutant_row, by, FIELD_TEXT, "by"),
};
static const record rows = RECORD(fields);

static mutant_row make_row(const mutant *m, const mutant_outcome *o) {
    mutant_row r = {.file = m->file->name,
                    .function = m->edit->where,
                    .mutation = mutate_get_name(m->edit->kind),
                    .fate = fates[o->fate],
                    .class = o->class,
                    .by = o->by,
                    .line = m->edit->line};
    mutate_describe(m->file->source, m->edit, &r.before, &r.after);
    return r;
}

static void free_row(mutant_row *r) {
    free(r->before);
    free(r->after);
}

/* As lines of a file or objects of a list; the other is NULL. */
static void add_rows(csv *c, json *j, const mutant_list *l, const mutant_outcome *outcomes) {
    sink s = {.record = rows, .csv = c, .json = j};
    for (size_t i = 0; i < l->count; i++) {
        mutant_row r = make_row(&l->items[i], &outcomes[i]);
        sink_add(&s, &r, PAINT_NONE);
        free_row(&r);
    }
}

/* Counts -------------------------------------------------------------------------------------- */

/* Of the mutants of a kind, or of all: how many had each fate. */
typedef struct {
    const char *kind;
    size_t all, of[MUTANT_FATES], ended; /* ended: by a crash or a time-out */
    char percent[16];                    /* of those that could be caught */
} tally;

static const field tally_fields[] = {
    FIELD(tally, kind, FIELD_TEXT, NULL, "mutation"),
    FIELD(tally, all, FIELD_COUNT, NULL, "mutants"),
    FIELD(tally, of[MUTANT_UNCOMPILED], FIELD_COUNT, NULL, "not compiled"),
    FIELD(tally, of[MUTANT_CHECKED], FIELD_COUNT, NULL, "check"),
    FIELD(tally, of[MUTANT_VALIDATED], FIELD_COUNT, NULL, "validate"),
    FIELD(tally, ended, FIELD_COUNT, NULL, "crash, time"),
    FIELD(tally, of[MUTANT_EQUIVALENT], FIELD_COUNT, NULL, "same code"),
    FIELD(tally, of[MUTANT_KNOWN], FIELD_COUNT, NULL, "known"),
    FIELD(tally, of[MUTANT_SURVIVED], FIELD_COUNT, NULL, "survived", .is_painted = true),
    FIELD(tally, percent, FIELD_CHARS, NULL, "score"),
};

static size_t count_killed(const tally *t) {
    return t->of[MUTANT_CHECKED] + t->of[MUTANT_VALIDATED] + t->ended;
}

static double get_score(const tally *t) {
    size_t killed = count_killed(t), all = killed + t->of[MUTANT_SURVIVED];
    return all ? (double)killed / (double)all : 1;
}

/* kind: MUTATE_KINDS for all. */
static tally count_fates(const mutant_list *l, const mutant_outcome *outcomes, int kind) {
    tally t = {.kind = kind < MUTATE_KINDS ? mutate_get_name((mutate_kind)kind) : "all"};
    for (size_t i = 0; i < l->count; i++)
        if (kind == MUTATE_KINDS || (int)l->items[i].edit->kind == kind) {
            t.of[outcomes[i].fate]++;
            t.all++;
        }
    t.ended = t.of[MUTANT_CRASHED] + t.of[MUTANT_TIMED_OUT];
    if (count_killed(&t) + t.of[MUTANT_SURVIVED] > 0)
        snprintf(t.percent, sizeof t.percent, "%5.1f %%", 100 * get_score(&t));
    return t;
}

static void print_classes(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    const char *before = "\nvalidation found: ";
    for (size_t i = 0; i < l->count; i++) {
        size_t same = 0, earlier = 0;
        for (size_t j = 0; outcomes[i].class[0] && j < l->count; j++)
            if (outcomes[j].fate == MUTANT_VALIDATED &&
                strcmp(outcomes[i].class, outcomes[j].class) == 0) {
                same++;
                earlier += j < i;
            }
        if (outcomes[i].fate != MUTANT_VALIDATED || same == 0 || earlier > 0)
            continue;
        fprintf(out, "%s%s %zu", before, outcomes[i].class, same);
        before = ", ";
    }
    fputs(*before == ',' ? "\n" : "", out);
}

static void print_fate(FILE *out, const mutant_list *l, const mutant_outcome *outcomes,
                       mutant_fate fate, const char *title) {
    for (size_t i = 0; i < l->count; i++) {
        if (outcomes[i].fate != fate)
            continue;
        mutant_row r = make_row(&l->items[i], &outcomes[i]);
        if (title)
            fprintf(out, "\n%s:\n", title);
        title = NULL;
        fprintf(out, "%s:%d %s, in %s\n  - %s\n  + %s\n", r.file, r.line, r.mutation, r.function,
                r.before, r.after);
        if (r.by[0])
            fprintf(out, "  = %s\n", r.by);
        free_row(&r);
    }
}

/* The table of operators, what validation found, what survived. Returns the fraction caught of
 * those that could be. */
static double print_report(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    sink s = {.record = RECORD(tally_fields), .out = out};
    tally all = count_fates(l, outcomes, MUTATE_KINDS);
    for (int k = 0; k <= MUTATE_KINDS; k++) {
        tally t = count_fates(l, outcomes, k);
        sink_add(&s, &t, t.of[MUTANT_SURVIVED] > 0 ? PAINT_BAD : PAINT_NONE);
    }
    sink_end(&s);
    print_classes(out, l, outcomes);
    print_fate(out, l, outcomes, MUTANT_KNOWN, "known to change nothing");
    print_fate(out, l, outcomes, MUTANT_SURVIVED, "survived");
    fprintf(out, "\n%zu mutant%s of %zu; %.1f %% of those that change something were caught",
            l->count, l->count == 1 ? "" : "s", l->all, 100 * get_score(&all));
    double score = get_score(&all);
    if (all.of[MUTANT_KNOWN] > 0) {
        all.of[MUTANT_SURVIVED] += all.of[MUTANT_KNOWN];
        fprintf(out, " (%.1f %% if the known ones counted as survivors)", 100 * get_score(&all));
    }
    fprintf(out, "\n");
    return score;
}

static void print_json(FILE *out, const device_facts *f, uint64_t seed, const mutant_list *l,
                       const mutant_outcome *outcomes) {
    tally all = count_fates(l, outcomes, MUTATE_KINDS);
    json j = verb_open_json(out, "mutants", f, seed);
    json_open(&j, "mutants", '[');
    add_rows(NULL, &j, l, outcomes);
    json_close(&j);
    json_open(&j, "fates", '{');
    for (int i = 0; i < MUTANT_FATES; i++)
        json_add_count(&j, fates[i], all.of[i]);
    json_close(&j);
    json_add_count(&j, "tried", l->count);
    json_add_count(&j, "of", l->all);
    json_add_real(&j, "score", get_score(&all));
    json_close(&j);
}

/* The verb --------------------------------------------------------------------------------------- */

static const char *csv_path, *extra, *worker_folder;
static uint64_t sample, seed = 1, jobs;
static double timeout_s = 10;
static bool prints_json;

static const option options[] = {
    {"sample", OPTION_NUMBER, &sample, "N", "try N of them, drawn at random (default: all)", 1,
     1000000},
    RANDOM_SEED_OPTION(&seed, "the sample and of the inputs"),
    HELD_OUT_OPTION(&extra),
    TEXT_OPTION("csv", &csv_path, "FILE", "also write one row per mutant to a file"),
    FLAG_OPTION("json", &prints_json, "print one JSON object; the table goes to stderr"),
    {"jobs", OPTION_NUMBER, &jobs, "N", "workers at a time (default: one per CPU, up to 8)", 1,
     256},
    SECONDS_OPTION("timeout", &timeout_s, "S",
                   "CPU seconds before a mutant is endless (default 10)"),
    PLAIN_OPTION("worker", OPTION_TEXT, &worker_folder, NULL, NULL),
};

#define PASS_SCORE 0.95

typedef struct {
    const mutant_list *list;
    const device_facts *facts;
    char *known;          /* the list of those that are known to survive */
    const kernel **plain; /* unmutated kernels: their tasks follow those of the mutants */
    size_t plain_count;
    mutant_outcome *outcomes;
    size_t tried; /* the outcome of this many, from the first on, is known */
} delivery;

/* A kernel that fails without a mutation says nothing about its mutants, so each one is also run
 * unmutated, before any mutant. */
static void find_plain(delivery *s) {
    size_t room = s->list->count * MUTANT_KERNELS;
    s->plain = array_new(room + 1, sizeof *s->plain);
    for (size_t i = 0; i < s->list->count; i++) {
        const mutant *m = &s->list->items[i];
        for (size_t k = 0; k < m->kernel_count && k < MUTANT_KERNELS; k++) {
            size_t j = 0;
            while (j < s->plain_count && s->plain[j] != m->kernels[k])
                j++;
            if (j == s->plain_count)
                s->plain[s->plain_count++] = m->kernels[k];
        }
    }
}

/* A survivor on the project's list has a known reason to survive. */
static void mark_known(const delivery *s, size_t i) {
    mutant_outcome *o = &s->outcomes[i];
    char *reason =
        o->fate == MUTANT_SURVIVED ? mutant_find_known(s->known, &s->list->items[i]) : NULL;
    if (reason && *reason == '=')
        o->fate = MUTANT_KNOWN;
    if (reason)
        snprintf(o->by, sizeof o->by, "%.190s", reason + strspn(reason, "=! "));
    free(reason);
}

static bool save(const delivery *s, err *e) {
    mutant_list done = *s->list;
    done.count = s->tried;
    csv *file = report_start_csv(s->facts, seed);
    record_add_titles(&rows, file);
    add_rows(file, NULL, &done, s->outcomes);
    bool ok = csv_write(file, csv_path, e);
    csv_free(file);
    return ok;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    mutant_outcome got = {.fate = MUTANT_CRASHED};
    if (o->failure[0]) {
        bool is_late = strstr(o->failure, "SIGXCPU") || strstr(o->failure, "timed out");
        got.fate = is_late ? MUTANT_TIMED_OUT : MUTANT_CRASHED;
        snprintf(got.by, sizeof got.by, "%.95s", o->failure);
    } else if (!worker_unpack(o, &got, sizeof got, e))
        return false;
    if (got.fate == MUTANT_FATES)
        return err_set(e, EXIT_CANNOT, "%s", got.by);
    if (task >= s->plain_count) {
        s->outcomes[s->tried] = got;
        mark_known(s, s->tried++);
        return true;
    }
    if (got.fate == MUTANT_EQUIVALENT || got.fate == MUTANT_SURVIVED)
        return true;
    return err_set(e, EXIT_WRONG,
                   "the kernel %.60s is wrong even without a mutation (%.100s): see assay check",
                   s->plain[task]->name, got.by);
}

static bool run_tasks(delivery *s, const char *scratch, err *e) {
    size_t count = s->plain_count + s->list->count;
    char **tasks = array_new(count + 1, sizeof *tasks);
    progress shown = progress_new(stderr, "mutants", count);
    worker_folder = scratch;
    for (size_t i = 0; i < count; i++) {
        bool is_plain = i < s->plain_count;
        const mutant *m = is_plain ? NULL : &s->list->items[i - s->plain_count];
        tasks[i] = mutant_get_task(i, m, is_plain ? s->plain[i] : NULL);
    }
    const worker_plan plan = {.arguments = LIST_VALUES("mutants", options),
                              .tasks = (const char *const *)tasks,
                              .count = count,
                              .jobs = jobs ? (int)jobs : worker_count_jobs(8),
                              .timeout_s = 60 + 10 * timeout_s, /* with compilers and the rest */
                              .deliver = deliver,
                              .context = s,
                              .progress = &shown};
    bool ok = worker_run(&plan, e);
    for (size_t i = 0; i < count; i++)
        free(tasks[i]);
    free(tasks);
    return ok;
}

static char *read_known(err *e) {
    char home[PATH_MAX - 64], path[PATH_MAX];
    bool is_project = root_find_project(home, sizeof home);
    if (!is_project && !os_find_home(home, sizeof home, e))
        return NULL;
    snprintf(path, sizeof path, "%s/%smutants-known.txt", home, is_project ? "" : "tests/");
    return is_project && access(path, F_OK) != 0 ? strdup("") : os_read_file(path, NULL, e);
}

static exit_code try_mutants(const mutant_list *l, const char *scratch, const device_facts *f,
                             err *e) {
    delivery s = {.list = l, .facts = f, .outcomes = calloc(l->count, sizeof *s.outcomes)};
    assert(s.outcomes);
    bool ok = (s.known = read_known(e)), is_whole = false;
    if (ok) {
        find_plain(&s);
        if (!prints_json)
            report_print_header(f, seed);
        fflush(stdout);
        is_whole = run_tasks(&s, scratch, e);
        /* Results from before an interruption are not lost. */
        ok = is_whole || (e->code == EXIT_INTERRUPTED && s.tried > 0);
    }
    err why = *e;
    mutant_list done = *l;
    done.count = s.tried;
    double score = ok ? print_report(prints_json ? stderr : stdout, &done, s.outcomes) : 0;
    if (ok && prints_json)
        print_json(stdout, f, seed, &done, s.outcomes);
    ok = ok && (!csv_path || save(&s, e));
    if (ok && !is_whole)
        *e = why;
    free(s.known);
    free(s.outcomes);
    free(s.plain);
    return !ok || !is_whole ? e->code : score >= PASS_SCORE ? EXIT_OK : EXIT_WRONG;
}

/* The kernels are copied first, so that editing them during the run does not disturb it. */
static bool copy_kernels(const char *scratch, char *original, size_t size, err *e) {
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib && path_print(original, size, e, "%s/original", scratch) &&
              mutants_copy(library_get_folder(lib), original, e);
    library_free(lib);
    return ok;
}

static bool find_cases(const char *name, case_list *out, err *e) {
    return cases_find_kernel(name, extra, seed, out, e);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    if (!mutants_prepare(e))
        return e->code;
    if (worker_folder)
        return mutant_serve(worker_folder, seed, timeout_s, find_cases, e);
    case_query query = {.filters = names, .filter_count = count, .extra = extra, .seed = seed};
    const suite soft = {.device = "soft"};
    case_list cases = {NULL, 0};
    mutant_list l = {0};
    device_facts facts;
    char scratch[PATH_MAX - 64], original[PATH_MAX];
    if (!cases_find(&query, &cases, e) || !suite_find_device(&soft, &facts, e) ||
        !cases_keep_offered(&cases, &facts, e) || !os_make_scratch(scratch, sizeof scratch, e)) {
        cases_free(&cases);
        return e->code;
    }
    bool ok = copy_kernels(scratch, original, sizeof original, e) &&
              mutants_find(original, &cases, &l, e);
    if (ok && sample)
        mutants_sample(&l, (size_t)sample, seed);
    exit_code code = ok ? try_mutants(&l, scratch, &facts, e) : e->code;
    os_remove_folder(scratch);
    mutants_free(&l);
    cases_free(&cases);
    return code;
}

VERB(verb_mutants, "mutants", run_verb, .names = "[FILTER...]",
     .about = "plant one mistake at a time in the kernels and count what check and validate catch",
     .notes =
         "Each mutant is a copy of the kernels with one edit: a bound off by one, a guard,\n"
         "barrier or term dropped, indices or nibbles swapped, another operator, constant or\n"
         "lane, a variable without its initial value, an index wrong at one edge. It is compiled,\n"
         "checked on the cases of the kernels that contain it, small cases first, and, if it\n"
         "passes, validated. A mutant with identical machine code counts as equivalent; others\n"
         "that change nothing are listed with their reasons in tests/mutants-known.txt (in a\n"
         "project, mutants-known.txt). Exit status: 1 if less than 95 percent of the rest are\n"
         "caught. Runs on the software device. The same seed gives the same mutants.\n",
     VERB_OPTIONS(options), .runs_ops = true);
