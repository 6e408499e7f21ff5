/* subject: see subject.h. Owns what is played on which buffers, and what is compared when. */
#include "subject.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/device/tape.h"

/* The buffers of a tape, their contents at the start, and their copies --------------------------- */

typedef struct {
    buffer *original;
    size_t from, bytes; /* the part that is bound */
    bool is_written;
    size_t
        float_bytes; /* of an element of a part that is only read, as floats of one size; else 0 */
    uint8_t *contents; /* from..from+bytes at the start */
    uint8_t *turned;   /* the same values at other places; of the part that varies */
    uint8_t *want[2];  /* what a play leaves: on the contents, and on the turned ones */
    buffer **copies;   /* of copy 1, 2, ...; NULL where the original is shared */
    size_t copy_count; /* of these */
    elem type;
    bool is_drawn;    /* fresh inputs: drawn anew for each play */
    bool is_borrowed; /* the copies are another subject's */
} part;

typedef struct {
    device *device;
    part *items;
    size_t count, room;
    part *varied;  /* odd copies of it have the turned contents; NULL: none varies */
    bool in_place; /* a play starts from what the previous one left */
    bool drifts;   /* and those are floats, which can grow without bound */
} part_list;

static part *parts_find(const part_list *s, const buffer *b) {
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].original == b)
            return &s->items[i];
    return NULL;
}

static void add_binding(part_list *s, const binding *b) {
    part *p = parts_find(s, b->at.buffer);
    bool is_read = b->access & ACCESS_READ, is_written = b->access & ACCESS_WRITE;
    size_t float_bytes = !is_written && elem_is_float(b->type) ? elem_get_bytes(b->type) : 0;
    if (!p) {
        p = ARRAY_ADD(s->items, s->count, s->room);
        *p = (part){.original = b->at.buffer,
                    .from = b->at.offset,
                    .bytes = b->at.bytes,
                    .type = b->type,
                    .float_bytes = float_bytes};
    } else if (is_written && !p->is_written)
        s->in_place = s->drifts = true; /* read by a launch before, or by this one */
    size_t end = p->from + p->bytes, new_end = b->at.offset + b->at.bytes;
    p->from = b->at.offset < p->from ? b->at.offset : p->from;
    p->bytes = (new_end > end ? new_end : end) - p->from;
    p->is_written = p->is_written || is_written;
    p->float_bytes = p->float_bytes == float_bytes ? float_bytes : 0;
    s->in_place = s->in_place || (is_read && is_written);
    s->drifts = s->drifts || (is_read && is_written && elem_is_float(b->type));
}

static bool parts_list(part_list *s, const tape *t, err *e) {
    s->device = library_get_device(t->lib);
    for (size_t i = 0; i < t->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (t->launches[i].args[j].kind == BIND_BUFFER)
                add_binding(s, &t->launches[i].args[j]);
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        p->contents = malloc(p->bytes + 1);
        if (!p->contents)
            return err_set(e, EXIT_CANNOT, "no memory to keep the %zu bytes of '%s'", p->bytes,
                           p->original->label);
        if (!buffer_download(p->original, p->from, p->contents, p->bytes, e))
            return false;
    }
    return true;
}

static void parts_free(part_list *s) {
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        for (size_t c = 0; c < p->copy_count && !p->is_borrowed; c++)
            buffer_free(p->copies[c]);
        if (p->is_borrowed)
            p->copies = NULL;
        free(p->copies);
        free(p->contents);
        free(p->turned);
        free(p->want[0]);
        free(p->want[1]);
    }
    free(s->items);
}

static size_t parts_sum_bytes(const part_list *s, bool written_only) {
    size_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->items[i].is_written || !written_only ? s->items[i].bytes : 0;
    return sum;
}

static buffer *part_get_copy(const part *p, size_t copy) {
    return copy == 0 || !p->copies ? p->original : p->copies[copy - 1];
}

static bool parts_make_copies(part_list *s, part *p, size_t count, err *e) {
    const buffer *o = p->original;
    p->copies = array_new(count, sizeof *p->copies);
    for (size_t c = 1; c < count; c++) {
        storage_mode storage = o->storage == STORAGE_NO_COPY ? STORAGE_SHARED : o->storage;
        buffer *b = device_new_buffer(s->device, o->bytes, storage, o->label, e);
        const uint8_t *contents = p == s->varied && c % 2 ? p->turned : p->contents;
        if (!b)
            return false;
        p->copies[p->copy_count++] = b;
        if (!buffer_upload(b, p->from, contents, p->bytes, e))
            return false;
    }
    return true;
}

