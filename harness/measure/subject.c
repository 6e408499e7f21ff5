/* subject: see subject.h. Owns the copies, their launches and their contents. */
#include "subject.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/sha256.h"

enum {
    MAX_COPIES = 256,   /* if more were needed, scrub instead */
    MAX_REPEATS = 1024, /* of a tape in a command buffer */
    MAX_IN_PLACE = 256, /* plays before buffers that drift are put back */
    INDEPENDENT_REPEATS = 64,
};
#define OUTPUT_BYTES ((size_t)256 << 20) /* of all outputs of independent plays together */

/* A buffer of the tape, its contents at the start, and its copies. */
typedef struct {
    buffer *original;
    size_t from, bytes; /* the part that is bound */
    bool is_written;
    uint8_t *contents; /* from..from+bytes at the start */
    buffer **copies;   /* of copy 1, 2, ...; NULL where the original is shared */
} part;

struct subject {
    tape *original;
    subject_options options;
    device *device;
    part *parts;
    size_t part_count, copies, repeats, turn;
    size_t plays;  /* of the tape since the buffers were put back, over all copies */
    bool in_place; /* a play starts from what the previous one left */
    bool drifts;   /* and those are floats, which can grow without bound */
    bool scrubs;
    tape **tapes; /* single: one per copy. Else tapes[0] has all */
    size_t tape_count;
};

uint64_t tape_sum_bytes(const tape *t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < t->count; i++)
        sum += t->launches[i].bytes;
    return sum;
}

uint64_t tape_sum_flops(const tape *t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < t->count; i++)
        sum += t->launches[i].flops;
    return sum;
}

size_t subject_get_repeats(const subject *s) {
    return s->repeats;
}

size_t subject_get_copies(const subject *s) {
    return s->copies;
}

size_t subject_get_working_set(const subject *s) {
    size_t sum = 0;
    for (size_t i = 0; i < s->part_count; i++)
        sum += s->parts[i].bytes;
    return sum;
}

/* Buffers ----------------------------------------------------------------------------------- */

static part *find_part(subject *s, const buffer *b) {
    for (size_t i = 0; i < s->part_count; i++)
        if (s->parts[i].original == b)
            return &s->parts[i];
    return NULL;
}

static void add_binding(subject *s, const binding *b) {
    part *p = find_part(s, b->at.buffer);
    bool is_read = b->access & ACCESS_READ, is_written = b->access & ACCESS_WRITE;
    if (!p) {
        s->parts = realloc(s->parts, (s->part_count + 1) * sizeof *s->parts);
        assert(s->parts);
        p = &s->parts[s->part_count++];
        *p = (part){.original = b->at.buffer, .from = b->at.offset, .bytes = b->at.bytes};
    } else if (is_written && !p->is_written)
        s->in_place = s->drifts = true; /* read by a launch before, or by this one */
    size_t end = p->from + p->bytes, new_end = b->at.offset + b->at.bytes;
    p->from = b->at.offset < p->from ? b->at.offset : p->from;
    p->bytes = (new_end > end ? new_end : end) - p->from;
    p->is_written = p->is_written || is_written;
    s->in_place = s->in_place || (is_read && is_written);
    s->drifts = s->drifts || (is_read && is_written && elem_is_float(b->type));
}

