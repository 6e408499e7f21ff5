/* check: see check.h. Owns the order of things: what is copied, poisoned, played and compared with
 * what. What a right value is belongs to compare.
 *
 * An output that shares bytes with something the same launch reads is not poisoned, because that
 * would destroy the input. */
#include "check.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agx/agx.h"
#include "harness/base/array.h"
#include "harness/base/remark.h"
#include "harness/base/size.h"
#include "harness/base/worker.h"
#include "harness/device/validation.h"

/* Warnings ------------------------------------------------------------------------------------- */

static bool compiles;

void warn_agx_compile(bool on) {
    compiles = on;
}

/* Opened once; NULL where it is not installed. */
static agx_compiler *get_compiler(void) {
    static agx_compiler *compiler;
    static bool is_tried;
    if (!is_tried)
        compiler = agx_compiler_new(NULL);
    is_tried = true;
    return compiler;
}

static void warn_agx(const msl_unit *u, const char *name, const constant_value *constants,
                     size_t count, size3 group, char *text, size_t size) {
    agx_facts f;
    err ignored;
    uint64_t threads = (uint64_t)group.x * group.y * group.z;
    if (threads <= AGX_FEWEST_THREADS || !get_compiler() ||
        !agx_compile(get_compiler(), u, name, constants, count,
                     compiles ? AGX_COMPILE : AGX_LOOK_UP, &f, NULL, &ignored) ||
        f.refusal[0] || threads <= f.threads)
        return;
    snprintf(text, size,
             "%.80s has threadgroups of %" PRIu64 " threads; on an M1 there is room for %" PRIu32
             " (%s: a prediction)",
             name, threads, f.threads, AGX_LABEL);
}

static void warn_fast_math(const msl_unit *u, char *text, size_t size) {
    remark_list list = {0};
    msl_check_fast_math(u, &list);
    remark_sort(&list);
    if (list.count)
        snprintf(text, size,
                 "%.80s:%d tests for a NaN or an infinity, which fast math may leave out",
                 list.items[0].file, list.items[0].line);
    remark_free(&list);
}

void warn_launch(const msl_unit *u, const char *name, const constant_value *constants, size_t count,
                 size3 group, math_mode math, char *text, size_t size) {
    text[0] = 0;
    warn_agx(u, name, constants, count, group, text, size);
    if (!text[0] && math == MATH_FAST)
        warn_fast_math(u, text, size);
}

/* About the first launch of a tape that there is something to say of. */
static void warn_tape(const tape *t, char *text, size_t size) {
    text[0] = 0;
    for (size_t i = 0; i < t->count && !text[0]; i++) {
        const launch *l = &t->launches[i];
        const math_mode math = l->pipeline->math;
        if ((uint64_t)l->group.x * l->group.y * l->group.z <= AGX_FEWEST_THREADS &&
            math != MATH_FAST)
            continue;
        const constant_value *constants;
        size_t count = library_get_constants(t->lib, l->pipeline, &constants);
        const msl_unit *u = library_find_unit(t->lib, library_get_file(t->lib, l->pipeline), NULL);
        if (u)
            warn_launch(u, l->pipeline->kernel, constants, count, l->group, math, text, size);
    }
}

/* Snapshots ------------------------------------------------------------------------------------ */

/* The bytes of every buffer that a launch touches, at one moment. Buffers are copied whole, so that a
 * write outside the bound slices shows. Of the caller's memory (STORAGE_NO_COPY, never written and maybe
 * a whole model) only the bound range is copied. */
typedef struct {
    buffer *buffer;
    size_t from, bytes; /* the range of the buffer that was copied */
    uint8_t *data;
} snapshot_part;

typedef struct {
    snapshot_part parts[LAUNCH_BUFFERS]; /* each buffer once */
    size_t count;
} snapshot;

