/* cmd_trace: `assay trace`. One decoded token as a timeline: every launch with its bytes, start, duration
 * and the gap before it, as JSON for Perfetto and as rows for the report.
 *
 * No device says when a launch starts. The durations are measured, launch by launch; starts follow from
 * laying the launches end to end, with the same gap before each, so that they take as long as the token
 * does. Both files say so in `how`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "experiments/lab.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/base/stats.h"
#include "harness/measure/freshness.h"
#include "kernels/kernels.h"
#include "kernels/ops.h"
#include "report.h"
#include "verb.h"

static struct {
    const char *device, *model, *out, *csv;
    uint64_t depth, seed;
} settings = {.depth = 32, .seed = 1};

static const option options[] = {
    LAB_MODEL_OPTION(&settings.model),
    {"d|depth", OPTION_NUMBER, &settings.depth, "N",
     "tokens of context before the one that is traced (default 32)", 1, 65536},
    TEXT_OPTION("out", &settings.out, "FILE.json", "the trace (default: to stdout)"),
    TEXT_OPTION("csv", &settings.csv, "FILE.csv",
                "the same as rows; as results/<device>/trace.csv it is drawn by `assay report`"),
    DEVICE_OPTION(&settings.device),
    SEED_OPTION(&settings.seed, "tokens"),
};

typedef struct {
    size_t launch;
    const char *part, *kernel;
    char op[160]; /* as op_breakdown tells the ops of a token apart */
    uint64_t bytes;
    double start_ns, duration_ns, gap_ns;
} event;

enum { TOKEN, EMPTY, SPAN, FIXED }; /* what is timed besides the launches, which follow */

typedef struct {
    lab *lab;
    lab_decoder decoder;
    tape *token, *empty;
    buffer *counter;
    play_times *each;
    double *samples; /* (FIXED + launches, plays), ns on the GPU's clock */
    size_t plays;
    bool is_sampled; /* in place, by the GPU's counters; otherwise each launch alone */
    double token_ns; /* of the whole token in one command buffer */
    char how[400];
    event *events;
} trace;

/* Measuring ----------------------------------------------------------------------------------- */

static bool open_trace(trace *t, err *e) {
    model_options o = {.context = settings.depth < 63 ? 64 : (uint32_t)settings.depth + 1};
    lab_options how = {settings.device, settings.model, LEVEL_QUICK, settings.seed};
    if (!(t->lab = lab_new(&how, e)))
        return false;
    library *lib = lab_get_library(t->lab);
    device *d = library_get_device(lib);
    t->is_sampled = device_can_sample(d);
    t->plays = lab_get_facts(t->lab)->emulated ? 3 : 21;
    t->empty = tape_new(lib);
    return lab_open_decoder(t->lab, &o, (uint32_t)settings.depth, &t->decoder, e) &&
           (t->token = model_get_token_tape(t->decoder.model, true, e)) &&
           (t->counter = device_new_buffer(d, 4, STORAGE_SHARED, "counter", e)) &&
           buffer_fill_pattern(t->counter, 0, 4, 0, e) &&
           dispatch_overhead_noop_record(t->empty, &dispatch_overhead_noop_op.kernels[0],
                                         slice_whole(t->counter), e);
}

static void close_trace(trace *t) {
    tape_free(t->empty);
    buffer_free(t->counter);
    lab_close_decoder(&t->decoder);
    lab_free(t->lab);
    free(t->each);
    free(t->samples);
    free(t->events);
}

