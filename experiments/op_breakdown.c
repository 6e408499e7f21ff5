/* op_breakdown: the token as one command buffer, whose wall time is what must be explained; all
 * launches of one op in a command buffer of their own, op by op; each launch in one of its own;
 * and, where the GPU has counters, each launch timed in place, inside the token's one command
 * buffer: what their sum leaves of the GPU time is the gaps between launches. What is missing may
 * be negative: then the parts were slower by themselves than together.
 *
 * The ops of a layer are told apart by kernel, input and output, because one kernel does several of
 * them. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/array.h"
#include "harness/base/format.h"
#include "kernels/kernels.h"

EXPERIMENT(
    op_breakdown, .order = 90,
    .question = "Where does the time of a token go: kernels, launches, idle?",
    .claim = "none that adds up was published",
    .finding = "A token takes {token_us} µs: kernels {kernels_pct} %, launches {launches_pct} %, "
               "idle {idle_pct} %{missing_pct|overlap}",
    .how = "kernels: GPU time of all launches of an op in one command buffer, minus as many empty "
           "launches; launches: that many empty ones in a chain; idle: wall minus GPU time of the "
           "whole token; missing: the rest; all interleaved",
    .has_model = true);

enum { MOST_OPS = 64, EMPTIES = 3, SAMPLED = 4, WAYS = 5 };

/* How launches are timed: each in its own command buffer, or in place. */
enum { ALONE, IN_PLACE, TIMINGS };
static const play_mode modes[TIMINGS] = {PLAY_LAUNCHES, PLAY_SAMPLED};

typedef struct {
    char name[160];
    tape *tape;                 /* all its launches */
    timing_sample *samples;     /* of a token, together */
    double *launch_ns[TIMINGS]; /* of the GPU, of its launches, summed */
    uint64_t bytes;
} part;

typedef struct {
    lab_decoder decoder;
    tape *token;
    part parts[MOST_OPS];
    size_t count;
    size_t *part_of; /* (launches) */
    play_times *each;
    size_t grouped, taken[TIMINGS], room; /* samples; room for them */
    bool samples_overlap;
    buffer *counter;
    tape *empties; /* as many empty launches as the token has */
} breakdown;

static bool split(breakdown *b, err *e) {
    b->part_of = array_new(b->token->count, sizeof *b->part_of);
    b->each = array_new(b->token->count, sizeof *b->each);
    for (size_t i = 0; i < b->token->count; i++) {
        const launch *l = &b->token->launches[i];
        char name[160];
        lab_name_launch(l, name, sizeof name);
        size_t p = 0;
        while (p < b->count && strcmp(b->parts[p].name, name) != 0)
            p++;
        if (p == MOST_OPS)
            return err_set(e, EXIT_CANNOT, "a token of this model has more than %d ops", MOST_OPS);
        if (p == b->count) {
            snprintf(b->parts[p].name, sizeof b->parts[p].name, "%s", name);
            b->parts[p].tape = tape_new(b->token->lib);
            b->count++;
        }
        launch *copy = tape_add_pipeline(b->parts[p].tape, l->pipeline);
        *copy = *l;
        b->parts[p].bytes += l->bytes;
        b->part_of[i] = p;
    }
    return true;
}

static bool place(breakdown *b, err *e) {
    lab_rewind_decoder(&b->decoder);
    return model_place(b->decoder.model, b->decoder.token, e);
}

static void make_room(breakdown *b, size_t needed) {
    if (needed < b->room)
        return;
    b->room = 2 * b->room + 64;
    for (size_t p = 0; p < b->count; p++) {
        b->parts[p].samples = realloc(b->parts[p].samples, b->room * sizeof(timing_sample));
        assert(b->parts[p].samples);
        for (int i = 0; i < TIMINGS; i++) {
            b->parts[p].launch_ns[i] = realloc(b->parts[p].launch_ns[i], b->room * sizeof(double));
            assert(b->parts[p].launch_ns[i]);
        }
    }
}