static bool list_parts(subject *s, err *e) {
    for (size_t i = 0; i < s->original->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (s->original->launches[i].args[j].kind == BIND_BUFFER)
                add_binding(s, &s->original->launches[i].args[j]);
    for (size_t i = 0; i < s->part_count; i++) {
        part *p = &s->parts[i];
        p->contents = malloc(p->bytes + 1);
        if (!p->contents)
            return err_set(e, EXIT_CANNOT, "no memory to keep the %zu bytes of '%s'", p->bytes,
                           p->original->label);
        if (!buffer_download(p->original, p->from, p->contents, p->bytes, e))
            return false;
    }
    return true;
}

static buffer *get_copy(const part *p, size_t copy) {
    return copy == 0 || !p->copies ? p->original : p->copies[copy - 1];
}

/* Copies 1, 2, ... of the buffers that need them: all when cold, what is written otherwise. */
static bool make_copies(subject *s, bool all, err *e) {
    for (size_t i = 0; i < s->part_count && s->copies > 1; i++) {
        part *p = &s->parts[i];
        if (!all && !p->is_written)
            continue;
        p->copies = array_new(s->copies - 1, sizeof *p->copies);
        for (size_t c = 0; c + 1 < s->copies; c++) {
            storage_mode storage =
                p->original->storage == STORAGE_NO_COPY ? STORAGE_SHARED : p->original->storage;
            buffer *b =
                device_new_buffer(s->device, p->original->bytes, storage, p->original->label, e);
            p->copies[c] = b;
            if (!b || !buffer_upload(b, p->from, p->contents, p->bytes, e))
                return false;
        }
    }
    return true;
}

/* Every written buffer as it was at the start. */
static bool reset(subject *s, err *e) {
    for (size_t i = 0; i < s->part_count; i++) {
        const part *p = &s->parts[i];
        for (size_t c = 0; p->is_written && c < (p->copies ? s->copies : 1); c++)
            if (!buffer_upload(get_copy(p, c), p->from, p->contents, p->bytes, e))
                return false;
    }
    s->plays = 0;
    return true;
}

/* Tapes ------------------------------------------------------------------------------------- */

/* Appends launch i of the tape over the buffers of a copy. */
static void add_launch(subject *s, tape *to, size_t i, size_t copy, bool barrier) {
    const launch *from = &s->original->launches[i];
    launch *l = tape_add_pipeline(to, from->pipeline);
    *l = *from;
    l->barrier_before = barrier;
    for (int j = 0; j < LAUNCH_BUFFERS; j++)
        if (l->args[j].kind == BIND_BUFFER)
            l->args[j].at.buffer = get_copy(find_part(s, from->args[j].at.buffer), copy);
}

static tape *new_tape(subject *s, play_order order) {
    s->tapes = realloc(s->tapes, (s->tape_count + 1) * sizeof *s->tapes);
    assert(s->tapes);
    tape *t = tape_new(s->original->lib);
    t->order = order;
    s->tapes[s->tape_count++] = t;
    return t;
}

/* Independent plays of a tape with more than one launch: the first launch of all of them, then the
 * second of all. A barrier stands between, because there is none for one play alone. */
static void record(subject *s) {
    size_t count = s->original->count;
    if (s->options.regime == TIMING_INDEPENDENT) {
        tape *t = new_tape(s, ORDER_CONCURRENT);
        for (size_t i = 0; i < count; i++)
            for (size_t r = 0; r < s->repeats; r++)
                add_launch(s, t, i, r % s->copies, r == 0 && i > 0);
        return;
    }
    bool is_single = s->options.regime == TIMING_SINGLE;
    tape *t = NULL;
    for (size_t r = 0; r < (is_single ? s->copies : s->repeats); r++) {
        if (!t || is_single)
            t = new_tape(s, s->original->order);
        for (size_t i = 0; i < count; i++)
            add_launch(s, t, i, r % s->copies,
                       s->original->launches[i].barrier_before || (i == 0 && r > 0));
    }
}

/* How long the tape takes by itself: the better of two plays after a first one. */
static bool estimate(subject *s, double *seconds, err *e) {
    *seconds = INFINITY;
    for (int i = 0; i < 3; i++) {
        play_times times;
        if (!tape_play(s->original, PLAY_WHOLE, &times, NULL, e))
            return false;
        if (i > 0)
            *seconds = fmin(*seconds, (double)times.gpu_ns * 1e-9);
    }
    return reset(s, e);
}

static size_t clamp(double value, size_t least, size_t most) {
    return !(value > (double)least) ? least : value < (double)most ? (size_t)value : most;
}

static size_t sum_written(const subject *s) {
    size_t sum = 1;
    for (size_t i = 0; i < s->part_count; i++)
        sum += s->parts[i].is_written ? s->parts[i].bytes : 0;
    return sum;
}

/* How many copies, and how many plays per sample. */
static bool plan(subject *s, err *e) {
    const subject_options *o = &s->options;
    double wanted = 2 * (double)o->cache_bytes / (double)(subject_get_working_set(s) + 1), seconds;
    s->copies = o->cache == TIMING_COLD ? clamp(ceil(wanted), 1, MAX_COPIES) : 1;
    s->scrubs = o->cache == TIMING_COLD && wanted > (double)MAX_COPIES;
    s->repeats = 1;
    if (s->scrubs && !o->scrub)
        return err_set(e, EXIT_CANNOT,
                       "a working set of %zu bytes cannot be timed cold: no tape to "
                       "scrub the caches was given",
                       subject_get_working_set(s));
    if (!estimate(s, &seconds, e))
        return false;
    if (o->regime == TIMING_SINGLE)
        return true;
    size_t most = s->drifts ? MAX_IN_PLACE : MAX_REPEATS;
    if (o->regime == TIMING_INDEPENDENT)
        most = clamp((double)OUTPUT_BYTES / (double)sum_written(s), 2, INDEPENDENT_REPEATS);
    s->repeats = o->repeats ? o->repeats : clamp(ceil(o->sample_s / fmax(seconds, 1e-9)), 2, most);
    if (o->cache ==
        TIMING_COLD) /* whole rounds, or the next sample would find what this one left */
        s->repeats = s->scrubs || o->regime == TIMING_INDEPENDENT
                         ? s->copies
                         : s->copies * (1 + (s->repeats - 1) / s->copies);
    else if (o->regime == TIMING_INDEPENDENT)
        s->copies = s->repeats;
    return true;
}

subject *subject_new(tape *t, const subject_options *o, err *e) {
    assert(t->count > 0);
    subject *s = array_new(1, sizeof *s);
    s->original = t;
    s->options = *o;
    s->device = library_get_device(t->lib);
    if (list_parts(s, e) && plan(s, e) && make_copies(s, o->cache == TIMING_COLD, e)) {
        record(s);
        return s;
    }
    subject_free(s);
    return NULL;
}

void subject_free(subject *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->tape_count; i++)
        tape_free(s->tapes[i]);
    for (size_t i = 0; i < s->part_count; i++) {
        part *p = &s->parts[i];
        for (size_t c = 0; p->copies && c + 1 < s->copies; c++)
            buffer_free(p->copies[c]);
        free(p->copies);
        free(p->contents);
    }
    free(s->tapes);
    free(s->parts);
    free(s);
}

