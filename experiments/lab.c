#include "lab.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "kernels/kernels.h"
#include "reference/quant.h"
#include "runner/choice/tuned.h"
#include "runner/generate/sampler.h"
#include "runner/gguf/convert.h"
#include "runner/gguf/synth.h"

struct lab {
    lab_options options;
    device *device;
    library *lib;
    meter *meter;
    double budget_s; /* most seconds for a case */
    tuned *tuned;    /* NULL: the device has no table */
    variants_basis variants;
    const char *family; /* of the model; NULL: any */
    /* The model, opened at first use. */
    gguf *file;
    char model_name[128];
    char scratch[512]; /* "" or the folder of a model with random weights */
    float *logits;     /* of the token at checked_position, from a checked pass */
    uint32_t checked_position;
    model_fusion checked_fusion; /* of that pass */
};

/* Models: which one it is, and that it was checked --------------------------------------------- */

/* Tokens in the cache before the one that is timed. */
static const uint32_t positions[LEVEL_COUNT] = {32, 32, 3};

/* The first file that exists; else a model with random weights is made. The first entry is for
 * experiments that take any family. */
static const struct {
    const char *family, *files[2], *shape;
} known[] = {
    {NULL, {"models/smollm2-135m-instruct-q4_0.gguf", "models/assay-tiny.gguf"}, "tiny"},
    {"rwkv7", {"models/rwkv7-0.1b-q4_0.gguf", "models/assay-tiny-rwkv7.gguf"}, "rwkv7-tiny"}};
enum { KNOWN = sizeof known / sizeof *known, FILES = sizeof known->files / sizeof *known->files };

static size_t find_known(const lab *l) {
    size_t i = KNOWN - 1;
    while (i > 0 && (!l->family || strcmp(known[i].family, l->family) != 0))
        i--;
    return i;
}

void lab_choose_family(lab *l, const char *family) {
    if (family == l->family || (family && l->family && strcmp(family, l->family) == 0))
        return;
    gguf_free(l->file);
    free(l->logits);
    l->file = NULL;
    l->logits = NULL;
    l->family = family;
}

static void lab_close_model(lab *l) {
    gguf_free(l->file);
    free(l->logits);
    if (l->scratch[0])
        os_remove_folder(l->scratch);
    l->file = NULL;
    l->logits = NULL;
    l->scratch[0] = 0;
}

/* Random weights in the shape of a tiny model. */
static bool make_model(lab *l, char *path, size_t size, err *e) {
    const synth_shape *tiny = synth_find_shape(known[find_known(l)].shape, e);
    synth_options o = {.seed = l->options.seed, .type = convert_find_type("q4_0", e)};
    return tiny && o.type && (l->scratch[0] || os_make_scratch(l->scratch, sizeof l->scratch, e)) &&
           snprintf(path, size, "%s/synthetic-%s-q4_0.gguf", l->scratch, tiny->name) < (int)size &&
           synth_write_model(tiny, path, &o, e);
}

/* Whether the model that was given is of the family that is wanted. */
static bool is_wanted(const lab *l) {
    err ignored;
    gguf_text name = {0};
    gguf *g = l->family ? gguf_open(l->options.model, &ignored) : NULL;
    bool is = !l->family || (g && gguf_get_text(g, "general.architecture", &name, NULL, &ignored) &&
                             gguf_text_equals(name, l->family));
    gguf_free(g);
    return is;
}

static bool find_file(lab *l, char *path, size_t size, err *e) {
    char home[PATH_MAX];
    if (l->options.model && is_wanted(l))
        return snprintf(path, size, "%s", l->options.model) < (int)size ||
               err_set(e, EXIT_USAGE, "the path of the model is longer than %zu bytes", size - 1);
    if (!os_find_home(home, sizeof home, e))
        return false;
    const char *const *files = known[find_known(l)].files;
    for (size_t i = 0; i < FILES && l->options.level != LEVEL_SMOKE; i++)
        if (snprintf(path, size, "%s/%s", home, files[i]) < (int)size && access(path, F_OK) == 0)
            return true;
    return make_model(l, path, size, e);
}