/* Run like this the ops do not compute the token, but they read and write the same amounts. */
static bool take_grouped(void *context, timing_sample *out, err *e) {
    breakdown *b = context;
    play_times sum = {0}, t;
    if (!place(b, e))
        return false;
    make_room(b, b->grouped);
    for (size_t p = 0; p < b->count; p++) {
        if (!tape_play(b->parts[p].tape, PLAY_WHOLE, &t, NULL, e))
            return false;
        b->parts[p].samples[b->grouped] = lab_get_sample(&t, t.wall_ns);
        play_times_add(&sum, &t);
    }
    b->grouped++;
    *out = lab_get_sample(&sum, sum.wall_ns);
    return true;
}

static bool take_launches(breakdown *b, int timing, timing_sample *out, err *e) {
    size_t at = b->taken[timing];
    play_times t;
    make_room(b, at);
    if (!place(b, e) || !tape_play(b->token, modes[timing], &t, b->each, e))
        return false;
    b->samples_overlap |= t.samples_overlap;
    for (size_t p = 0; p < b->count; p++)
        b->parts[p].launch_ns[timing][at] = 0;
    for (size_t i = 0; i < b->token->count; i++)
        b->parts[b->part_of[i]].launch_ns[timing][at] += (double)b->each[i].gpu_ns;
    b->taken[timing]++;
    *out = lab_get_sample(&t, t.wall_ns);
    return true;
}

static bool take_alone(void *context, timing_sample *out, err *e) {
    breakdown *b = context;
    uint32_t next;
    if (!take_launches(b, ALONE, out, e))
        return false;
    /* The same launches one by one must choose the same token: checked once, untimed. */
    if (b->taken[ALONE] > 1)
        return true;
    lab_rewind_decoder(&b->decoder);
    return model_forward_greedy(b->decoder.model, b->decoder.token, PLAY_LAUNCHES, &next, NULL,
                                e) &&
           lab_check_next(&b->decoder, next, "launch by launch", e);
}

/* Where the device cannot sample, tape_play would time each launch alone: the case is left out. */
static bool take_sampled(void *context, timing_sample *out, err *e) {
    return take_launches(context, IN_PLACE, out, e);
}

static bool make_empties(breakdown *b, lab *l, err *e) {
    device *d = library_get_device(lab_get_library(l));
    bool ok = (b->counter = device_new_buffer(d, 4, STORAGE_SHARED, "counter", e)) &&
              buffer_fill_pattern(b->counter, 0, 4, 0, e);
    b->empties = tape_new(lab_get_library(l));
    for (size_t i = 0; ok && i < b->token->count; i++)
        ok = dispatch_overhead_noop_record(b->empties, &dispatch_overhead_noop_op.kernels[0],
                                           slice_whole(b->counter), e);
    return ok;
}

/* Rows: one per op, then the parts that are not kernels. */
static void put_rows(breakdown *b, lab *l, sheet *s, measurement *cases, size_t count) {
    static const char *const kinds[WAYS] = {"token", "ops", "launches_alone", "empty_launches",
                                            "launches_sampled"};
    if (b->samples_overlap)
        cases[SAMPLED].result.labels |= LABEL_OVERLAP;
    for (size_t p = 0; p < b->count; p++) {
        measurement c = {.result = {.samples = b->parts[p].samples,
                                    .count = b->grouped,
                                    .stop = cases[1].result.stop}};
        snprintf(c.key, sizeof c.key, "op/%s", b->parts[p].name);
        sheet_add_row(s);
        sheet_put_text(s, "kind", "op");
        sheet_put_text(s, "op", b->parts[p].name);
        sheet_put(s, "launches", (double)b->parts[p].tape->count);
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "alone_ns",
                  stats_compute(b->parts[p].launch_ns[ALONE], b->taken[ALONE]).median);
        if (b->taken[IN_PLACE] > 0)
            sheet_put(s, "sampled_ns",
                      stats_compute(b->parts[p].launch_ns[IN_PLACE], b->taken[IN_PLACE]).median);
        sheet_put(s, "bytes", (double)b->parts[p].bytes);
        lab_put(l, s, &c);
    }
    for (size_t i = 0; i < count; i++) {
        sheet_add_row(s);
        sheet_put_text(s, "kind", kinds[i]);
        sheet_put_text(s, "op", kinds[i]);
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "launches", (double)b->token->count);
        lab_put(l, s, &cases[i]);
    }
}