/* The token, its launches and an empty launch, once each; `at` counts from 0. */
static bool play(trace *t, size_t at, err *e) {
    play_times whole, empty, sum;
    uint32_t next;
    lab_rewind_decoder(&t->decoder);
    if (!model_forward_greedy(t->decoder.model, t->decoder.token, PLAY_WHOLE, &next, &whole, e) ||
        !lab_check_next(&t->decoder, next, "a token", e))
        return false;
    lab_rewind_decoder(&t->decoder);
    if (!model_place(t->decoder.model, t->decoder.token, e) ||
        !tape_play(t->token, t->is_sampled ? PLAY_SAMPLED : PLAY_LAUNCHES, &sum, t->each, e) ||
        !tape_play(t->empty, PLAY_WHOLE, &empty, NULL, e))
        return false;
    t->is_sampled = t->is_sampled && sum.gpu_is_sampled;
    t->samples[TOKEN * t->plays + at] = (double)whole.gpu_ns;
    t->samples[EMPTY * t->plays + at] = (double)empty.gpu_ns;
    t->samples[SPAN * t->plays + at] = (double)sum.gpu_ns;
    for (size_t i = 0; i < t->token->count; i++)
        t->samples[(FIXED + i) * t->plays + at] = (double)t->each[i].gpu_ns;
    return true;
}

static double get_median(const trace *t, size_t row) {
    return stats_compute(t->samples + row * t->plays, t->plays).median;
}

/* Launches end to end, within the time that all of them took together. */
static void lay_out(trace *t) {
    size_t count = t->token->count;
    double empty = t->is_sampled ? 0 : get_median(t, EMPTY), sum = 0, at = 0;
    double span = get_median(t, t->is_sampled ? SPAN : TOKEN);
    t->token_ns = get_median(t, TOKEN);
    for (size_t i = 0; i < count; i++)
        sum += t->events[i].duration_ns = fmax(0, get_median(t, FIXED + i) - empty);
    double gap = count > 1 ? fmax(0, (span - sum) / (double)(count - 1)) : 0;
    for (size_t i = 0; i < count; i++) {
        event *v = &t->events[i];
        const launch *l = &t->token->launches[i];
        lab_name_launch(l, v->op, sizeof v->op);
        v->launch = i;
        v->part = tape_get_part(t->token, i);
        v->kernel = l->pipeline->kernel;
        v->bytes = l->bytes;
        v->gap_ns = i ? gap : 0;
        v->start_ns = at += v->gap_ns;
        at += v->duration_ns;
    }
    snprintf(t->how, sizeof t->how, "%s; %s",
             t->is_sampled ? "each launch timed in place by the GPU's counters"
                           : "each launch timed alone, in a command buffer of its own, less the "
                             "time of an empty launch",
             gap > 0 ? "gaps are equal shares of what the launches leave of the token's GPU time"
                     : "timed like this the launches take longer than the token, so that no time "
                       "is left for gaps");
}

static bool measure(trace *t, err *e) {
    size_t count = t->token->count;
    t->each = array_new(count, sizeof *t->each);
    t->samples = array_new((FIXED + count) * t->plays, sizeof *t->samples);
    t->events = array_new(count, sizeof *t->events);
    bool ok = play(t, 0, e); /* to warm up */
    for (size_t i = 0; ok && i < t->plays; i++)
        ok = play(t, i, e);
    if (ok)
        lay_out(t);
    return ok;
}

/* Files --------------------------------------------------------------------------------------- */

static const field fields[] = {
    FIELD(event, launch, FIELD_COUNT, "launch"),
    FIELD(event, part, FIELD_TEXT, "part"),
    FIELD(event, op, FIELD_CHARS, "op"),
    FIELD(event, kernel, FIELD_TEXT, "kernel"),
    FIELD(event, bytes, FIELD_COUNT, "bytes"),
    FIELD(event, start_ns, FIELD_REAL, "start_ns"),
    FIELD(event, duration_ns, FIELD_REAL, "duration_ns"),
    FIELD(event, gap_ns, FIELD_REAL, "gap_ns"),
};

/* What Chrome's format asks for. */
static void open_event(json *j, const char *kind, const char *name) {
    json_open(j, NULL, '{');
    json_add_text(j, "ph", kind);
    json_add_count(j, "pid", 1);
    json_add_count(j, "tid", 1);
    json_add_text(j, "name", name);
}