static bool open_file(lab *l, err *e) {
    char path[PATH_MAX];
    if (l->file)
        return true;
    if (!find_file(l, path, sizeof path, e) || !(l->file = gguf_open(path, e)))
        return false;
    snprintf(l->model_name, sizeof l->model_name, "%.120s", path_get_name(path));
    return true;
}

const char *lab_get_model_name(const lab *l) {
    return l->model_name;
}

const char *lab_get_model_weights(const lab *l) {
    const gguf_type *most = NULL;
    uint64_t bytes = 0;
    for (size_t i = 0; l->file && i < l->file->tensor_count; i++) {
        const gguf_type *type = l->file->tensors[i].type;
        uint64_t sum = 0;
        for (size_t k = 0; k < l->file->tensor_count; k++) {
            const gguf_tensor *t = &l->file->tensors[k];
            bool is_layer = strncmp(t->name, "blk.", 4) == 0 && t->dims > 1;
            sum += is_layer && t->type == type ? t->bytes : 0;
        }
        most = sum > bytes ? type : most;
        bytes = sum > bytes ? sum : bytes;
    }
    return most ? most->name : "";
}

bool lab_read_model_shape(lab *l, model_shape *out, err *e) {
    return open_file(l, e) && model_read_shape(l->file, out, e);
}

static model *open_model(lab *l, const model_options *o, err *e) {
    model_options how = *o;
    how.tuned = l->tuned;
    return open_file(l, e) ? model_new(l->lib, l->file, &how, e) : NULL;
}

void lab_draw_tokens(const lab *l, uint32_t vocab, uint32_t *tokens, size_t count) {
    rng r = rng_new(l->options.seed, "experiment tokens");
    for (size_t i = 0; i < count; i++)
        tokens[i] = rng_below(&r, vocab);
}

/* Decoders ---------------------------------------------------------------------------------- */

static bool check_launches(lab *l, lab_decoder *d, const model_options *o, size_t vocab, err *e) {
    check_options plain = {.unordered = false};
    check_result result = {.verdict = CHECK_PASS};
    free(l->logits);
    l->logits = array_new(vocab, sizeof *l->logits);
    if (!model_debug_token(d->model, d->token, l->logits, &plain, &result, e))
        return false;
    if (result.verdict != CHECK_PASS)
        return err_set(e, EXIT_WRONG, "the model is wrong, so nothing is timed: %.200s",
                       result.message);
    l->checked_position = d->position;
    l->checked_fusion = o->fusion;
    return true;
}

/* An error in settling is reported by the next play, which tries again. */
void lab_rewind_decoder(lab_decoder *d) {
    err ignored;
    model_rewind(d->model, d->position);
    model_settle(d->model, &ignored);
}

bool lab_check_logits(const lab_decoder *d, const float *logits, const char *what, err *e) {
    size_t bytes = model_get_shape(d->model)->vocab * sizeof *logits;
    return memcmp(d->logits, logits, bytes) == 0 ||
           err_set(e, EXIT_WRONG, "%s: the logits differ from those of the checked pass", what);
}

bool lab_check_next(const lab_decoder *d, uint32_t next, const char *what, err *e) {
    return next == d->next || err_set(e, EXIT_WRONG,
                                      "%s: chose token %u instead of %u, the argmax of "
                                      "the checked logits",
                                      what, next, d->next);
}

/* One play of each tape, so that nothing is compiled or recorded while it is timed. */
static bool play_once(lab_decoder *d, err *e) {
    uint32_t next;
    lab_rewind_decoder(d);
    if (!model_forward_token(d->model, d->token, PLAY_WHOLE, d->room, NULL, e) ||
        !lab_check_logits(d, d->room, "a token", e))
        return false;
    lab_rewind_decoder(d);
    bool ok = model_forward_greedy(d->model, d->token, PLAY_WHOLE, &next, NULL, e) &&
              lab_check_next(d, next, "a greedy token", e);
    lab_rewind_decoder(d);
    return ok;
}

