/* cmd_profile: `assay profile`. Why a kernel is slow, line by line, counted exactly and without a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/measure/profile.h"
#include "output.h"
#include "verb.h"

static struct {
    const char *shapes, *input;
    axes_query axes;
    uint64_t seed, sample, top;
} settings = {.seed = 1, .sample = 1, .top = 10};

static const option options[] = {
    TEXT_OPTION("shape", &settings.shapes, "S,...", "only cases of these shapes, such as 576x576"),
    TEXT_OPTION("input", &settings.input, "D", "this input (default normal)"),
    AXES_OPTIONS(settings.axes),
    {"sample", OPTION_NUMBER, &settings.sample, "N",
     "count one threadgroup in N, and scale the counts (default 1: all)", 1, 1000000},
    {"top", OPTION_NUMBER, &settings.top, "N", "lines to list (default 10)", 1, 100000},
    SEED_OPTION(&settings.seed, "the inputs"),
};

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

static void print_profile(profile *p) {
    profile_sort(p);
    printf("%s\n", p->name);
    for (size_t i = 0; i <= p->count && i <= settings.top; i++) {
        const profile_line *l = i ? &p->lines[i - 1] : &p->sum;
        printf(
            "%-20s %5d  req %8llu sectors %8llu coalescing %5.1f%% stride %lld width %u instr %llu "
            "active %.1f%% "
            "flops %llu int %llu conv %llu spec %llu simd %llu bar %llu shared %llu conflicts "
            "%llu st %llu\n",
            l->file, l->line,
            (unsigned long long)(l->n[0][0][COUNT_TIMES] + l->n[0][1][COUNT_TIMES]),
            (unsigned long long)profile_sum_device(l, COUNT_SECTORS),
            100 * profile_get_coalescing(l), (long long)l->stride, l->width,
            (unsigned long long)l->instructions, 100 * profile_get_active(l),
            (unsigned long long)l->work[0], (unsigned long long)l->work[1],
            (unsigned long long)l->work[2], (unsigned long long)l->work[3],
            (unsigned long long)l->simd, (unsigned long long)l->barriers,
            (unsigned long long)profile_sum_shared(l, COUNT_TIMES),
            (unsigned long long)profile_sum_shared(l, COUNT_CONFLICTS),
            (unsigned long long)l->n[1][0][COUNT_TIMES]);
    }
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    case_query query = {.filters = names,
                        .filter_count = count,
                        .shapes = settings.shapes,
                        .input = settings.input ? settings.input : "normal",
                        .axes = settings.axes,
                        .seed = settings.seed};
    case_list cases;
    if (!cases_find(&query, &cases, e))
        return e->code;
    if (!settings.shapes)
        cases_keep_one(&cases);
    device *d = device_open_with("soft", &(device_options){.counts = (uint32_t)settings.sample}, e);
    library *lib = d ? library_new(d, NULL, e) : NULL;
    bool ok = lib && cases_keep_offered(&cases, device_get_facts(d), e);
    for (size_t i = 0; ok && i < cases.count; i++) {
        profile p = {.lines = NULL};
        ok = count_case(lib, &cases.items[i], &p, e);
        if (ok)
            print_profile(&p);
        profile_free(&p);
    }
    library_free(lib);
    device_close(d);
    cases_free(&cases);
    return ok && output_flush(e) ? EXIT_OK : e->code;
}

VERB(verb_profile, "profile", .names = "[FILTER...]",
     .about = "why a kernel is slow: memory accesses and work counted for each line, without a GPU",
     .notes = "Runs cases on the software device and counts every access of every lane.\n",
     VERB_OPTIONS(options), .math = "fast", .runs_ops = true);