/* Adds the buffer of a binding, or widens its range if it is there already. */
static void add_slice(snapshot *s, slice at) {
    bool is_whole = at.buffer->storage != STORAGE_NO_COPY;
    size_t from = is_whole ? 0 : at.offset,
           end = is_whole ? at.buffer->bytes : at.offset + at.bytes;
    for (size_t i = 0; i < s->count; i++) {
        snapshot_part *p = &s->parts[i];
        if (p->buffer != at.buffer)
            continue;
        size_t last = p->from + p->bytes > end ? p->from + p->bytes : end;
        p->from = p->from < from ? p->from : from;
        p->bytes = last - p->from;
        return;
    }
    s->parts[s->count++] = (snapshot_part){.buffer = at.buffer, .from = from, .bytes = end - from};
}

static bool snapshot_take(const launch *l, snapshot *s, err *e) {
    *s = (snapshot){.count = 0};
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (l->args[i].kind == BIND_BUFFER)
            add_slice(s, l->args[i].at);
    for (size_t i = 0; i < s->count; i++) {
        snapshot_part *p = &s->parts[i];
        p->data = malloc(p->bytes ? p->bytes : 1);
        if (!p->data)
            return err_set(e, EXIT_CANNOT, "no memory for a copy of buffer '%s' (%zu bytes)",
                           p->buffer->label, p->bytes);
        if (!buffer_download(p->buffer, p->from, p->data, p->bytes, e))
            return false;
    }
    return true;
}

static bool snapshot_restore(const snapshot *s, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        const snapshot_part *p = &s->parts[i];
        if (p->buffer->storage != STORAGE_NO_COPY &&
            !buffer_upload(p->buffer, p->from, p->data, p->bytes, e))
            return false;
    }
    return true;
}

static void snapshot_free(snapshot *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->parts[i].data);
    s->count = 0;
}

/* Where the snapshot holds a slice of a buffer of its launch. */
static const uint8_t *snapshot_find(const snapshot *s, slice at) {
    size_t i = 0;
    while (i < s->count && s->parts[i].buffer != at.buffer)
        i++;
    assert(i < s->count); /* a slice of a binding of this launch */
    return s->parts[i].data + (at.offset - s->parts[i].from);
}

/* Offset in the buffer of the first byte at or after `from` in which two snapshots of the same launch
 * differ; false if there is none. */
static bool snapshot_find_change(const snapshot_part *a, const snapshot_part *b, size_t from,
                                 size_t *at) {
    assert(a->buffer == b->buffer && a->from == b->from && a->bytes == b->bytes);
    enum { STEP = 4096 };
    size_t i = from > a->from ? from - a->from : 0;
    while (i < a->bytes) {
        size_t n = a->bytes - i < STEP ? a->bytes - i : STEP;
        if (memcmp(a->data + i, b->data + i, n) == 0) {
            i += n;
            continue;
        }
        while (a->data[i] == b->data[i])
            i++;
        *at = a->from + i;
        return true;
    }
    return false;
}

/* The oracle: what it reads and fills ---------------------------------------------------------- */

static bool make_expected(const binding *b, const void *contents, expected *out, err *e) {
    size_t count = b->at.bytes / elem_get_bytes(b->type);
    *out = (expected){.count = count, .terms = 1, .roundings = 4, .exact = !elem_is_float(b->type)};
    out->value = malloc(size_multiply(count + 1, sizeof *out->value));
    out->scale = malloc(size_multiply(count + 1, sizeof *out->scale));
    if (!out->value || !out->scale)
        return err_set(e, EXIT_CANNOT, "no memory for %zu expected values of '%s'", count,
                       b->at.buffer->label);
    for (size_t i = 0; i < count; i++) {
        out->value[i] = b->access == ACCESS_BOTH ? elem_read(b->type, contents, i) : NAN;
        out->scale[i] = NAN;
    }
    return true;
}

static bool is_written(const binding *b) {
    return b->kind == BIND_BUFFER && (b->access & ACCESS_WRITE);
}

static bool make_outputs(const launch *l, oracle_io *io, err *e) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (is_written(&l->args[i]) && !make_expected(&l->args[i], io->in[i], &io->out[i], e))
            return false;
    return true;
}

void check_free_expected(oracle_io *io) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        free(io->out[i].value);
        free(io->out[i].scale);
        free(io->out[i].flushed);
    }
}

/* Denormals of f32 arithmetic. A bf16 converts to an f32 of the same value, a half always to a
 * normal one. */
