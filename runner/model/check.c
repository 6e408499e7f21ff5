#include "check.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "runner/generate/sampler.h"

typedef struct {
    model *model;
    const gguf *file;
    const model_check_options *options;
    model_report *report;
    uint32_t vocab;
    float *logits, *other; /* (vocab) */
    double *exact;         /* (vocab) */
    double worst;          /* of the launches of one play */
    char worst_kernel[128];
    size_t launches;
    nonfinite bad;       /* the first launch that wrote NaN or infinity */
    uint32_t checked[2]; /* the tokens that the checked plays chose after the prompt */
    double allowed;      /* the most of any token that went through the reference */
} inspection;

static void add_row(inspection *x, bool passed, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add_row(inspection *x, bool passed, const char *what, const char *format, ...) {
    assert(x->report->count < MODEL_CHECK_ROWS);
    check_row *row = &x->report->rows[x->report->count++];
    snprintf(row->what, sizeof row->what, "%s", what);
    row->passed = passed;
    x->report->passed &= passed;
    va_list args;
    va_start(args, format);
    vsnprintf(row->found, sizeof row->found, format, args);
    va_end(args);
}

/* --- launch by launch --- */

/* The smallest, because most of a cache was never written. */
static const binding *find_output(const launch *l) {
    const binding *found = NULL;
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (l->args[i].kind == BIND_BUFFER && (l->args[i].access & ACCESS_WRITE) &&
            (!found || l->args[i].at.bytes < found->at.bytes))
            found = &l->args[i];
    return found;
}

static void observe_launch(void *context, const check_step *step) {
    inspection *x = context;
    x->launches++;
    if (step->worst->margin > x->worst || !step->passed) {
        x->worst = step->worst->margin;
        snprintf(x->worst_kernel, sizeof x->worst_kernel, "%s", step->launch->pipeline->kernel);
    }
    err ignored;
    if (!x->bad.found && nonfinite_look(x->model, step->launch, &x->bad, &ignored) &&
        x->bad.found) {
        snprintf(x->bad.part, sizeof x->bad.part, "%s", step->part);
        x->bad.index = step->index;
        x->bad.count = step->count;
    }
    if (!x->options->observe)
        return;
    launch_report r = {.part = step->part,
                       .kernel = step->launch->pipeline->kernel,
                       .index = step->index,
                       .count = step->count,
                       .margin = step->worst->margin,
                       .passed = step->passed};
    const binding *b = find_output(step->launch);
    r.output = b->at.buffer->label;
    nonfinite_count(b, &r.values, &ignored);
    x->options->observe(x->options->context, &r);
}

static check_options begin_launches(inspection *x) {
    x->worst = 0;
    x->launches = 0;
    x->worst_kernel[0] = 0;
    return (check_options){.observe = observe_launch, .context = x};
}

static void end_launches(inspection *x, const char *what, const check_result *r) {
    if (r->verdict == CHECK_PASS)
        add_row(x, true, what, "%zu launches, largest error %.2f of the allowed (%.60s)",
                x->launches, x->worst, x->worst_kernel);
    else
        add_row(x, false, what, "%.150s", r->message);
}

static bool check_launches(inspection *x, err *e) {
    const model_check_options *o = x->options;
    check_result result;
    check_options how = begin_launches(x);
    model_rewind(x->model, 0);
    if (!model_debug_prompt(x->model, o->prompt, o->prompt_tokens, x->logits, &how, &result, e))
        return false;
    end_launches(x, "prefill, launch by launch", &result);
    if (result.verdict != CHECK_PASS)
        return true;
    x->checked[0] = sampler_find_largest(x->logits, x->vocab);
    how = begin_launches(x);
    if (!model_debug_token(x->model, x->checked[0], x->other, &how, &result, e))
        return false;
    end_launches(x, "decode, launch by launch", &result);
    x->checked[1] = sampler_find_largest(x->other, x->vocab);
    return true;
}

/* --- logits --- */

typedef struct {
    double relative; /* root mean square of the differences over that of the values */
    double largest;
    size_t bad_numbers;
} distance;

static distance measure(const float *got, const double *want, size_t count) {
    distance d = {0};
    double squares = 0, differences = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)got[i] - want[i];
        d.bad_numbers += isfinite(difference) ? 0 : 1;
        d.largest = fmax(d.largest, fabs(difference));
        squares += want[i] * want[i];
        differences += difference * difference;
    }
    d.relative = squares > 0 ? sqrt(differences / squares) : differences > 0 ? INFINITY : 0;
    return d;
}

