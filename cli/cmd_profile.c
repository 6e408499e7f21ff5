/* cmd_profile: `assay profile`. Why a kernel is slow, line by line, counted exactly and without a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/check/lint.h"
#include "harness/measure/freshness.h"
#include "launch_options.h"
#include "lint_agx.h"
#include "open_model.h"
#include "profile_print.h"
#include "verb.h"

static struct {
    launch_settings launch;
    const char *shapes, *input, *model, *device, *csv, *baseline;
    axes_query axes;
    uint64_t seed, sample, top, each, depth;
    double threshold, timeout_s;
    bool annotate, code, json, compare, play, agx;
} settings = {.seed = 1, .sample = 1, .top = 10, .each = 1, .depth = 32, .threshold = 1};

static const option options[] = {
    TEXT_OPTION("shape", &settings.shapes, "S,...", "only cases of these shapes, such as 576x576"),
    TEXT_OPTION("input", &settings.input, "D", "cases with this input (default normal)"),
    {"each", OPTION_NUMBER, &settings.each, "N", "N shapes per kernel, largest first (default 1)",
     1, 100},
    AXES_OPTIONS(settings.axes),
    LAUNCH_OPTIONS(settings.launch),
    TEXT_OPTION("m|model", &settings.model, "FILE", "one token of a model, summed by kernel"),
    {"d|depth", OPTION_NUMBER, &settings.depth, "N",
     "tokens of context before that token (default 32)", 1, 65536},
    {"sample", OPTION_NUMBER, &settings.sample, "N",
     "count one threadgroup in N, and scale the counts (default 1: all)", 1, 1000000},
    {"top", OPTION_NUMBER, &settings.top, "N", "lines to list (default 10)", 1, 100000},
    FLAG_OPTION("annotate", &settings.annotate, "all lines of the source, with their counts"),
    FLAG_OPTION("code", &settings.code,
                "machine code of an H200 after each line (ptxas, nvdisasm), with --agx of an M1"),
    FLAG_OPTION("compare", &settings.compare, "two kernels or cases side by side"),
    TEXT_OPTION("csv", &settings.csv, "FILE.csv", "also write all counts, per case and line"),
    FLAG_OPTION("json", &settings.json, "print one JSON object instead"),
    TEXT_OPTION("baseline", &settings.baseline, "WHAT",
                "a CSV file, or a folder of other kernels: exit status 4 if a count grew"),
    PERCENT_OPTION("threshold", &settings.threshold, "P",
                   "growth of a count, in percent (default 1)"),
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "seconds before a launch is given up (default 120)"),
    FLAG_OPTION("play", &settings.play,
                "play each launch once on --device, for a GPU's own profiler"),
    FLAG_OPTION("agx", &settings.agx,
                "what Mesa's compiler makes of the kernels for an M1 (docs/agx.md)"),
    DEVICE_OPTION(&settings.device),
    SEED_OPTION(&settings.seed, "the inputs"),
};

/* Cases ---------------------------------------------------------------------------------------- */

static profile *choose_one(void *context, const launch *l) {
    (void)l;
    return context;
}

static bool count_case(library *lib, kernel_case *c, profile *out, err *e) {
    snprintf(out->name, sizeof out->name, "%s", c->name);
    bool ok = case_open(c, lib, settings.seed, e) && profile_play(c->tape, choose_one, out, e);
    case_close(c);
    return ok;
}

/* What ptxas makes of the kernel, if it is installed: without it that is not known, which is an error only
 * where the machine code was asked for. */
static bool find_needs(const msl_unit *u, const char *name, math_mode math, profile *out, err *e) {
    err why = {.code = EXIT_OK};
    ptx_needs needs = {0};
    ptx_compiler *c = ptx_compiler_new(LINT_CAPABILITY, &why);
    if (c && lint_measure_ptx(c, u, name, math, &needs, settings.code ? &out->code : NULL, &why))
        out->registers = needs.registers, out->spill_bytes = needs.spill_bytes;
    ptx_compiler_free(c);
    if (why.code == EXIT_OK || !settings.code)
        return true;
    *e = why;
    return false;
}