static bool is_denormal(elem type, const void *array, size_t i) {
    if (type != ELEM_F32 && type != ELEM_BF16)
        return false;
    double value = fabs(elem_read(type, array, i));
    return value > 0 && value < (double)FLT_MIN;
}

/* The contents with zeros of the same sign for denormals; NULL if there are none. */
static void *copy_flushed(elem type, const void *contents, size_t bytes) {
    size_t size = elem_get_bytes(type), count = contents ? bytes / size : 0;
    unsigned char *copy = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_denormal(type, contents, i))
            continue;
        if (!copy) {
            copy = array_new(1, bytes);
            memcpy(copy, contents, bytes);
        }
        elem_write(type, copy, i, copysign(0, elem_read(type, contents, i)));
    }
    return copy;
}

static bool call(const launch *l, oracle_io *io, err *e) {
    worker_note(WORKER_ORACLE);
    l->oracle(l, io);
    worker_note("");
    return !io->failure[0] || err_set(e, EXIT_USAGE, "%s", io->failure);
}

static bool ask_again_flushed(const launch *l, oracle_io *io, err *e) {
    oracle_io again = {0};
    void *copies[LAUNCH_BUFFERS] = {0};
    bool has_some = false, ok = true;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        copies[i] = copy_flushed(l->args[i].type, io->in[i], io->bytes[i]);
        again.in[i] = copies[i] ? copies[i] : io->in[i];
        again.bytes[i] = io->bytes[i];
        has_some = has_some || copies[i];
    }
    if (has_some && (ok = make_outputs(l, &again, e))) {
        ok = call(l, &again, e);
        for (int i = 0; i < LAUNCH_BUFFERS; i++) {
            io->out[i].flushed = again.out[i].value;
            again.out[i].value = NULL;
        }
    }
    check_free_expected(&again);
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        free(copies[i]);
    return ok;
}

/* Calls the oracle of a launch with the contents before it, to fill in what they should become. If the
 * pipeline flushes denormals and the inputs contain some, calls it again with zeros in their place: that
 * is expected.flushed. Free io either way. */
static bool ask_oracle(const launch *l, const snapshot *before, oracle_io *io, err *e) {
    bool has_output = false;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_BYTES) {
            io->in[i] = l->inline_bytes + b->inline_at;
            io->bytes[i] = b->inline_bytes;
        } else if (b->kind == BIND_BUFFER) {
            io->in[i] = snapshot_find(before, b->at);
            io->bytes[i] = b->at.bytes;
            has_output = has_output || is_written(b);
        }
    }
    if (!make_outputs(l, io, e))
        return false;
    if (!l->oracle)
        return !has_output ||
               err_set(e, EXIT_CANNOT, "a launch of %s has no oracle to compare it with",
                       l->pipeline->kernel);
    if (!call(l, io, e))
        return false;
    return !l->pipeline->flushes_denormals || ask_again_flushed(l, io, e);
}

bool check_expect(const launch *l, oracle_io *io, err *e) {
    snapshot now;
    *io = (oracle_io){.failure = ""};
    bool ok = snapshot_take(l, &now, e) && ask_oracle(l, &now, io, e);
    snapshot_free(&now);
    memset(io->in, 0, sizeof io->in);
    return ok;
}

/* One launch ----------------------------------------------------------------------------------- */

/* One launch under check. */
typedef struct {
    tape *tape;
    size_t index;
    const launch *launch;
    snapshot before, after, again;
    snapshot held; /* where bits may differ: what was there before the second run */
    oracle_io io;
    comparison worst;  /* of this launch's outputs */
    bool is_unordered; /* bits may differ from run to run */
    check_result *result;
} trial;