bool lab_open_decoder(lab *l, const model_options *o, uint32_t position, lab_decoder *d, err *e) {
    *d = (lab_decoder){.position = position ? position : positions[l->options.level]};
    if (!(d->model = open_model(l, o, e)))
        return false;
    uint32_t vocab = model_get_shape(d->model)->vocab, count = d->position + 1;
    uint32_t *tokens = array_new(count, sizeof *tokens);
    d->room = array_new(vocab, sizeof *d->room);
    lab_draw_tokens(l, vocab, tokens, count);
    d->token = tokens[d->position];
    bool ok = model_forward_prompt(d->model, tokens, d->position, PLAY_WHOLE, d->room, NULL, e) &&
              model_keep(d->model, e);
    free(tokens);
    bool is_checked =
        l->logits && l->checked_position == d->position && l->checked_fusion == o->fusion;
    if (!ok || (!is_checked && !check_launches(l, d, o, vocab, e)))
        return false;
    d->logits = array_new(vocab, sizeof *d->logits);
    memcpy(d->logits, l->logits, vocab * sizeof *d->logits);
    d->next = sampler_find_largest(d->logits, vocab);
    return play_once(d, e);
}

void lab_close_decoder(lab_decoder *d) {
    model_free(d->model);
    free(d->logits);
    free(d->room);
    *d = (lab_decoder){.model = NULL};
}

timing_sample lab_get_sample(const play_times *t, uint64_t wall_ns) {
    return (timing_sample){(double)t->gpu_ns, (double)t->encode_ns, (double)wall_ns,
                           t->gpu_is_wall};
}

bool lab_take_token(void *decoder, timing_sample *out, err *e) {
    lab_decoder *d = decoder;
    play_times t;
    uint32_t next;
    lab_rewind_decoder(d);
    if (!model_forward_greedy(d->model, d->token, PLAY_WHOLE, &next, &t, e))
        return false;
    *out = lab_get_sample(&t, t.wall_ns);
    return lab_check_next(d, next, "a token", e);
}

/* The label of the buffer that a launch reads its activations from, or writes. */
static const char *find_label(const launch *l, access_mode access) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_BUFFER && b->at.buffer->storage != STORAGE_NO_COPY &&
            (access == ACCESS_WRITE ? (b->access & ACCESS_WRITE) != 0 : b->access == ACCESS_READ) &&
            strcmp(b->at.buffer->label, "control") != 0)
            return b->at.buffer->label;
    }
    return "control";
}

void lab_name_launch(const launch *l, char *text, size_t size) {
    snprintf(text, size, "%s: %s > %s", l->pipeline->kernel, find_label(l, ACCESS_READ),
             find_label(l, ACCESS_WRITE));
}

/* The lab ----------------------------------------------------------------------------------------- */

const char *lab_get_level_name(lab_level l) {
    static const char *const names[LEVEL_COUNT] = {"full", "quick", "smoke"};
    return names[l];
}

/* A sample takes 2 ms whatever the case, so 20 of them are enough for a first look. */
static meter_options make_options(lab_level level) {
    static const double window_s[LEVEL_COUNT] = {10, 30, 0}, roof_s[LEVEL_COUNT] = {0.05, 0.02, 0},
                        sample_s[LEVEL_COUNT] = {TIMING_SAMPLE_S, TIMING_SAMPLE_S, 0.0001};
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = sample_s[level],
                       .roof_s = roof_s[level],
                       .window_s = window_s[level]};
    if (level == LEVEL_FULL)
        return o;
    bool is_quick = level == LEVEL_QUICK;
    o.plan.target = 0.02;
    o.plan.budget_s = is_quick ? 0.04 : 0.001;
    o.plan.warm_up_s = o.plan.budget_s / 10;
    o.plan.min_samples = 3; /* for slow cases; fast ones continue until the budget ends */
    o.plan.max_samples = is_quick ? 200 : 3;
    return o;
}