static void close_breakdown(breakdown *b) {
    for (size_t p = 0; p < b->count; p++) {
        tape_free(b->parts[p].tape);
        free(b->parts[p].samples);
        for (int i = 0; i < TIMINGS; i++)
            free(b->parts[p].launch_ns[i]);
    }
    free(b->part_of);
    free(b->each);
    tape_free(b->empties);
    buffer_free(b->counter);
    lab_close_decoder(&b->decoder);
    free(b);
}

static bool run(lab *l, sheet *s, err *e) {
    breakdown *b = array_new(1, sizeof *b);
    model_options o = {.context = 64};
    measurement cases[WAYS] = {
        {.key = "token", .source = {lab_take_token, &b->decoder}, .samples = 5},
        {.key = "ops", .source = {take_grouped, b}},
        {.key = "launches alone", .source = {take_alone, b}},
        {.key = "empty launches", .regime = TIMING_SINGLE},
        {.key = "launches sampled", .source = {take_sampled, b}}};
    size_t count = device_can_sample(library_get_device(lab_get_library(l))) ? WAYS : SAMPLED;
    bool ok = lab_open_decoder(l, &o, 0, &b->decoder, e) &&
              (b->token = model_get_token_tape(b->decoder.model, true, e)) && split(b, e) &&
              make_empties(b, l, e);
    cases[EMPTIES].tape = b->empties;
    ok = ok && lab_time(l, cases, count, e);
    if (ok)
        put_rows(b, l, s, cases, count);
    lab_close_cases(cases, count);
    close_breakdown(b);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static void add_summary(sheet *s, const char *kind, double ns, double token, double *at, int rank) {
    sheet_add_row(s);
    sheet_put_text(s, "case", kind);
    sheet_put_text(s, "message", "not timed: computed from the other rows");
    sheet_put_text(s, "kind", kind);
    sheet_put_text(s, "op", kind);
    sheet_put(s, "rank", rank);
    sheet_put(s, "part_ns", ns);
    sheet_put(s, "share_pct", 100 * ns / token);
    sheet_put(s, "start_ns", *at);
    sheet_put(s, "end_ns", *at += ns);
}

/* Ops from the longest to the shortest, end to end. */
static void stack_ops(sheet *s, double launch_ns, double token, double *at, double *kernels,
                      size_t *longest, int *rank) {
    for (;;) {
        size_t best = SIZE_MAX;
        double most = -1;
        for (size_t r = 0; r < sheet_count_rows(s); r++) {
            if (!sheet_is(s, r, "kind", "op", "share_pct", "", NULL))
                continue;
            double ns = sheet_get(s, r, "gpu_ns") - launch_ns * sheet_get(s, r, "launches");
            ns = ns > 0 ? ns : 0;
            if (ns > most) {
                most = ns;
                best = r;
            }
        }
        if (best == SIZE_MAX)
            return;
        if (*longest == SIZE_MAX)
            *longest = best;
        sheet_put_at(s, best, "rank", ++*rank);
        sheet_put_at(s, best, "part_ns", most);
        sheet_put_at(s, best, "share_pct", 100 * most / token);
        sheet_put_at(s, best, "start_ns", *at);
        sheet_put_at(s, best, "end_ns", *at += most);
        *kernels += most;
    }
}

/* A possible reason: labels say whether the machine was busy. */
static void conclude_missing(sheet *s, double off_pct) {
    size_t row = sheet_find_row(s, "kind", "token", NULL);
    bool was_busy = strstr(sheet_get_text(s, row, "labels"), "busy") != NULL;
    if (off_pct > 0)
        sheet_conclude(s, "They do not add up: %.3g %% of the token is unaccounted for: %s.",
                       off_pct,
                       was_busy ? "the machine was busy with other work"
                                : "it is lost only when ops alternate");
    else
        sheet_conclude(
            s, "They do not add up: op by op the parts take %.3g %% more than the token: %s.",
            -off_pct,
            was_busy ? "the machine was busy with other work"
                     : "in a whole token, launches overlap and ops find each other's data in the "
                       "caches");
}

/* The gaps between launches as the GPU's own counters show them. */
static void conclude_sampled(sheet *s, double gpu) {
    double sum = 0, played = sheet_find(s, "gpu_ns", "kind", "launches_sampled", NULL);
    char kernels[24], gaps[24];
    if (!(played > 0))
        return;
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_is(s, r, "kind", "op", NULL))
            sum += sheet_get(s, r, "sampled_ns");
    sheet_add_metric(s, "sampled_kernels_us", 1e-3 * sum, "us");
    sheet_add_metric(s, "sampled_over_token", played / gpu, "x");
    if (sum > played)
        sheet_conclude(
            s,
            "Timed in place by the GPU's counters, the launches sum to %s, more than the "
            "%s from the first to the last: they overlap.",
            format_time(sum, kernels, sizeof kernels), format_time(played, gaps, sizeof gaps));
    else
        sheet_conclude(s,
                       "Timed in place by the GPU's counters, the launches take %s and the gaps "
                       "between them %s; being timed made the token %.3g times as long.",
                       format_time(sum, kernels, sizeof kernels),
                       format_time(played - sum, gaps, sizeof gaps), played / gpu);
}