/* The launch is wrong: says so once and returns false, with e untouched. */
static bool refuse(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(trial *t, const char *format, ...) {
    check_result *r = t->result;
    assert(r->verdict == CHECK_PASS);
    r->verdict = CHECK_FAIL;
    int used = snprintf(r->message, sizeof r->message, "kernel %s", t->launch->pipeline->kernel);
    if (t->tape->count > 1)
        used += snprintf(r->message + used, sizeof r->message - (size_t)used,
                         " (launch %zu of %zu)", t->index + 1, t->tape->count);
    used += snprintf(r->message + used, sizeof r->message - (size_t)used, ": ");
    va_list args;
    va_start(args, format);
    vsnprintf(r->message + used, sizeof r->message - (size_t)used, format, args);
    va_end(args);
    return false;
}

static bool does_overlap(slice a, slice b) {
    return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

static bool is_poisoned(const launch *l, int index) {
    const binding *b = &l->args[index];
    if (b->kind != BIND_BUFFER || b->access != ACCESS_WRITE)
        return false;
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (l->args[i].kind == BIND_BUFFER && (l->args[i].access & ACCESS_READ) &&
            does_overlap(b->at, l->args[i].at))
            return false;
    return true;
}

/* An output as an earlier run could have left it: right values, one in four of them not where it belongs.
 * A kernel that looks at some to tell whether it has run before keeps others that are wrong. */
static bool fill_stale(const binding *b, const uint8_t *right, err *e) {
    size_t size = elem_get_bytes(b->type), count = b->at.bytes / size;
    uint8_t *stale = array_new(count + 1, size);
    uint64_t sum = count;
    memcpy(stale, right, count * size);
    for (size_t i = 0; i < count * size; i++)
        sum = sum * 31 + right[i];
    rng random = rng_new(sum, "stale"); /* the kernel cannot know which */
    size_t sure = count ? rng_next(&random) % count : 0;
    for (size_t i = 0; i < count; i++) {
        if (i != sure && rng_below(&random, 4) > 0)
            continue;
        uint8_t *one = stale + i * size;
        memcpy(one, right + (i + count / 2 + 1) % count * size, size);
        if (memcmp(one, right + i * size, size) == 0)
            one[size > 2 ? size / 2 : 0] ^= 0x10; /* a number near it, in every type */
    }
    bool ok = buffer_upload(b->at.buffer, b->at.offset, stale, count * size, e);
    free(stale);
    return ok;
}

/* Poisons the outputs, or fills them from a run before, and plays the launch as a command buffer of
 * its own. */
static bool play(trial *t, const snapshot *earlier, err *e) {
    const launch *l = t->launch;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        slice at = l->args[i].at;
        if (is_poisoned(l, i) &&
            (!buffer_fill_pattern(at.buffer, at.offset, at.bytes, POISON_PATTERN, e) ||
             (earlier && !fill_stale(&l->args[i], snapshot_find(earlier, at), e))))
            return false;
    }
    if (earlier && t->is_unordered && !snapshot_take(l, &t->held, e))
        return false;
    device *d = library_get_device(t->tape->lib);
    ticket k;
    play_times times;
    worker_note(WORKER_KERNEL);
    bool ok = device_submit(d, t->tape, t->index, 1, &k, e) && device_wait(d, &k, &times, e);
    worker_note("");
    if (!ok)
        return false;
    t->result->gpu_ns += times.gpu_ns;
    return true;
}

/* The functions below return false with the result refused, or with e set. */

static bool check_guards(trial *t, err *e) {
    for (size_t i = 0; i < t->before.count; i++) {
        const buffer *b = t->before.parts[i].buffer;
        ptrdiff_t at = 0;
        err why = {.code = EXIT_OK};
        if (buffer_check_guards(b, &at, &why))
            continue;
        if (why.code != EXIT_WRONG) {
            *e = why;
            return false;
        }
        if (at < 0)
            return refuse(t, "wrote outside '%s': %td bytes before its start", b->label, -at);
        return refuse(t, "wrote outside '%s': %td bytes past its end; it has %zu", b->label, at,
                      b->bytes);
    }
    return true;
}

/* The binding that a byte of a buffer belongs to; a written one if several do; -1 for none. */
static int find_binding(const launch *l, const buffer *b, size_t at) {
    int found = -1;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *a = &l->args[i];
        if (a->kind != BIND_BUFFER || a->at.buffer != b || at < a->at.offset ||
            at - a->at.offset >= a->at.bytes)
            continue;
        if (is_written(a))
            return i;
        found = i;
    }
    return found;
}