/* Playing ----------------------------------------------------------------------------------- */

/* One sample: for single, a play of the next copy; else of all copies. */
static bool play(subject *s, timing_sample *out, err *e) {
    tape *t = s->tapes[s->turn];
    s->turn = (s->turn + 1) % s->tape_count;
    play_times times;
    if (!tape_play(t, PLAY_WHOLE, &times, NULL, e))
        return false;
    s->plays += s->repeats;
    double share = 1 / (double)s->repeats;
    *out = (timing_sample){.gpu_ns = (double)times.gpu_ns * share,
                           .encode_ns = (double)times.encode_ns * share,
                           .wall_ns = (double)times.wall_ns * share,
                           .gpu_is_wall = times.gpu_is_wall};
    return true;
}

/* Restoring buffers leaves them in the CPU's caches: when cold, a round of plays evicts them. */
static bool put_back(subject *s, err *e) {
    timing_sample ignored;
    if (!reset(s, e))
        return false;
    for (size_t i = 0; i < s->tape_count && s->options.cache == TIMING_COLD && !s->scrubs; i++)
        if (!play(s, &ignored, e))
            return false;
    return true;
}

static bool take(void *context, timing_sample *out, err *e) {
    subject *s = context;
    if (s->drifts && s->plays + s->repeats > MAX_IN_PLACE * s->copies && !put_back(s, e))
        return false;
    if (s->scrubs && !tape_play(s->options.scrub, PLAY_WHOLE, NULL, NULL, e))
        return false;
    return play(s, out, e);
}

timing_source subject_get_source(subject *s) {
    return (timing_source){.take = take, .context = s};
}

/* Checking ---------------------------------------------------------------------------------- */

static bool hash_outputs(const subject *s, size_t copy, char hex[65], err *e) {
    sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < s->part_count; i++) {
        const part *p = &s->parts[i];
        if (!p->is_written)
            continue;
        uint8_t *bytes = array_new(1, p->bytes + 1);
        bool ok = buffer_download(get_copy(p, copy), p->from, bytes, p->bytes, e);
        sha256_add(&h, bytes, p->bytes);
        free(bytes);
        if (!ok)
            return false;
    }
    sha256_finish(&h, hex);
    return true;
}

/* What is timed must leave in every copy what the same number of plays of the tape leaves. */
static bool check_plays(subject *s, err *e) {
    char want[65], got[65];
    size_t each = s->options.regime == TIMING_SINGLE ? 1 : s->repeats / s->copies;
    if (!reset(s, e))
        return false;
    for (size_t i = 0; i < (s->in_place ? each : 1); i++)
        if (!tape_play(s->original, PLAY_WHOLE, NULL, NULL, e))
            return false;
    if (!hash_outputs(s, 0, want, e) || !reset(s, e))
        return false;
    timing_sample ignored;
    for (size_t i = 0; i < s->tape_count; i++)
        if (!play(s, &ignored, e))
            return false;
    for (size_t c = 0; c < s->copies; c++) {
        if (!hash_outputs(s, c, got, e))
            return false;
        if (strcmp(want, got) != 0)
            return err_set(
                e, EXIT_WRONG,
                "%s run %s, %s (%zu times over %zu copies) leaves different bits in copy "
                "%zu than when run alone",
                s->original->launches[0].pipeline->kernel,
                timing_get_regime_name(s->options.regime), timing_get_cache_name(s->options.cache),
                s->repeats, s->copies, c + 1);
    }
    return true;
}

bool subject_check(subject *s, err *e) {
    check_options options = {.unordered = s->options.unordered};
    check_result result;
    if (!reset(s, e) || !check_tape(s->original, &options, &result, e))
        return false;
    if (result.verdict != CHECK_PASS)
        return err_set(e, EXIT_WRONG, "%.250s", result.message);
    return (s->options.unordered || check_plays(s, e)) && reset(s, e);
}