/* Of the first copies only. */
static bool parts_reset(part_list *s, size_t copies, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        const part *p = &s->items[i];
        for (size_t c = 0; p->is_written && c <= p->copy_count && c < copies; c++)
            if (!buffer_upload(part_get_copy(p, c), p->from, p->contents, p->bytes, e))
                return false;
    }
    return true;
}

static bool parts_poison(part_list *s, const tape *t, size_t copies, err *e) {
    for (size_t i = 0; i < t->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++) {
            const binding *b = &t->launches[i].args[j];
            const part *p = b->kind == BIND_BUFFER && b->access == ACCESS_WRITE
                                ? parts_find(s, b->at.buffer)
                                : NULL;
            for (size_t c = 0; p && c <= p->copy_count && c < copies; c++)
                if (!buffer_fill_pattern(part_get_copy(p, c), b->at.offset, b->at.bytes,
                                         POISON_PATTERN, e))
                    return false;
        }
    return true;
}

/* Other inputs -------------------------------------------------------------------------------- */

static bool part_turn(part *p) {
    size_t count = p->bytes / p->float_bytes, first = (count / 2 + 1) % count * p->float_bytes;
    p->turned = array_new(p->bytes + 1, 1);
    size_t rest = count * p->float_bytes - first;
    memcpy(p->turned, p->contents, p->bytes);
    memcpy(p->turned, p->contents + first, rest);
    memcpy(p->turned + rest, p->contents, first);
    return memcmp(p->turned, p->contents, p->bytes) != 0;
}

static bool part_put(const part *p, const uint8_t *contents, err *e) {
    return buffer_upload(p->original, p->from, contents, p->bytes, e);
}

/* Results ------------------------------------------------------------------------------------- */

static bool parts_keep(part_list *s, int set, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        if (!p->is_written)
            continue;
        if (!p->want[set])
            p->want[set] = array_new(p->bytes + 1, 1);
        if (!buffer_download(p->original, p->from, p->want[set], p->bytes, e))
            return false;
    }
    return true;
}

static bool parts_differ(const part_list *s) {
    size_t words = 0, others = 0;
    for (size_t i = 0; i < s->count; i++) {
        const part *p = &s->items[i];
        for (size_t at = 0; p->is_written && at + 2 <= p->bytes; at += 2, words++)
            others += memcmp(p->want[0] + at, p->want[1] + at, 2) != 0;
    }
    return others > 0 && 4 * others >= words;
}

static bool part_compare(const part *p, size_t copy, int set, size_t at, size_t bytes,
                         uint8_t *room, bool *same, err *e) {
    bool ok = buffer_download(part_get_copy(p, copy), p->from + at, room, bytes, e);
    *same = ok && memcmp(room, p->want[set] + at, bytes) == 0;
    return ok;
}

static bool parts_compare(const part_list *s, size_t copy, int set, bool *same, err *e) {
    *same = true;
    for (size_t i = 0; i < s->count && *same; i++) {
        const part *p = &s->items[i];
        if (!p->is_written)
            continue;
        uint8_t *room = array_new(p->bytes + 1, 1);
        bool ok = part_compare(p, copy, set, 0, p->bytes, room, same, e);
        free(room);
        if (!ok)
            return false;
    }
    return true;
}

/* What is played, and what is compared when ------------------------------------------------------- */

enum {
    MAX_COPIES = 256,   /* if more were needed, scrub instead */
    MAX_REPEATS = 1024, /* of a tape in a command buffer */
    MAX_IN_PLACE = 256, /* plays before buffers that drift are put back */
    INDEPENDENT_REPEATS = 64,
    MAX_CANDIDATES = 3,      /* inputs that are tried, to find one that matters */
    MAX_FRESH = 64,          /* plays per sample whose inputs are fresh */
    FEWEST_AUDITED = 8,      /* of these, compared with the oracle */
    FRESH_BYTES = 128 << 20, /* of an input that is drawn anew */
    PIECE = 16 << 10, /* of the outputs, compared after each sample: far below 1 percent of it */
};
#define AUDIT_S 1.0 /* of comparing with the oracle, after the plays that are always compared */
#define OUTPUT_BYTES ((size_t)256 << 20) /* of all outputs of independent plays together */