/* Element `element` of binding a in a snapshot. */
static double read_element(const snapshot *s, const binding *a, size_t element) {
    return elem_read(a->type, snapshot_find(s, a->at), element);
}

static bool refuse_change(trial *t, const buffer *b, size_t at) {
    int index = find_binding(t->launch, b, at);
    if (index < 0)
        return refuse(t, "changed byte %zu of '%s', outside the slice that is bound", at, b->label);
    const binding *a = &t->launch->args[index];
    size_t element = (at - a->at.offset) / elem_get_bytes(a->type);
    return refuse(t, "changed its input '%s' (buffer %d): element %zu was %.9g and is %.9g",
                  b->label, index, element, read_element(&t->before, a, element),
                  read_element(&t->after, a, element));
}

/* Every byte that is not in a slice bound for writing is what it was. */
static bool check_untouched(trial *t) {
    for (size_t i = 0; i < t->before.count; i++) {
        const buffer *b = t->before.parts[i].buffer;
        size_t at = 0;
        while (snapshot_find_change(&t->before.parts[i], &t->after.parts[i], at, &at)) {
            int index = find_binding(t->launch, b, at);
            if (index < 0 || !is_written(&t->launch->args[index]))
                return refuse_change(t, b, at);
            at = t->launch->args[index].at.offset + t->launch->args[index].at.bytes;
        }
    }
    return true;
}

static bool refuse_output(trial *t, int index, const comparison *c) {
    const binding *b = &t->launch->args[index];
    const bad_element *first = &c->first[0];
    if (first->unwritten)
        return refuse(t,
                      "'%s' (buffer %d): element %zu was never written, expected %.9g; %zu of %zu "
                      "elements are wrong, %zu never written",
                      b->at.buffer->label, index, first->index, first->want, c->bad, c->count,
                      c->unwritten);
    const expected *want = &t->io.out[index];
    double stored = elem_get_roundoff(b->type) * fabs(first->want);
    char how[256];
    if (want->exact || !isfinite(first->want))
        snprintf(how, sizeof how, "%s",
                 want->exact ? "every bit must agree" : "there is no tolerance for such a value");
    else
        snprintf(how, sizeof how, "tolerance: %.3g for arithmetic and %.3g to store %s (%s)",
                 first->tolerance - stored, stored, elem_get_name(b->type),
                 want->why ? want->why : "terms and roundings of its oracle");
    return refuse(t,
                  "'%s' (buffer %d): element %zu is %.9g, expected %.9g within %.3g; %zu of %zu "
                  "elements are wrong; %s",
                  b->at.buffer->label, index, first->index, first->got, first->want,
                  first->tolerance, c->bad, c->count, how);
}

/* In checked mode the launch is played once more, to tell which line stored the first wrong element. */
static void locate(trial *t, int index, size_t element) {
    err unused;
    device *d = library_get_device(t->tape->lib);
    launch *l = &t->tape->launches[t->index];
    const binding *b = &l->args[index];
    const size_t size = elem_get_bytes(b->type);
    if (!device_get_facts(d)->validates || device_get_facts(d)->kind != DEVICE_SOFT)
        return;
    l->watched = (slice){b->at.buffer, b->at.offset + element * size, size};
    bool ok = snapshot_restore(&t->before, &unused) && play(t, NULL, &unused);
    l->watched = (slice){.bytes = 0};
    const finding_list *found = device_get_findings(d);
    for (size_t i = 0; ok && i < found->count; i++) {
        const finding *f = &found->items[i];
        size_t used = strlen(t->result->message);
        if (f->what == FINDING_WRONG && f->line > 0)
            snprintf(t->result->message + used, sizeof t->result->message - used,
                     "; stored at %s:%d", f->file, f->line);
    }
}