/* As case i, or as an earlier one of the same kernel. */
static bool find_case_needs(library *lib, const case_list *cases, size_t i, profile_set *s,
                            err *e) {
    const kernel *k = cases->items[i].kernel;
    for (size_t before = 0; before < i && !settings.code; before++)
        if (cases->items[before].kernel == k) {
            s->items[i].registers = s->items[before].registers;
            s->items[i].spill_bytes = s->items[before].spill_bytes;
            return true;
        }
    const msl_unit *u = library_find_unit(lib, k->file, e);
    return u &&
           find_needs(u, k->name, device_get_facts(library_get_device(lib))->math, &s->items[i], e);
}

static const device_facts counting_device = {
    .kind = DEVICE_SOFT, .name = "software", .offers = FEATURE_MATRICES};

static bool count_cases(const char *folder, const case_list *cases, profile_set *out, err *e) {
    const device_options how = {.counts = (uint32_t)settings.sample};
    device *d = device_open_with("soft", &how, e);
    library *lib = d ? library_new(d, folder, e) : NULL;
    bool ok = lib != NULL;
    out->items = array_new(cases->count, sizeof *out->items);
    out->count = cases->count;
    for (size_t i = 0; ok && i < cases->count; i++) {
        kernel_case c = cases->items[i];
        ok = count_case(lib, &c, &out->items[i], e) && find_case_needs(lib, cases, i, out, e);
    }
    library_free(lib);
    device_close(d);
    return ok;
}

/* Largest first. */
static int compare_cases(const void *a, const void *b) {
    const kernel_case *x = a, *y = b;
    double n = shape_count_values(&x->shape), m = shape_count_values(&y->shape);
    return n != m ? (n > m ? -1 : 1) : strcmp(x->name, y->name);
}

/* Of the cases of each kernel: `each`, from the largest to the middle one. */
static void keep_some(case_list *l, size_t each) {
    const double most = 1 << 26; /* unless it is the only one */
    size_t kept = 0;
    for (size_t i = 0, end; i < l->count; i = end) {
        kernel_case *of = array_new(l->count - i, sizeof *of);
        size_t n = 0, taken = 0;
        for (end = i; end < l->count && l->items[end].kernel == l->items[i].kernel; end++) {
            const kernel_case *c = &l->items[end];
            const bool is_only = end == i && (end + 1 == l->count || c[1].kernel != c->kernel);
            if (op_takes(c->op, c->kernel, &c->shape, NULL) &&
                (is_only || shape_count_values(&c->shape) <= most))
                of[n++] = *c;
        }
        qsort(of, n, sizeof *of, compare_cases);
        for (; taken < each && taken < n; taken++)
            l->items[kept++] = of[each > 1 && n > each ? taken * (n / 2) / (each - 1) : taken];
        free(of);
    }
    l->count = kept;
}

static bool find_cases(const char *const *names, size_t count, const device_facts *facts,
                       case_list *out, err *e) {
    case_query query = {.filters = names,
                        .filter_count = count,
                        .shapes = settings.shapes,
                        .input = settings.input ? settings.input : "normal",
                        .axes = settings.axes,
                        .seed = settings.seed};
    if (!cases_find(&query, out, e))
        return false;
    if (!settings.shapes)
        keep_some(out, (size_t)settings.each);
    if (cases_keep_offered(out, facts, e))
        return true;
    cases_free(out);
    return false;
}

/* Every launch once, in this process: whoever watches it sees one kernel for each line printed. A case that
 * cannot be played is said and left out. Only kernels that the software device can count are played. */
static bool play_case(library *lib, const kernel_case *listed, const char *commit, err *e) {
    kernel_case c = *listed;
    play_times times;
    char made_of[MADE_OF] = "";
    bool ok = case_open(&c, lib, settings.seed, e) &&
              tape_play(c.tape, PLAY_LAUNCHES, &times, NULL, e) &&
              made_of_add_tape(made_of, c.tape, c.op, e);
    for (size_t k = 0; ok && k < c.tape->count; k++)
        printf("%s,%zu,%s,%s,%s\n", c.name, k, c.tape->launches[k].pipeline->kernel, commit,
               made_of);
    case_close(&c);
    return ok;
}