static void add_event(json *j, const event *v) {
    open_event(j, "X", v->kernel);
    json_add_text(j, "cat", v->part);
    fprintf(json_add_key(j, "ts"), "%.3f", v->start_ns / 1e3);
    fprintf(json_add_key(j, "dur"), "%.3f", v->duration_ns / 1e3);
    json_open(j, "args", '{');
    json_add_text(j, "op", v->op);
    json_add_count(j, "launch", v->launch);
    json_add_count(j, "bytes", v->bytes);
    fprintf(json_add_key(j, "gap_us"), "%.3f", v->gap_ns / 1e3);
    json_close(j);
    json_close(j);
}

static void print_json(FILE *out, const trace *t) {
    const device_facts *f = lab_get_facts(t->lab);
    json j = json_start(out, '{');
    json_add_text(&j, "displayTimeUnit", "ns");
    json_open(&j, "otherData", '{');
    json_add_text(&j, "device", f->name);
    json_add_text(&j, "emulated", f->emulated ? "yes" : "no");
    json_add_text(&j, "model", lab_get_model_name(t->lab));
    json_add_text(&j, "how", t->how);
    fprintf(json_add_key(&j, "token_us"), "\"%.3f\"", t->token_ns / 1e3);
    fprintf(json_add_key(&j, "depth"), "\"%" PRIu64 "\"", settings.depth);
    json_close(&j);
    json_open(&j, "traceEvents", '[');
    open_event(&j, "M", "thread_name");
    json_open(&j, "args", '{');
    json_add_text(&j, "name", f->name);
    json_close(&j);
    json_close(&j);
    for (size_t i = 0; i < t->token->count; i++)
        add_event(&j, &t->events[i]);
    json_close(&j);
    json_close(&j);
}

static bool write_json(const trace *t, err *e) {
    memory_file *text = settings.out ? memory_file_new() : NULL;
    print_json(text ? text->out : stdout, t);
    return text ? memory_file_write(text, settings.out, e) : verb_flush(e);
}

static bool write_csv(const trace *t, err *e) {
    char made_of[MADE_OF] = "", number[32];
    if (!registry_add_used(made_of, lab_get_library(t->lab), e) ||
        !made_of_add_one(made_of, lab_get_library(t->lab), "runner", "model", e))
        return false;
    csv *c = report_start_csv(lab_get_facts(t->lab), settings.seed);
    csv_add_meta(c, "made of", made_of);
    csv_add_meta(c, "model", lab_get_model_name(t->lab));
    csv_add_meta(c, "how", t->how);
    snprintf(number, sizeof number, "%zu", (size_t)settings.depth);
    csv_add_meta(c, "depth", number);
    snprintf(number, sizeof number, "%.0f", t->token_ns);
    csv_add_meta(c, "token_ns", number);
    return record_write_csv(&(record)RECORD(fields), t->events, t->token->count, sizeof *t->events,
                            c, settings.csv, e);
}

static exit_code run_verb(err *e) {
    trace t = {.lab = NULL};
    bool ok = open_trace(&t, e) && measure(&t, e) && write_json(&t, e) &&
              (!settings.csv || write_csv(&t, e));
    close_trace(&t);
    return ok ? EXIT_OK : e->code;
}

VERB_ALONE(
    verb_trace, "trace", run_verb,
    .about = "one decoded token as a timeline: every launch, for Perfetto",
    .notes =
        "Writes the launches of one token as Chrome trace JSON, which https://ui.perfetto.dev\n"
        "shows: kernel, op, bytes, start, duration and the gap before it. The token is checked\n"
        "launch by launch first. Where the GPU has counters, launches are timed in place;\n"
        "elsewhere each is timed alone, less the time of an empty launch. `how` in the file says\n"
        "which.\n",
    .math = "fast", .reads_tuned = true, VERB_OPTIONS(options));