static bool check_outputs(trial *t, err *e) {
    if (!ask_oracle(t->launch, &t->before, &t->io, e))
        return false;
    check_result *r = t->result;
    bool flushes = t->launch->pipeline->flushes_denormals;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &t->launch->args[i];
        if (!is_written(b))
            continue;
        comparison c;
        compare_output(b->type, &t->io.out[i], snapshot_find(&t->after, b->at),
                       is_poisoned(t->launch, i), flushes, &c);
        if (c.bad > 0 || t->worst.count == 0 || c.margin > t->worst.margin)
            t->worst = c;
        if (c.bad > 0 || c.margin > r->worst.margin || r->buffer[0] == 0) {
            r->worst = c;
            snprintf(r->buffer, sizeof r->buffer, "'%s' (buffer %d)", b->at.buffer->label, i);
        }
        if (c.bad > 0) {
            refuse_output(t, i, &c);
            if (!c.first[0].unwritten)
                locate(t, i, c.first[0].index);
            return false;
        }
        if (c.apart > 0)
            return refuse(t,
                          "'%s' (buffer %d): every element is within its tolerance, but those of "
                          "row %zu do not err by one factor, as they do where only the sum that "
                          "they share is off: something is computed with less precision",
                          b->at.buffer->label, i, c.apart_row);
        if (c.together > c.most_together)
            return refuse(t,
                          "'%s' (buffer %d): every element is within its tolerance, but together "
                          "they are off by %.3g of it (root mean square), where sums of floats are "
                          "off by less than %.3g: something is computed with less precision",
                          b->at.buffer->label, i, c.together, c.most_together);
    }
    return true;
}

static bool refuse_reading(trial *t, int index, size_t element) {
    const binding *a = &t->launch->args[index];
    return refuse(
        t,
        "reads '%s' (buffer %d), which it may only write: element %zu is %.9g if it was "
        "NaN before the run, and not if a result of an earlier run was there; validate on "
        "the software device names the line",
        a->at.buffer->label, index, element, read_element(&t->after, a, element));
}

static bool is_same(const snapshot *x, const snapshot *y, const binding *a, size_t element) {
    size_t size = elem_get_bytes(a->type);
    return memcmp(snapshot_find(x, a->at) + element * size,
                  snapshot_find(y, a->at) + element * size, size) == 0;
}

/* Two runs from the same inputs differ in byte `at` of buffer b, although only what was in the outputs
 * before them was not the same. Was it that? Then the first run can be repeated. */
static bool refuse_difference(trial *t, const buffer *b, size_t at, err *e) {
    int index = find_binding(t->launch, b, at);
    if (index < 0)
        return refuse(t, "two runs from the same state differ in byte %zu of '%s'", at, b->label);
    const binding *a = &t->launch->args[index];
    size_t element = (at - a->at.offset) / elem_get_bytes(a->type);
    double is = read_element(&t->again, a, element);
    snapshot_free(&t->again);
    if (!snapshot_restore(&t->before, e) || !play(t, NULL, e) ||
        !snapshot_take(t->launch, &t->again, e))
        return false;
    if (is_poisoned(t->launch, index) && is_same(&t->after, &t->again, a, element))
        return refuse_reading(t, index, element);
    return refuse(t,
                  "two runs from the same state differ: element %zu of '%s' (buffer %d) is "
                  "%.9g, then %.9g",
                  element, b->label, index, read_element(&t->after, a, element), is);
}

/* Where bits may differ, no element of an output is what it was before the run. */
static bool check_kept(trial *t) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *a = &t->launch->args[i];
        size_t count = is_poisoned(t->launch, i) ? a->at.bytes / elem_get_bytes(a->type) : 0;
        for (size_t k = 0; k < count; k++)
            if (is_same(&t->held, &t->again, a, k) && !is_same(&t->after, &t->again, a, k))
                return refuse_reading(t, i, k);
    }
    return true;
}

/* Runs again with something else in the outputs: the same bits. */
static bool check_repeat(trial *t, err *e) {
    if (!snapshot_restore(&t->before, e) || !play(t, &t->after, e) || !check_guards(t, e) ||
        !snapshot_take(t->launch, &t->again, e))
        return false;
    for (size_t i = 0; i < t->after.count && !t->is_unordered; i++) {
        size_t at;
        if (snapshot_find_change(&t->after.parts[i], &t->again.parts[i], 0, &at))
            return refuse_difference(t, t->after.parts[i].buffer, at, e);
    }
    return !t->is_unordered || check_kept(t);
}