static bool play_cases(const char *const *names, size_t count, err *e) {
    case_list cases = {NULL, 0};
    device *d = device_open(settings.device, e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    bool ok = lib && find_cases(names, count, &counting_device, &cases, e) &&
              cases_keep_offered(&cases, device_get_facts(d), e);
    char commit[64];
    size_t failed = 0;
    host_get_commit(commit, sizeof commit);
    if (ok)
        puts("case,launch,kernel,commit,made_of");
    for (size_t i = 0; ok && i < cases.count; i++) {
        err why = {.code = EXIT_OK};
        if (!play_case(lib, &cases.items[i], commit, &why)) {
            fprintf(stderr, "%s: %s\n", cases.items[i].name, why.text);
            failed++;
        }
    }
    if (failed > 0)
        ok = err_set(e, EXIT_CANNOT, "%zu of %zu cases were not played", failed, cases.count);
    cases_free(&cases);
    library_free(lib);
    device_close(d);
    return ok;
}

/* One launch, and a token ---------------------------------------------------------------------- */

typedef struct {
    const launch_request *request;
    profile *profile;
} counted_launch;

/* Function constants are 1 for ptxas: those of a launch may be others. */
static bool use_launch(void *context, tape *t, err *e) {
    const counted_launch *c = context;
    const launch_request *r = c->request;
    if (!profile_play(t, choose_one, c->profile, e))
        return false;
    if (r->launch.constant_count > 0)
        return !settings.code ||
               err_set(e, EXIT_USAGE, "--code does not take --constant: give the value as a macro");
    const msl_extras given = {r->folders, r->macros, r->folder_count, r->macro_count, 0, false};
    const msl_extras extras = device_complete_extras(library_get_device(t->lib), &given);
    msl_unit *u = msl_load_with(r->file, &extras, e);
    bool ok = u && find_needs(u, r->kernel, t->launches[0].pipeline->math, c->profile, e);
    msl_free(u);
    return ok;
}

static bool count_launch(const char *const *given, size_t count, profile_set *out, err *e) {
    static launch_request r;
    const char *names[3] = {given[0], count > 1 ? given[1] : NULL, NULL};
    if (settings.launch.args_file && count <= 2 &&
        !launch_options_read_file(&settings.launch, options, sizeof options / sizeof *options,
                                  names, &count, e))
        return false;
    r = (launch_request){
        .device = "soft", .seed = settings.seed, .counts = (uint32_t)settings.sample};
    profile *p = ARRAY_ADD(out->items, out->count, out->room);
    *p = (profile){.lines = NULL};
    if (!launch_options_read(&settings.launch, names, count, "profile", &r, e))
        return false;
    snprintf(p->name, sizeof p->name, "%s:%s", path_get_name(names[0]), names[1]);
    return launch_with(&r, use_launch, &(counted_launch){&r, p}, e);
}

static profile *choose_kernel(void *context, const launch *l) {
    profile_set *s = context;
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].kernel, l->pipeline->kernel) == 0)
            return &s->items[i];
    profile *p = ARRAY_ADD(s->items, s->count, s->room);
    *p = (profile){.lines = NULL};
    snprintf(p->name, sizeof p->name, "%s", l->pipeline->kernel);
    return p;
}

static bool count_token(profile_set *out, err *e) {
    open_model m = {.file = NULL};
    const model_options o = {.context = (uint32_t)settings.depth + 2};
    bool ok = open_model_file(&m, settings.model, e) &&
              (m.device = device_open_with("soft", &(device_options){.counts = 1}, e)) &&
              (m.lib = library_new(m.device, NULL, e)) && open_model_on(&m, "soft", &o, e);
    uint32_t *tokens = array_new(settings.depth + 1, sizeof *tokens);
    const uint32_t vocab = ok ? model_get_shape(m.model)->vocab : 0;
    float *logits = array_new(vocab + 1, sizeof *logits);
    for (size_t i = 0; ok && i <= settings.depth; i++)
        tokens[i] = (uint32_t)((i * 7919 + settings.seed * 31) % vocab);
    tape *t = NULL;
    ok = ok && model_forward_prompt(m.model, tokens, settings.depth, PLAY_WHOLE, logits, NULL, e) &&
         model_place(m.model, tokens[settings.depth], e) &&
         (t = model_get_token_tape(m.model, true, e)) && profile_play(t, choose_kernel, out, e);
    free(tokens);
    free(logits);
    open_model_close(&m);
    return ok;
}

static void compare_gated(gate *g, const double was[PROFILE_GATED], const profile *p) {
    double now[PROFILE_GATED];
    profile_get_gated(p, now);
    for (int i = 0; i < PROFILE_GATED; i++)
        gate_compare(g, p->name, profile_gated[i], was[i], now[i]);
    g->compared++;
}