/* ASSAY_BUDGET: the same points with hardly any time for each, to see that they work. */
static bool limit_options(meter_options *o, double *budget_s, err *e) {
    const char *given = getenv("ASSAY_BUDGET");
    char *end;
    *budget_s = INFINITY;
    if (!given || !*given)
        return true;
    *budget_s = strtod(given, &end);
    if (*end || !(*budget_s > 0))
        return err_set(e, EXIT_USAGE, "ASSAY_BUDGET is '%.40s'; it takes seconds, such as 0.01",
                       given);
    o->plan.budget_s = fmin(o->plan.budget_s, *budget_s);
    o->plan.warm_up_s = fmin(o->plan.warm_up_s, *budget_s / 10);
    o->plan.min_samples = o->plan.max_samples = 3;
    o->sample_s = fmin(o->sample_s, *budget_s / 10);
    o->roof_s = fmin(o->roof_s, *budget_s);
    return true;
}

lab *lab_new(const lab_options *o, err *e) {
    lab *l = array_new(1, sizeof *l);
    meter_options how = make_options(o->level);
    l->options = *o;
    l->device = device_open_with(o->device, &(device_options){.cpu_clock = true}, e);
    if (l->device && limit_options(&how, &l->budget_s, e) &&
        (l->lib = library_new(l->device, NULL, e)) && tuned_open(l->lib, &l->tuned, e)) {
        l->variants = (variants_basis){.facts = lab_get_facts(l), .table = l->tuned};
        l->meter = meter_new(l->lib, &bandwidth_roof_kernels, &how);
        return l;
    }
    lab_free(l);
    return NULL;
}

void lab_free(lab *l) {
    if (!l)
        return;
    lab_close_model(l);
    meter_free(l->meter);
    tuned_free(l->tuned);
    library_free(l->lib);
    device_close(l->device);
    free(l);
}

lab_level lab_get_level(const lab *l) {
    return l->options.level;
}

library *lab_get_library(lab *l) {
    return l->lib;
}

const device_facts *lab_get_facts(const lab *l) {
    return device_get_facts(l->device);
}

uint64_t lab_get_seed(const lab *l) {
    return l->options.seed;
}

const variants_basis *lab_get_variants(const lab *l) {
    return &l->variants;
}

size_t lab_choose(const lab *l, size_t count, size_t quick) {
    size_t wanted[LEVEL_COUNT] = {count, quick, quick < 2 ? quick : 2};
    return wanted[l->options.level] < count ? wanted[l->options.level] : count;
}

/* Timing ------------------------------------------------------------------------------------ */

bool lab_find_roof(lab *l, roof **out, err *e) {
    return meter_find_roof(l->meter, out, e);
}

bool lab_find_cache(lab *l, size_t *bytes, err *e) {
    return meter_find_cache(l->meter, bytes, e);
}

bool lab_open_case(lab *l, measurement *c, const op *o, const kernel *k, shape s,
                   timing_regime regime, timing_cache cache, err *e) {
    kernel_case wanted = case_new(o, k, &s, INPUT_NORMAL);
    return measurement_open(c, l->lib, &wanted, l->options.seed, regime, cache, e);
}

void lab_close_cases(measurement *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        measurement_close(&cases[i]);
}

bool lab_time(lab *l, measurement *cases, size_t count, err *e) {
    for (size_t i = 0; i < count && l->options.level == LEVEL_SMOKE; i++)
        cases[i].samples = 0;
    return meter_time(l->meter, cases, count, e);
}

bool lab_time_again(lab *l, measurement *cases, size_t count, double seconds, err *e) {
    return meter_time_again(l->meter, cases, count, fmin(seconds, l->budget_s), e);
}

void lab_put(lab *l, sheet *s, const measurement *c) {
    result_row r;
    meter_fill_row(l->meter, c, &r, NULL); /* a source that can no longer be read has no hash */
    if (c->built.op && c->built.kernel->format)
        snprintf(r.format, sizeof r.format, "%s", c->built.kernel->format->name);
    sheet_put_row(s, &r);
    sheet_add_samples(s, c->key, c->result.samples, c->result.count);
}