static bool is_near(const distance *d, double tolerance) {
    return d->relative <= tolerance && d->bad_numbers == 0;
}

/* How far the logits of a token may be from the exact ones, relative to their root mean square: as
 * far as the errors that shake.h adds to the same pass move them. A weight in the wrong place gives
 * about 1. Keys and values near the middle between two halves may be rounded to either, by 2^-11 of
 * their size; which of the few does so is chance, hence a quarter of that in each layer. Leaves the
 * exact ones in x->exact. */
static double find_allowed(inspection *x, model_reference *exact, model_reference *shaken,
                           uint32_t token) {
    model_reference_step(shaken, token, x->exact);
    for (uint32_t i = 0; i < x->vocab; i++)
        x->other[i] = (float)x->exact[i];
    model_reference_step(exact, token, x->exact);
    distance d = measure(x->other, x->exact, x->vocab);
    if (strcmp(model_get_cache_name(x->model), "f16") == 0)
        d.relative += 0x1p-13 * sqrt((double)model_get_shape(x->model)->layers);
    x->allowed = fmax(x->allowed, d.relative);
    return d.relative;
}

/* The same at a position that the reference does not reach. Rotary angles are as large as the position,
 * and are rounded in proportion to it. */
static double get_tolerance(const inspection *x, size_t position) {
    return x->allowed * (64 + (double)position) / 64;
}

static bool compare_tokens(inspection *x, model_reference *exact, model_reference *shaken, size_t n,
                           err *e) {
    distance worst = {0};
    double allowed = 1;
    bool passed = true;
    model_rewind(x->model, 0);
    for (size_t i = 0; i < n; i++) {
        const uint32_t token = x->options->prompt[i];
        double here = find_allowed(x, exact, shaken, token);
        if (!model_forward_token(x->model, token, PLAY_WHOLE, x->logits, NULL, e))
            return false;
        distance d = measure(x->logits, x->exact, x->vocab);
        passed &= is_near(&d, here);
        if (!(d.relative / here <= worst.relative / allowed)) {
            worst = d;
            allowed = here;
        }
    }
    add_row(x, passed, "whole pass vs double precision",
            "%zu tokens, logits off by %.1e of their rms (allowed %.1e), largest %.1e", n,
            worst.relative, allowed, worst.largest);
    return true;
}

static bool check_reference(inspection *x, err *e) {
    const model_check_options *o = x->options;
    size_t n = o->reference_tokens < o->prompt_tokens ? o->reference_tokens : o->prompt_tokens;
    n = n > 0 ? n : 1; /* the other checks need to know what to allow */
    model_reference *exact = model_reference_new(x->model, n, false, e);
    model_reference *shaken = exact ? model_reference_new(x->model, n, true, e) : NULL;
    bool ok = shaken && compare_tokens(x, exact, shaken, n, e);
    model_reference_free(exact);
    model_reference_free(shaken);
    return ok;
}

/* --- depth --- */

enum { FIRST_POWER = 64, AROUND = 4 }; /* AROUND: power - 2 to power + 1 */

/* Tokens around a power of two: one by one, that at the power launch by launch, and then as a prompt;
 * the logits of the last must agree. */
static bool check_power(inspection *x, uint32_t power, check_result *result, distance *d, err *e) {
    const uint32_t start = power - 2, *ids = x->options->prompt,
                   from = model_get_position(x->model);
    check_options how = {.observe = observe_launch, .context = x};
    if (!model_forward_prompt(x->model, ids + from, start - from, PLAY_WHOLE, x->logits, NULL, e) ||
        !model_keep(x->model, e))
        return false;
    for (uint32_t i = start; i < start + AROUND && result->verdict == CHECK_PASS; i++)
        if (!(i == power ? model_debug_token(x->model, ids[i], x->other, &how, result, e)
                         : model_forward_token(x->model, ids[i], PLAY_WHOLE, x->other, NULL, e)))
            return false;
    if (result->verdict != CHECK_PASS)
        return true;
    for (uint32_t i = 0; i < x->vocab; i++)
        x->exact[i] = (double)x->other[i];
    model_rewind(x->model, start);
    if (!model_forward_prompt(x->model, ids + start, AROUND, PLAY_WHOLE, x->logits, NULL, e))
        return false;
    *d = measure(x->logits, x->exact, x->vocab);
    return true;
}