static void trial_free(trial *t) {
    snapshot_free(&t->before);
    snapshot_free(&t->after);
    snapshot_free(&t->again);
    snapshot_free(&t->held);
    check_free_expected(&t->io);
}

/* False with the result refused, or with e set. Leaves the buffers as the launch left them. */
static bool check_launch(tape *t, size_t index, const check_options *o, check_result *out, err *e) {
    trial x = {.tape = t,
               .index = index,
               .launch = &t->launches[index],
               .is_unordered = o->unordered,
               .result = out};
    bool ok = snapshot_take(x.launch, &x.before, e) && play(&x, NULL, e) && check_guards(&x, e) &&
              snapshot_take(x.launch, &x.after, e) && check_untouched(&x) && check_outputs(&x, e) &&
              check_repeat(&x, e);
    if (o->observe && (ok || out->verdict == CHECK_FAIL))
        o->observe(o->context, &(check_step){.launch = x.launch,
                                             .part = tape_get_part(t, index),
                                             .index = index,
                                             .count = t->count,
                                             .worst = &x.worst,
                                             .passed = ok});
    trial_free(&x);
    return ok;
}

/* Tapes and cases ------------------------------------------------------------------------------ */

bool check_tape(tape *t, const check_options *o, check_result *out, err *e) {
    *out = (check_result){.verdict = CHECK_PASS};
    if (t->count == 0)
        return err_set(e, EXIT_CANNOT, "there is nothing to check: the tape has no launches");
    bool ok = true, explained = t->explains;
    t->explains = true;
    for (size_t i = 0; ok && i < t->count; i++)
        ok = check_launch(t, i, o, out, e);
    t->explains = explained;
    return ok || out->verdict == CHECK_FAIL;
}

bool check_skip(check_result *out, const char *format, ...) {
    *out = (check_result){.verdict = CHECK_SKIP};
    va_list args;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    return true;
}

/* What the device's validation has found fails a check that passed. */
static void add_findings(const device *d, check_result *out) {
    const finding_list *found = device_get_findings(d);
    bool is_strict = validation_is_strict();
    if (out->verdict != CHECK_PASS || finding_count_failing(found, is_strict) == 0)
        return;
    const finding *f = found->items;
    while (!is_strict && finding_is_mild(f->what))
        f++;
    out->verdict = CHECK_FAIL;
    if (f->line > 0)
        snprintf(out->message, sizeof out->message, "%s at %s:%d: %.300s",
                 finding_get_name(f->what), f->file, f->line, f->text);
    else
        snprintf(out->message, sizeof out->message, "%s: %.300s", finding_get_name(f->what),
                 f->text);
}

bool check_case(library *lib, const kernel_case *wanted, const check_stand_in *other, uint64_t seed,
                check_result *out, err *e) {
    kernel_case c = *wanted;
    check_options options = {.unordered = c.op->unordered};
    device *d = library_get_device(lib);
    device_clear_findings(d);
    err reason;
    if (!op_takes(c.op, c.kernel, &c.shape, &reason) ||
        !device_offers(device_get_facts(d), c.kernel->needs, &reason))
        return check_skip(out, "%s", reason.text);
    *out = (check_result){.verdict = CHECK_PASS};
    bool ok = case_open(&c, lib, seed, e);
    tape *played = ok && other ? other->record(other->context, &c, out, e) : c.tape;
    if (ok && !played)
        ok = out->verdict == CHECK_SKIP;
    else if (ok && !device_can_play(played, &reason))
        check_skip(out, "%s", reason.text);
    else
        ok = ok && check_tape(played, &options, out, e);
    if (ok && !other)
        warn_tape(c.tape, out->warning, sizeof out->warning);
    if (played != c.tape)
        tape_free(played);
    case_close(&c);
    if (ok)
        add_findings(d, out);
    return ok;
}

static int by_work(const void *a, const void *b) {
    const kernel_case *x = a, *y = b;
    double p = shape_count_values(&x->shape), q = shape_count_values(&y->shape);
    return p != q ? (p > q) - (p < q) : strcmp(x->name, y->name);
}

void check_sort_cases(kernel_case *cases, size_t count) {
    qsort(cases, count, sizeof *cases, by_work);
}