/* Plays are numbered, through all samples: see find_input. */
struct subject {
    tape *original;
    subject_options options;
    part_list parts;
    size_t copies, repeats, turn;
    size_t plays; /* of the tape since the buffers were put back, over all copies */
    bool rotates; /* cold, over copies of all buffers */
    bool scrubs;
    bool is_known; /* what plays leave */
    tape **tapes;  /* played in turn: all that a sample can be */
    size_t tape_count, tape_room;
    uint64_t random;
    uint8_t *piece;
    uint64_t *sums; /* fresh inputs: of what each play left, sample after sample */
    size_t samples;
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

static size_t get_set_bytes(const subject *s) {
    return parts_sum_bytes(&s->parts, false);
}

subject_facts subject_get_facts(const subject *s) {
    return (subject_facts){s->repeats, s->copies, get_set_bytes(s), s->parts.varied};
}

/* Buffers ----------------------------------------------------------------------------------- */

/* Copies of all buffers when cold, else of what is written, where plays need outputs of their own,
 * and of the input that varies. */
static bool make_copies(subject *s, err *e) {
    for (size_t i = 0; i < s->parts.count; i++) {
        part *p = &s->parts.items[i];
        size_t count = s->rotates || p->is_written || p->is_drawn ? s->copies
                       : p == s->parts.varied                     ? 2
                                                                  : 1;
        const subject *like = s->options.fresh ? s->options.like : NULL;
        const part *alike = like ? parts_find(&like->parts, p->original) : NULL;
        if (alike && alike->copy_count + 1 == count) {
            p->copies = alike->copies;
            p->copy_count = alike->copy_count;
            p->is_borrowed = true;
        } else if (count > 1 && !parts_make_copies(&s->parts, p, count, e))
            return false;
    }
    return true;
}

/* Buffers as they were at the start, and outputs as if nothing had been written to them. */
static bool reset_copies(subject *s, size_t copies, err *e) {
    s->plays = 0;
    return parts_reset(&s->parts, copies, e) &&
           (s->parts.in_place || parts_poison(&s->parts, s->original, copies, e));
}

static bool reset(subject *s, err *e) {
    return reset_copies(s, SIZE_MAX, e);
}

/* Which copy of its inputs play k works on; of the outputs it is k modulo their number. When an input
 * varies, this moves on by one in every other round: an output then always holds the result of
 * other inputs when a play begins. */
static size_t find_input(const subject *s, size_t k) {
    size_t shift = s->parts.varied && s->copies > 1 ? k / s->copies % 2 : 0;
    return (k + shift) % (s->rotates || s->options.fresh ? s->copies : s->parts.varied ? 2 : 1);
}

/* 1 where play k works on the turned contents. */
static int find_set(const subject *s, size_t k) {
    return s->parts.varied ? (int)(find_input(s, k) % 2) : 0;
}

/* After this many plays all is as at the first: a whole number of samples. */
static size_t find_period(const subject *s) {
    size_t round = s->parts.varied ? 2 * s->copies : s->copies, period = round;
    while (period % s->repeats != 0)
        period += round;
    return period;
}

/* Tapes ------------------------------------------------------------------------------------- */

/* Appends launch i of the tape over the buffers of play k. */
static void add_launch(subject *s, tape *to, size_t i, size_t k, bool barrier) {
    const launch *from = &s->original->launches[i];
    launch *l = tape_add_pipeline(to, from->pipeline);
    *l = *from;
    l->barrier_before = barrier;
    for (int j = 0; j < LAUNCH_BUFFERS; j++)
        if (l->args[j].kind == BIND_BUFFER) {
            const part *p = parts_find(&s->parts, from->args[j].at.buffer);
            l->args[j].at.buffer = part_get_copy(p, p->is_written ? k % s->copies
                                                    : p->copies   ? find_input(s, k)
                                                                  : 0);
        }
}

static tape *new_tape(subject *s, play_order order) {
    tape *t = tape_new(s->original->lib);
    t->order = order;
    return *ARRAY_ADD(s->tapes, s->tape_count, s->tape_room) = t;
}

/* One sample. Independent plays of a tape with more than one launch: the first launch of all of them,
 * then the second of all. A barrier stands between, because there is none for one play alone. */
static void record_sample(subject *s, size_t first) {
    size_t count = s->original->count;
    bool is_independent = s->options.regime == TIMING_INDEPENDENT;
    tape *t = new_tape(s, is_independent ? ORDER_CONCURRENT : s->original->order);
    for (size_t i = 0; i < count && is_independent; i++)
        for (size_t r = 0; r < s->repeats; r++)
            add_launch(s, t, i, first + r, r == 0 && i > 0);
    for (size_t r = 0; r < s->repeats && !is_independent; r++)
        for (size_t i = 0; i < count; i++)
            add_launch(s, t, i, first + r,
                       s->original->launches[i].barrier_before || (i == 0 && r > 0));
}

/* Planning ---------------------------------------------------------------------------------- */

static bool play_original(subject *s, double *seconds, err *e) {
    play_times times;
    if (!tape_play(s->original, PLAY_WHOLE, &times, NULL, e))
        return false;
    *seconds = fmin(*seconds, (double)times.gpu_ns * 1e-9);
    return true;
}

/* What the tape leaves when the input that varies has its turned contents. */
static bool play_turned(subject *s, part *p, double *seconds, err *e) {
    return reset(s, e) && part_put(p, p->turned, e) && play_original(s, seconds, e) &&
           parts_keep(&s->parts, 1, e) && part_put(p, p->contents, e);
}

/* Where memory has room for it, and the caches if all else is in them. */
static bool may_vary(const subject *s, const part *p) {
    size_t all = get_set_bytes(s), cache = s->options.cache_bytes;
    return p->float_bytes > 0 && p->bytes > p->float_bytes &&
           p->original->storage != STORAGE_NO_COPY &&
           p->bytes <= device_get_facts(s->parts.device)->memory_bytes / 8 &&
           (s->options.cache == TIMING_COLD || all > cache || all + p->bytes <= cache);
}

/* The smallest input of floats that changes the results. */
static bool choose_varied(subject *s, double *seconds, err *e) {
    part_list *l = &s->parts;
    if (!s->options.varies || s->options.unordered || l->in_place || s->options.fresh)
        return true;
    if (!parts_keep(l, 0, e))
        return false;
    size_t above = 0; /* bytes of the last one that was tried */
    for (int tried = 0; tried < MAX_CANDIDATES && !l->varied; tried++) {
        part *best = NULL;
        for (size_t i = 0; i < l->count; i++)
            if (l->items[i].bytes > above && may_vary(s, &l->items[i]) &&
                (!best || l->items[i].bytes < best->bytes))
                best = &l->items[i];
        if (!best)
            return true;
        above = best->bytes;
        if (!part_turn(best))
            continue;
        if (!play_turned(s, best, seconds, e))
            return false;
        l->varied = parts_differ(l) ? best : NULL;
    }
    return true;
}

/* How long the tape takes by itself: the best of some plays after a first one. */
static bool estimate(subject *s, double *seconds, err *e) {
    double ignored = INFINITY;
    *seconds = INFINITY;
    return play_original(s, &ignored, e) && choose_varied(s, seconds, e) &&
           play_original(s, seconds, e) && (s->parts.varied || play_original(s, seconds, e)) &&
           reset(s, e);
}

static size_t clamp(double value, size_t least, size_t most) {
    return !(value > (double)least) ? least : value < (double)most ? (size_t)value : most;
}

static bool is_finite(const part *p) {
    for (size_t i = 0; i < p->bytes / p->float_bytes; i++)
        if (!isfinite(elem_read(p->type, p->contents, i)))
            return false;
    return true;
}

/* Bytes of what is drawn as one: a float, or a block of weights; 0: nothing is. */
static size_t get_unit(const part *p) {
    return p->float_bytes > 0 ? p->float_bytes : p->is_written ? 0 : p->original->block_bytes;
}

/* Fresh inputs: as many plays as the caches hold. Weights that are too large for several copies are
 * read by each play, as they are without copies. */
static void plan_fresh(subject *s, double seconds) {
    size_t bytes = parts_sum_bytes(&s->parts, true), room = s->options.cache_bytes / 2;
    for (size_t i = 0; i < s->parts.count; i++) {
        part *p = &s->parts.items[i];
        const bool is_random = p->float_bytes > 0 ? is_finite(p) : get_unit(p) > 0;
        p->is_drawn =
            is_random && p->original->storage != STORAGE_NO_COPY && p->bytes <= FRESH_BYTES;
        bytes += p->is_drawn ? p->bytes : 0;
    }
    if (room > FRESH_BYTES / 2)
        room = FRESH_BYTES / 2;
    const size_t most = clamp((double)room / (double)(bytes + 1), 1, MAX_FRESH);
    s->repeats = s->options.repeats
                     ? s->options.repeats
                     : clamp(ceil(s->options.sample_s / fmax(seconds, 1e-9)), 1, most);
    s->copies = s->repeats;
}

/* How many copies, and how many plays per sample. */
static bool plan(subject *s, err *e) {
    const subject_options *o = &s->options;
    double wanted = 2 * (double)o->cache_bytes / (double)(get_set_bytes(s) + 1), seconds;
    s->copies = o->cache == TIMING_COLD ? clamp(ceil(wanted), 1, MAX_COPIES) : 1;
    s->scrubs = o->cache == TIMING_COLD && wanted > (double)MAX_COPIES;
    s->repeats = 1;
    if (s->scrubs && !o->scrub)
        return err_set(e, EXIT_CANNOT,
                       "a working set of %zu bytes cannot be timed cold: no tape to "
                       "scrub the caches was given",
                       get_set_bytes(s));
    if (!estimate(s, &seconds, e))
        return false;
    if (o->fresh) {
        plan_fresh(s, seconds);
        return true;
    }
    size_t odd = s->parts.varied != NULL; /* then there is an even number of everything */
    s->rotates = s->copies > 1;
    s->copies += s->copies > 1 ? s->copies & odd : 0;
    if (o->regime == TIMING_SINGLE)
        return true;
    size_t most = s->parts.drifts ? MAX_IN_PLACE : MAX_REPEATS;
    if (o->regime == TIMING_INDEPENDENT)
        most = clamp((double)OUTPUT_BYTES / (double)(parts_sum_bytes(&s->parts, true) + 1), 2,
                     INDEPENDENT_REPEATS);
    s->repeats = o->repeats ? o->repeats : clamp(ceil(o->sample_s / fmax(seconds, 1e-9)), 2, most);
    s->repeats += o->repeats ? 0 : s->repeats & odd;
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
    s->piece = array_new(PIECE, 1);
    if (parts_list(&s->parts, t, e) && plan(s, e) && make_copies(s, e)) {
        for (size_t first = 0, period = find_period(s); first < period; first += s->repeats)
            record_sample(s, first);
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
    parts_free(&s->parts);
    free(s->tapes);
    free(s->sums);
    free(s->piece);
    free(s);
}

/* Playing ----------------------------------------------------------------------------------- */

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

static bool refuse_timed(const subject *s, const char *label, err *e) {
    return err_set(e, EXIT_WRONG,
                   "%.100s: what a timed run left in '%s' is not what the checked run left: it "
                   "keeps results of earlier runs, or differs from run to run",
                   s->original->launches[0].pipeline->kernel, label);
}

/* A piece of what the last play of the sample left, at random. */
static bool check_piece(subject *s, err *e) {
    size_t k = s->turn * s->repeats + s->tape_count * s->repeats - 1, outputs = 0;
    const part *p = NULL;
    bool same = true;
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    for (size_t i = 0; i < s->parts.count; i++)
        if (s->parts.items[i].is_written && (s->random >> 32) % ++outputs == 0)
            p = &s->parts.items[i];
    if (!p)
        return true;
    size_t bytes = p->bytes < PIECE ? p->bytes : PIECE;
    size_t at = (size_t)(s->random >> 16) % (p->bytes - bytes + 1);
    return part_compare(p, k % s->copies, find_set(s, k), at, bytes, s->piece, &same, e) &&
           (same || refuse_timed(s, p->original->label, e));
}

/* Fresh inputs -------------------------------------------------------------------------------- */

/* The input of a play, from its own values: the same again for the same numbers. */
static bool draw_part(const subject *s, const part *p, size_t play, buffer *to, err *e) {
    const size_t each = get_unit(p), count = p->bytes / each;
    char name[48];
    snprintf(name, sizeof name, "%zu/%zu", play, (size_t)(p - s->parts.items));
    rng random = rng_new(s->options.fresh, name);
    uint8_t *drawn = array_new(p->bytes + 1, 1);
    memcpy(drawn + count * each, p->contents + count * each, p->bytes - count * each);
    for (size_t i = 0, n; i < count; i += n) { /* a few neighbours at a time are quicker */
        const size_t from = rng_below(&random, (uint32_t)count);
        n = 1 + rng_below(&random, 15);
        n = n < count - i ? n : count - i;
        n = n < count - from ? n : count - from;
        memcpy(drawn + i * each, p->contents + from * each, n * each);
    }
    bool ok = buffer_upload(to, p->from, drawn, p->bytes, e);
    free(drawn);
    return ok;
}

/* Copy `copy` of each part as play `play` finds it, but for what is poisoned. */
static bool draw(const subject *s, size_t play, size_t copy, err *e) {
    for (size_t i = 0; i < s->parts.count; i++) {
        const part *p = &s->parts.items[i];
        if (p->is_drawn && !draw_part(s, p, play, part_get_copy(p, copy), e))
            return false;
    }
    return true;
}

static bool sum_copy(const subject *s, size_t copy, uint64_t *sum, err *e) {
    *sum = 0xCBF29CE484222325u;
    for (size_t i = 0; i < s->parts.count; i++) {
        const part *p = &s->parts.items[i];
        if (!p->is_written)
            continue;
        uint8_t *left = array_new(p->bytes + 8, 1);
        bool ok = buffer_download(part_get_copy(p, copy), p->from, left, p->bytes, e);
        for (size_t at = 0; ok && at < p->bytes; at += 8) {
            uint64_t word;
            memcpy(&word, left + at, sizeof word);
            *sum = (*sum ^ word) * 0x9E3779B97F4A7C15u;
            *sum ^= *sum >> 29;
        }
        free(left);
        if (!ok)
            return false;
    }
    return true;
}

/* Poisons, draws, plays, and keeps what each play left. */
static bool take_fresh(subject *s, timing_sample *out, err *e) {
    const size_t first = s->samples * s->repeats;
    bool ok = reset(s, e);
    s->sums = realloc(s->sums, (first + s->repeats) * sizeof *s->sums);
    assert(s->sums);
    for (size_t k = 0; ok && k < s->repeats; k++)
        ok = draw(s, first + k, k, e);
    ok = ok && play(s, out, e);
    for (size_t k = 0; ok && k < s->repeats; k++)
        ok = sum_copy(s, k, &s->sums[first + k], e);
    s->samples += ok;
    return ok;
}

/* Does what it is compared with fail the oracle, too, on the inputs of a play? Drawn values may be harder than
 * an op's own, where errors grow along a recurrence. */
static bool is_too_hard(subject *s, size_t play, const check_options *o) {
    const subject *base = s->options.like ? s->options.like : s;
    check_result result;
    err unused;
    return reset_copies(s, 1, &unused) && draw(s, play, 0, &unused) &&
           check_tape(base->original, o, &result, &unused) && result.verdict != CHECK_PASS;
}

/* Every play again, alone; some, from any of them on, with the oracle. */
static bool audit(subject *s, err *e) {
    const check_options options = {.unordered = s->options.unordered};
    const size_t count = s->samples * s->repeats, stride = 1000003; /* a prime: all of them */
    rng random = rng_new(rng_draw_seed(), "audit");
    const size_t start = count > 0 ? rng_below(&random, (uint32_t)count) : 0;
    const uint64_t ends_ns = os_now_ns() + (uint64_t)(AUDIT_S * 1e9);
    check_result result;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const size_t k = (start + i * stride) % count;
        const bool has_oracle = i < FEWEST_AUDITED || os_now_ns() < ends_ns;
        double ignored = INFINITY;
        uint64_t sum;
        ok = reset_copies(s, 1, e) && draw(s, k, 0, e) &&
             (has_oracle ? check_tape(s->original, &options, &result, e)
                         : play_original(s, &ignored, e)) &&
             sum_copy(s, 0, &sum, e);
        if (ok && has_oracle && result.verdict != CHECK_PASS && is_too_hard(s, k, &options))
            continue;
        if (ok && has_oracle && result.verdict != CHECK_PASS)
            ok = err_set(e, EXIT_WRONG, "on inputs that it was timed with: %.200s", result.message);
        if (ok && sum != s->sums[k] && !s->options.unordered)
            ok = refuse_timed(s, "its outputs", e);
    }
    for (size_t i = 0; i < s->parts.count; i++)
        ok = ok && (!s->parts.items[i].is_drawn ||
                    part_put(&s->parts.items[i], s->parts.items[i].contents, e));
    return ok;
}

static bool take(void *context, timing_sample *out, err *e) {
    subject *s = context;
    if (s->options.fresh)
        return take_fresh(s, out, e);
    if (s->parts.drifts && s->plays + s->repeats > MAX_IN_PLACE * s->copies && !put_back(s, e))
        return false;
    if (s->scrubs && !tape_play(s->options.scrub, PLAY_WHOLE, NULL, NULL, e))
        return false;
    return play(s, out, e) && (!s->is_known || check_piece(s, e));
}

timing_source subject_get_source(subject *s) {
    return (timing_source){.take = take, .context = s};
}

/* Checking ---------------------------------------------------------------------------------- */

/* What is timed must leave in every copy what the same number of plays of the tape leaves. */
static bool check_plays(subject *s, err *e) {
    size_t period = find_period(s);
    double ignored = INFINITY;
    timing_sample sample;
    if (!reset(s, e))
        return false;
    for (size_t i = 0; i < (s->parts.in_place ? period / s->copies : 1); i++)
        if (!play_original(s, &ignored, e))
            return false;
    if (!parts_keep(&s->parts, 0, e) ||
        (s->parts.varied && !play_turned(s, s->parts.varied, &ignored, e)) || !reset(s, e))
        return false;
    s->turn = 0;
    for (size_t i = 0; i < s->tape_count; i++)
        if (!play(s, &sample, e))
            return false;
    for (size_t c = 0; c < s->copies; c++) {
        bool same;
        if (!parts_compare(&s->parts, c, find_set(s, period - s->copies + c), &same, e))
            return false;
        if (!same)
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
    s->is_known = false;
    s->samples = 0;
    if (!reset(s, e) || !check_tape(s->original, &options, &result, e))
        return false;
    if (result.verdict != CHECK_PASS)
        return err_set(e, EXIT_WRONG, "%.250s", result.message);
    if (s->options.unordered || s->options.fresh)
        return reset(s, e);
    if (!check_plays(s, e))
        return false;
    s->is_known = !s->parts.in_place;
    return s->is_known || reset(s, e);
}

/* Nothing but the outputs was written to. */
static bool check_rest(subject *s, err *e) {
    for (size_t i = 0; i < s->parts.count; i++) {
        const part *p = &s->parts.items[i];
        ptrdiff_t at;
        for (size_t c = 0; c <= p->copy_count; c++)
            if (!buffer_check_guards(part_get_copy(p, c), &at, e))
                return false;
        if (p->is_written || p->is_drawn)
            continue;
        uint8_t *left = array_new(p->bytes + 1, 1);
        bool ok = buffer_download(p->original, p->from, left, p->bytes, e);
        if (ok && memcmp(left, p->contents, p->bytes) != 0)
            ok = err_set(e, EXIT_WRONG, "a timed run changed its input '%s'", p->original->label);
        free(left);
        if (!ok)
            return false;
    }
    return true;
}

bool subject_check_last(subject *s, err *e) {
    if (s->options.fresh)
        return check_rest(s, e) && audit(s, e) && subject_check(s, e);
    if (!s->is_known)
        return subject_check(s, e);
    if (!check_rest(s, e))
        return false;
    /* The last plays: their numbers, as if all had been played once more before. */
    size_t next = (s->turn + s->tape_count) * s->repeats;
    for (size_t k = next - s->copies; k < next; k++) {
        bool same;
        if (!parts_compare(&s->parts, k % s->copies, find_set(s, k), &same, e))
            return false;
        if (!same)
            return refuse_timed(s, "its outputs", e);
    }
    return true;
}