static bool check_depth(inspection *x, err *e) {
    static const char what[] = "positions around powers of two";
    check_result result = {.verdict = CHECK_PASS};
    uint32_t count = 0, worst_at = 0;
    double worst = 0;
    begin_launches(x);
    model_rewind(x->model, 0);
    for (uint32_t power = FIRST_POWER; power + 1 <= x->options->depth;
         power *= 2, count += AROUND) {
        distance d = {0};
        if (!check_power(x, power, &result, &d, e))
            return false;
        double margin = d.bad_numbers ? INFINITY : d.relative / (2 * get_tolerance(x, power));
        if (result.verdict != CHECK_PASS || !(margin <= worst)) {
            worst = margin;
            worst_at = power;
        }
        if (result.verdict != CHECK_PASS) {
            add_row(x, false, what, "at %u: %.140s", power, result.message);
            return true;
        }
    }
    if (count > 0)
        add_row(
            x, worst <= 1, what,
            "%u, also %zu launches; one by one or as a prompt, off by %.2f of the allowed at %u",
            count, x->launches, worst, worst_at);
    return true;
}

/* --- tokens --- */

/* By how much the best logit is above the second, relative to the logits' rms. */
static double get_lead(const float *logits, uint32_t count) {
    uint32_t best = sampler_find_largest(logits, count);
    double squares = 0, second = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        squares += (double)logits[i] * (double)logits[i];
        if (i != best)
            second = fmax(second, (double)logits[i]);
    }
    return ((double)logits[best] - second) / sqrt(squares / count);
}

/* Decodes `count` tokens after `first`. leads (may be NULL) say how clear each choice was. */
static bool decode_by_logits(inspection *x, uint32_t first, size_t count, play_mode mode,
                             uint32_t *tokens, double *leads, err *e) {
    for (size_t i = 0; i < count; i++) {
        if (!model_forward_token(x->model, i ? tokens[i - 1] : first, mode, x->other, NULL, e))
            return false;
        tokens[i] = sampler_find_largest(x->other, x->vocab);
        if (leads)
            leads[i] = get_lead(x->other, x->vocab);
    }
    return true;
}

static size_t find_difference(const uint32_t *a, const uint32_t *b, size_t count) {
    size_t i = 0;
    while (i < count && a[i] == b[i])
        i++;
    return i;
}

/* Two ways to the same place: the logits of the prompt, and the tokens that follow. The tokens may
 * differ where two logits are closer to each other than the two ways are. Leaves the prompt's logits
 * in x->logits and the state as prefill left it. */
static bool check_prefill(inspection *x, uint32_t *tokens, uint32_t *again, double *leads, err *e) {
    const model_check_options *o = x->options;
    size_t n = o->prompt_tokens;
    double tolerance = 2 * get_tolerance(x, n);
    model_rewind(x->model, 0);
    for (size_t i = 0; i < n; i++)
        if (!model_forward_token(x->model, o->prompt[i], PLAY_WHOLE, x->other, NULL, e))
            return false;
    for (uint32_t i = 0; i < x->vocab; i++)
        x->exact[i] = (double)x->other[i];
    uint32_t first = sampler_find_largest(x->other, x->vocab);
    double first_lead = get_lead(x->other, x->vocab);
    if (!decode_by_logits(x, first, o->tokens, PLAY_WHOLE, tokens, leads, e))
        return false;
    model_rewind(x->model, 0);
    if (!model_forward_prompt(x->model, o->prompt, n, PLAY_WHOLE, x->logits, NULL, e) ||
        !model_keep(x->model, e))
        return false;
    distance d = measure(x->logits, x->exact, x->vocab);
    add_row(x, is_near(&d, tolerance), "prefill vs token by token",
            "%zu tokens, logits differ by %.1e of their rms (allowed %.1e), largest %.1e", n,
            d.relative, tolerance, d.largest);
    uint32_t first_again = sampler_find_largest(x->logits, x->vocab);
    if (!decode_by_logits(x, first_again, o->tokens, PLAY_WHOLE, again, NULL, e))
        return false;
    size_t same = first == first_again ? 1 + find_difference(tokens, again, o->tokens) : 0;
    double lead = same == 0 ? first_lead : same <= o->tokens ? leads[same - 1] : INFINITY;
    if (same > o->tokens)
        add_row(x, true, "greedy tokens after both", "%zu tokens, identical", same);
    else
        add_row(x, lead <= tolerance, "greedy tokens after both",
                "first differ at token %zu, where the best logit leads by %.1e of the rms", same,
                lead);
    model_rewind(x->model, (uint32_t)n);
    return true;
}