static void conclude(sheet *s) {
    double token = sheet_find(s, "wall_ns", "kind", "token", NULL);
    double gpu = sheet_find(s, "gpu_ns", "kind", "token", NULL);
    double count = sheet_find(s, "launches", "kind", "token", NULL);
    double empties = sheet_find(s, "gpu_ns", "kind", "empty_launches", NULL);
    double alone = sheet_find(s, "gpu_ns", "kind", "launches_alone", NULL);
    double at = 0, kernels = 0;
    size_t longest = SIZE_MAX;
    int rank = 0;
    if (!(token > 0 && count > 0))
        return;
    stack_ops(s, empties / count, token, &at, &kernels, &longest, &rank);
    double idle = fmax(0, token - gpu), missing = token - kernels - empties - idle;
    add_summary(s, "launches", empties, token, &at, ++rank);
    add_summary(s, "idle", idle, token, &at, ++rank);
    add_summary(s, "missing", missing, token, &at, ++rank);
    double off = 100 * missing / token;
    char text[24];
    sheet_add_metric(s, "token_us", 1e-3 * token, "us");
    sheet_add_metric(s, "kernels_pct", 100 * kernels / token, "%");
    sheet_add_metric(s, "launches_pct", 100 * empties / token, "%");
    sheet_add_metric(s, "idle_pct", 100 * idle / token, "%");
    sheet_add_metric(s, "missing_pct", off, "%");
    sheet_add_metric(s, "alone_over_token", alone / gpu, "x");
    sheet_conclude(
        s,
        "A token takes %s: kernels %.3g %%, its %.0f launches %.3g %%, idle %.3g %%; the "
        "longest op is %s with %.3g %%.",
        format_time(token, text, sizeof text), 100 * kernels / token, count, 100 * empties / token,
        100 * idle / token, longest == SIZE_MAX ? "nothing" : sheet_get_text(s, longest, "op"),
        longest == SIZE_MAX ? 0 : sheet_get(s, longest, "share_pct"));
    if (fabs(off) <= 5)
        sheet_conclude(s,
                       "They add up to the token within %.2g %%; each launch in a command buffer "
                       "of its own takes %.3g times the GPU time.",
                       fabs(off), alone / gpu);
    else
        conclude_missing(s, off);
    conclude_sampled(s, gpu);
}