static exit_code check_baseline(const case_list *cases, const profile_set *s, err *e) {
    gate g = {.baseline = settings.baseline, .threshold = settings.threshold};
    profile_set old = {.items = NULL};
    csv_file *f = NULL;
    bool is_folder = os_is_folder(settings.baseline), is_other_cpu = false;
    if (is_folder && !cases)
        return err_code(e, EXIT_USAGE, "--baseline takes a folder for cases of the registry alone");
    bool ok = is_folder ? count_cases(settings.baseline, cases, &old, e)
                        : (f = csv_read(settings.baseline, e)) != NULL;
    for (size_t i = 0; ok && i < s->count; i++) {
        double was[PROFILE_GATED];
        bool found = is_folder;
        if (is_folder)
            profile_get_gated(&old.items[i], was);
        else
            ok = profile_read_gated(f, s->items[i].name, was, &found, &is_other_cpu, e);
        if (ok && found)
            compare_gated(&g, was, &s->items[i]);
    }
    if (ok && is_other_cpu)
        printf("Instructions are not compared: %s was counted on another CPU than %s.\n",
               settings.baseline, profile_get_cpu());
    csv_file_free(f);
    profile_set_free(&old);
    return ok ? gate_end(&g, "cases", e) : e->code;
}

static bool print_all(profile_set *s, err *e) {
    profile_gpu g;
    if (!profile_find_gpu(&g, e))
        return false;
    if (settings.json)
        profile_print_json(s, &g, settings.seed);
    else if (settings.compare) {
        if (s->count != 2)
            return err_set(e, EXIT_USAGE, "--compare takes two cases, and these are %zu", s->count);
        profile_print_pair(&s->items[0], &s->items[1], &g);
    } else {
        for (size_t i = 0; i < s->count; i++)
            profile_print(&s->items[i], &g, (size_t)settings.top, settings.annotate);
    }
    return (!settings.csv || profile_write_csv(s, &g, settings.csv, e)) && verb_flush(e);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    profile_set s = {.items = NULL};
    case_list cases = {NULL, 0};
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.0f", ceil(settings.timeout_s));
    if (settings.timeout_s > 0)
        setenv("ASSAY_COUNT_SECONDS", seconds, 1);
    if (settings.play)
        return play_cases(names, count, e) && verb_flush(e) ? EXIT_OK : e->code;
    if (settings.model && (count > 0 || settings.sample > 1))
        return err_code(e, EXIT_USAGE, "--model takes neither names nor --sample");
    bool is_launch = settings.launch.args_file || (count > 0 && path_ends_with(names[0], ".metal"));
    if (settings.agx && (settings.model || is_launch))
        return err_code(e, EXIT_USAGE, "--agx takes kernels of ours; lint --agx takes files");
    if (settings.agx) {
        const agx_case_settings how = {settings.csv,      settings.baseline, settings.threshold,
                                       settings.annotate, settings.code,     (size_t)settings.top};
        exit_code code = find_cases(names, count, &counting_device, &cases, e)
                             ? agx_print_cases(&cases, &how, e)
                             : e->code;
        cases_free(&cases);
        return code;
    }
    bool ok = settings.model ? count_token(&s, e)
              : is_launch    ? count_launch(names, count, &s, e)
                             : find_cases(names, count, &counting_device, &cases, e) &&
                                count_cases(NULL, &cases, &s, e);
    ok = ok && print_all(&s, e);
    exit_code code = !ok                 ? e->code
                     : settings.baseline ? check_baseline(cases.items ? &cases : NULL, &s, e)
                                         : EXIT_OK;
    profile_set_free(&s);
    cases_free(&cases);
    return code;
}

VERB(
    verb_profile, "profile", run_verb, .names = "[FILTER...] | FILE.metal KERNEL",
    .about = "why a kernel is slow: memory accesses and work counted for each line, without a GPU",
    .notes =
        "Runs cases, a launch as `assay launch` takes it, or one token of a model on the software\n"
        "device and counts every access of every lane: 32-byte sectors, bytes that are loaded\n"
        "again, bank conflicts, idle lanes, instructions. Counts are exact and the same on every\n"
        "machine. docs/profile.md says what each number means.\n",
    VERB_OPTIONS(options), .math = "fast", .runs_ops = true);