static bool append(void *context, uint32_t token) {
    uint32_t **next = context;
    *(*next)++ = token;
    return true;
}

static bool decode_in_flight(inspection *x, uint32_t first, size_t count, uint32_t *tokens,
                             err *e) {
    enum { DEPTH = 3 };
    return model_decode_greedy(x->model, first, count, DEPTH, append, &tokens, e);
}

/* The same tokens from the same prompt, whichever way the tape is played: bit for bit. */
static bool check_plays(inspection *x, uint32_t *tokens, uint32_t *again, err *e) {
    static const struct {
        const char *name;
        play_mode mode;
    } ways[] = {
        {"by layer", PLAY_MARKS}, {"by launch", PLAY_LAUNCHES}, {"on the device", PLAY_WHOLE}};
    enum { WAYS = sizeof ways / sizeof *ways };
    static const char what[] = "greedy tokens, five ways to play";
    const model_check_options *o = x->options;
    uint32_t first = sampler_find_largest(x->logits, x->vocab), start = (uint32_t)o->prompt_tokens;
    model_rewind(x->model, start);
    if (!decode_by_logits(x, first, o->tokens, PLAY_WHOLE, tokens, NULL, e))
        return false;
    if (first != x->checked[0] || tokens[0] != x->checked[1]) {
        add_row(x, false, what,
                "played whole the tokens are %u %u, but checked launch by launch %u %u", first,
                tokens[0], x->checked[0], x->checked[1]);
        return true;
    }
    for (size_t i = 0; i < WAYS; i++) {
        model_rewind(x->model, start);
        if (!(i + 1 < WAYS ? decode_by_logits(x, first, o->tokens, ways[i].mode, again, NULL, e)
                           : decode_in_flight(x, first, o->tokens, again, e)))
            return false;
        size_t same = find_difference(tokens, again, o->tokens);
        if (same < o->tokens) {
            add_row(x, false, what, "token %zu is %u played whole, but %u %s", same, tokens[same],
                    again[same], ways[i].name);
            return true;
        }
    }
    add_row(x, true, what,
            "%zu tokens, identical: whole, checked, by layer, by launch, chosen on the device",
            o->tokens);
    return true;
}

static bool check_tokens(inspection *x, err *e) {
    size_t n = x->options->tokens;
    uint32_t *tokens = array_new(2 * n + 1, sizeof *tokens);
    double *leads = array_new(n + 1, sizeof *leads);
    bool ok =
        check_prefill(x, tokens, tokens + n, leads, e) && check_plays(x, tokens, tokens + n, e);
    free(tokens);
    free(leads);
    return ok;
}

/* Where something is not finite the rest says nothing: every comparison would fail. */
static bool check_finite(inspection *x) {
    err why;
    bool are_weights_finite = nonfinite_scan(x->file, &why);
    if (!are_weights_finite)
        add_row(x, false, "weights are finite", "%.159s", why.text);
    if (x->bad.found) {
        char text[160];
        nonfinite_print(&x->bad, text, sizeof text);
        add_row(x, false, "values are finite", "%s", text);
    }
    return are_weights_finite && !x->bad.found;
}

bool model_check(model *m, const model_check_options *o, model_report *out, err *e) {
    uint32_t vocab = model_get_shape(m)->vocab;
    inspection x = {
        .model = m, .file = model_get_file(m), .options = o, .report = out, .vocab = vocab};
    *out = (model_report){.passed = true};
    x.logits = array_new(vocab, sizeof *x.logits);
    x.other = array_new(vocab, sizeof *x.other); /* a check that fails leaves it so */
    x.exact = array_new(vocab, sizeof *x.exact);
    bool ok = check_launches(&x, e) &&
              (!check_finite(&x) ||
               (check_reference(&x, e) && check_tokens(&x, e) && check_depth(&x, e)));
    free(x.logits);
    free(x.other);
    free(x.exact);
    return ok;
}
