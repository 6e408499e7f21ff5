/* proof: see proof.h. Knows no files and no projects: two open cases, and what differs. */
#include "proof.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "harness/base/array.h"
#include "harness/base/stats.h"
#include "harness/device/device.h"

static const char *const kind_names[CHANGE_KINDS] = {
    "deleted",  "looser",  "oracle",    "cases",   "unread", "inputs", "launch",
    "settings", "renamed", "rewritten", "tighter", "more",   "new"};

const char *change_get_name(change_kind k) {
    return kind_names[k];
}

bool change_find(const char *name, change_kind *k) {
    for (int i = 0; i < CHANGE_KINDS; i++)
        if (strcmp(kind_names[i], name) == 0) {
            *k = (change_kind)i;
            return true;
        }
    return false;
}

static change *add(change_list *l, change_kind kind, const char *about, double weight,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

static change *add(change_list *l, change_kind kind, const char *about, double weight,
                   const char *format, ...) {
    change *c = ARRAY_ADD(l->items, l->count, l->room);
    *c = (change){.kind = kind, .weight = weight};
    snprintf(c->about, sizeof c->about, "%.63s", about);
    va_list list;
    va_start(list, format);
    vsnprintf(c->text, sizeof c->text, format, list);
    va_end(list);
    return c;
}

/* Inputs -------------------------------------------------------------------------------------- */

/* A buffer that the tape reads as it is before the first launch. */
typedef struct {
    buffer *buffer;
    elem type;
    uint8_t *data;
} input;

typedef struct {
    input *items;
    size_t count, room;
} input_list;

/* Do launches of a tape, from one up to another, touch a buffer in this way? */
static bool is_touched(const tape *t, size_t from, size_t to, const buffer *b, unsigned access) {
    for (size_t i = from; i < to; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++) {
            const binding *a = &t->launches[i].args[j];
            if (a->kind == BIND_BUFFER && a->at.buffer == b && (a->access & access))
                return true;
        }
    return false;
}

/* The one of another list with this one's label, the second of the second; or the one in its place, if none has. */
static const input *find_input(const input_list *l, const input_list *of, size_t at) {
    const char *label = of->items[at].buffer->label;
    size_t number = 0, mine = 0;
    for (size_t i = 0; i < at; i++)
        number += strcmp(of->items[i].buffer->label, label) == 0;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].buffer->label, label) == 0 && mine++ == number)
            return &l->items[i];
    return mine == 0 && l->count == of->count ? &l->items[at] : NULL;
}

static bool has_input(const input_list *l, const buffer *b) {
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].buffer == b)
            return true;
    return false;
}

static bool list_inputs(const tape *t, input_list *out, err *e) {
    for (size_t i = 0; i < t->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++) {
            const binding *a = &t->launches[i].args[j];
            if (a->kind != BIND_BUFFER || !(a->access & ACCESS_READ) ||
                is_touched(t, 0, i, a->at.buffer, ACCESS_WRITE) || has_input(out, a->at.buffer))
                continue;
            input *in = ARRAY_ADD(out->items, out->count, out->room);
            *in = (input){a->at.buffer, a->type, array_new(a->at.buffer->bytes + 1, 1)};
            if (!buffer_download(in->buffer, 0, in->data, in->buffer->bytes, e))
                return false;
        }
    return true;
}

static void free_inputs(input_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].data);
    free(l->items);
}

typedef struct {
    double least, most;
    size_t count, different;
} range;

static range find_range(const input *in) {
    range r = {.count = in->buffer->bytes / elem_get_bytes(in->type)};
    double *values = array_new(r.count + 1, sizeof *values);
    size_t known = 0;
    for (size_t i = 0; i < r.count; i++)
        if (!isnan(values[known] = elem_read(in->type, in->data, i)))
            known++;
    stats_sort(values, known);
    for (size_t i = 0; i < known; i++)
        r.different += i == 0 || values[i] > values[i - 1];
    r.least = known ? values[0] : NAN;
    r.most = known ? values[known - 1] : NAN;
    free(values);
    return r;
}

static void print_range(const range *r, char *text, size_t size) {
    if (r->different == 1)
        snprintf(text, size, "%.4g alone", r->most);
    else
        snprintf(text, size, "%zu different values from %.4g to %.4g", r->different, r->least,
                 r->most);
}

/* Are the bytes the same whatever the seed is? Then they were not drawn. */
static bool is_fixed(const kernel_case *c, const input_list *l, size_t at, bool *fixed, err *e) {
    const input *in = &l->items[at];
    kernel_case again = *c;
    input_list other = {.count = 0};
    again.tape = NULL;
    again.buffer_count = 0;
    bool ok = case_open(&again, c->tape->lib, c->seed + 1, e) && list_inputs(again.tape, &other, e);
    const input *same = ok ? find_input(&other, l, at) : NULL;
    *fixed = same && same->buffer->bytes == in->buffer->bytes &&
             memcmp(same->data, in->data, in->buffer->bytes) == 0;
    free_inputs(&other);
    case_close(&again);
    return ok;
}

/* Were the same buffers made in the same order? If not, the numbers of the seed went to others. */
static bool is_same_order(const kernel_case *was, const kernel_case *now) {
    bool same = was->buffer_count == now->buffer_count;
    for (size_t i = 0; same && i < was->buffer_count; i++)
        same = strcmp(was->buffers[i]->label, now->buffers[i]->label) == 0 &&
               was->buffers[i]->bytes == now->buffers[i]->bytes;
    return same;
}

/* Other numbers of the same kind are no change. */
static bool compare_contents(const kernel_case *was, const kernel_case *now, const input *a,
                             const input_list *l, size_t at, change_list *out, err *e) {
    const input *b = &l->items[at];
    const range x = find_range(a), y = find_range(b);
    const bool narrower =
        2 * y.different < x.different || 2 * (y.most - y.least) < x.most - x.least;
    bool fixed = false;
    char before[96], after[96];
    if (!narrower && !is_same_order(was, now) && !is_fixed(now, l, at, &fixed, e))
        return false;
    if (!narrower && !fixed && !is_same_order(was, now))
        return true;
    print_range(&x, before, sizeof before);
    print_range(&y, after, sizeof after);
    if (strcmp(before, after) == 0)
        add(out, CHANGE_INPUTS, a->buffer->label, 0, "other values of %s, in the same range: %s",
            a->buffer->label, after);
    else
        add(out, CHANGE_INPUTS, a->buffer->label, narrower ? 1 : 0, "%s holds %s, before %s",
            a->buffer->label, after, before);
    return true;
}

/* Compares the inputs and gives those of the older version to the newer one, where they fit. */
static bool exchange_inputs(const kernel_case *was, kernel_case *now, change_list *out, err *e) {
    input_list before = {.count = 0}, after = {.count = 0};
    bool ok = list_inputs(was->tape, &before, e) && list_inputs(now->tape, &after, e);
    for (size_t i = 0; ok && i < after.count; i++) {
        const input *b = &after.items[i], *a = find_input(&before, &after, i);
        if (a && a->type == b->type && a->buffer->bytes == b->buffer->bytes &&
            memcmp(a->data, b->data, a->buffer->bytes) != 0)
            ok = compare_contents(was, now, a, &after, i, out, e) &&
                 buffer_upload(b->buffer, 0, a->data, a->buffer->bytes, e);
    }
    free_inputs(&before);
    free_inputs(&after);
    return ok;
}

/* Launches ------------------------------------------------------------------------------------- */

static void print_size(const size3 *s, char *text, size_t size) {
    snprintf(text, size, s->z > 1 ? "%ux%ux%u" : s->y > 1 ? "%ux%u" : "%u", s->x, s->y, s->z);
}

static bool is_same_size(const size3 *a, const size3 *b) {
    return a->x == b->x && a->y == b->y && a->z == b->z;
}

static void compare_grid(const launch *a, const launch *b, change_list *out) {
    const size3 x = launch_get_groups(a), y = launch_get_groups(b);
    char was[3][48], now[3][48];
    const bool exact = a->grid_is_threads || b->grid_is_threads;
    print_size(&x, was[0], sizeof was[0]);
    print_size(&y, now[0], sizeof now[0]);
    print_size(&a->group, was[1], sizeof was[1]);
    print_size(&b->group, now[1], sizeof now[1]);
    print_size(exact ? &a->grid : &(size3){0, 0, 0}, was[2], sizeof was[2]);
    print_size(exact ? &b->grid : &(size3){0, 0, 0}, now[2], sizeof now[2]);
    if (!is_same_size(&x, &y) || !is_same_size(&a->group, &b->group))
        add(out, CHANGE_LAUNCH, "grid", 0, "%s threadgroup%s of %s threads, before %s of %s",
            now[0], strcmp(now[0], "1") == 0 ? "" : "s", now[1], was[0], was[1]);
    else if (exact && (strcmp(was[2], now[2]) != 0 || a->grid_is_threads != b->grid_is_threads))
        add(out, CHANGE_LAUNCH, "grid", 0, "a grid of %s %s, before %s %s", now[2],
            b->grid_is_threads ? "threads" : "threadgroups", was[2],
            a->grid_is_threads ? "threads" : "threadgroups");
    for (int i = 0; i < LAUNCH_THREADGROUPS; i++)
        if (a->threadgroup_bytes[i] != b->threadgroup_bytes[i])
            add(out, CHANGE_LAUNCH, "threadgroup", 0,
                "%u bytes of threadgroup memory %d, before %u", b->threadgroup_bytes[i], i,
                a->threadgroup_bytes[i]);
}

static void compare_constants(const tape *s, const launch *a, const tape *t, const launch *b,
                              change_list *out) {
    const constant_value *x, *y;
    const size_t count = library_get_constants(s->lib, a->pipeline, &x);
    bool same = count == library_get_constants(t->lib, b->pipeline, &y);
    for (size_t i = 0; same && i < count; i++)
        same = x[i].index == y[i].index && x[i].type == y[i].type && x[i].bits == y[i].bits;
    if (!same)
        add(out, CHANGE_LAUNCH, "constants", 0, "other function constants");
}

static const char *get_access(const binding *b) {
    static const char *const names[] = {"not bound", "in", "out", "inout"};
    return b->kind == BIND_BYTES ? "a value" : names[b->access];
}

static void print_scalar(const launch *l, const binding *b, char *text, size_t size) {
    const void *at = l->inline_bytes + b->inline_at;
    if (b->inline_bytes == elem_get_bytes(b->type))
        snprintf(text, size, "%.6g", elem_read(b->type, at, 0));
    else if (b->inline_bytes == 4)
        snprintf(text, size, "%u", *(const uint32_t *)at);
    else
        snprintf(text, size, "%u bytes", b->inline_bytes);
}

static void compare_argument(const launch *x, const launch *y, int index, change_list *out) {
    const binding *a = &x->args[index], *b = &y->args[index];
    const char *label = b->kind == BIND_BUFFER   ? b->at.buffer->label
                        : a->kind == BIND_BUFFER ? a->at.buffer->label
                                                 : "";
    char about[64], before[40], after[40];
    snprintf(about, sizeof about, "buffer %d%s%.40s", index, *label ? ", " : "", label);
    if (a->kind == BIND_BUFFER && b->kind == BIND_BUFFER && a->access == ACCESS_WRITE &&
        b->access == ACCESS_BOTH)
        add(out, CHANGE_LOOSER, about, 1,
            "%s is inout, before out: what the kernel does not write is compared as it was", label);
    else if (a->kind != b->kind || (a->kind == BIND_BUFFER && a->access != b->access))
        add(out, CHANGE_LAUNCH, about, 1, "%s is %s, before %s", about, get_access(b),
            get_access(a));
    else if (a->kind == BIND_BUFFER && (a->type != b->type || a->at.bytes != b->at.bytes))
        add(out, CHANGE_LAUNCH, about, 1, "%s is %s of %zu bytes, before %s of %zu", about,
            elem_get_name(b->type), b->at.bytes, elem_get_name(a->type), a->at.bytes);
    else if (a->kind == BIND_BYTES &&
             (a->inline_bytes != b->inline_bytes ||
              memcmp(x->inline_bytes + a->inline_at, y->inline_bytes + b->inline_at,
                     a->inline_bytes) != 0)) {
        print_scalar(x, a, before, sizeof before);
        print_scalar(y, b, after, sizeof after);
        add(out, CHANGE_LAUNCH, about, 0, "%s is %s, before %s", about, after, before);
    }
    if (b->kind == BIND_BUFFER && y->may_overread & ~x->may_overread & 1u << index)
        add(out, CHANGE_LOOSER, about, 1, "loads past the end of %s are no findings any more",
            label);
}

static void compare_launches(const tape *s, const tape *t, change_list *out) {
    if (s->count != t->count)
        add(out, CHANGE_LAUNCH, "", 2, "%zu launches, before %zu", t->count, s->count);
    for (size_t i = 0; s->count == t->count && i < s->count; i++) {
        const launch *a = &s->launches[i], *b = &t->launches[i];
        compare_grid(a, b, out);
        compare_constants(s, a, t, b, out);
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            compare_argument(a, b, j, out);
    }
}

/* Outputs -------------------------------------------------------------------------------------- */

/* What an oracle expects of an output. */
typedef struct {
    const char *label;
    elem type;
    expected want;
    bool flushes;   /* denormals */
    bool is_result; /* no later launch reads it */
} answer;

typedef struct {
    answer *items;
    size_t count, room;
} answer_list;

/* Puts what is expected into the buffer, for the launches that follow. */
static bool store(const binding *b, const expected *want, err *e) {
    uint8_t *data = array_new(b->at.bytes + 8, 1);
    for (size_t i = 0; i < want->count; i++)
        elem_write(b->type, data, i, want->value[i]);
    bool ok = buffer_upload(b->at.buffer, b->at.offset, data, b->at.bytes, e);
    free(data);
    return ok;
}

static bool ask(const tape *t, answer_list *out, err *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < t->count; i++) {
        const launch *l = &t->launches[i];
        oracle_io io;
        ok = check_expect(l, &io, e);
        for (int j = 0; ok && j < LAUNCH_BUFFERS; j++) {
            const binding *b = &l->args[j];
            if (!io.out[j].value)
                continue;
            answer *a = ARRAY_ADD(out->items, out->count, out->room);
            *a = (answer){.label = b->at.buffer->label,
                          .type = b->type,
                          .want = io.out[j],
                          .flushes = l->pipeline->flushes_denormals,
                          .is_result = !is_touched(t, i + 1, t->count, b->at.buffer, ACCESS_READ)};
            ok = i + 1 == t->count || store(b, &a->want, e);
            io.out[j] = (expected){.count = 0};
        }
        check_free_expected(&io);
    }
    return ok;
}

static void free_answers(answer_list *l) {
    for (size_t i = 0; i < l->count; i++) {
        oracle_io io = {.out[0] = l->items[i].want};
        check_free_expected(&io);
    }
    free(l->items);
}

static const answer *find_answer(const answer_list *l, const char *label, size_t number) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].label, label) == 0 && number-- == 0)
            return &l->items[i];
    return NULL;
}

static double get_tolerance(const answer *a, size_t i) {
    return compare_get_tolerance(a->type, &a->want, i, a->flushes);
}

/* Root of the mean of the squares of what is finite. */
static double get_magnitude(const answer *a) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < a->want.count; i++)
        if (isfinite(a->want.value[i])) {
            sum += a->want.value[i] * a->want.value[i];
            count++;
        }
    return count ? sqrt(sum / (double)count) : 0;
}

#define MOST_RATIO 1.01 /* another order of operations is no change */

/* How one version's expectations of an output compare with the other's, over the elements of both. */
typedef struct {
    size_t different,
        example; /* elements that should hold another value, and the one that is furthest */
    double looser, tighter;         /* the largest tolerance / what it was, and the smallest */
    size_t at;                      /* the looser element that matters most, and */
    double weight, ratio, distance; /* by how much, and its ratio; of the example */
} difference;

static bool is_same_value(double a, double b, double magnitude) {
    if (!isfinite(a) || !isfinite(b))
        return a == b || (isnan(a) && isnan(b));
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), magnitude);
}

/* The tolerance of another value is taken relative to the values, and may double. */
static difference compare_values(const answer *was, const answer *now, size_t count) {
    const double magnitude = get_magnitude(was), scale = magnitude / get_magnitude(now);
    difference d = {.looser = 1, .tighter = 1};
    for (size_t i = 0; i < count; i++) {
        const double x = was->want.value[i], y = now->want.value[i];
        const double before = get_tolerance(was, i), after = get_tolerance(now, i);
        double ratio = before == after ? 1 : after / before; /* infinite where it was 0 */
        const double distance = isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
        if (!is_same_value(x, y, magnitude) && (d.different++ == 0 || distance > d.distance)) {
            d.example = i;
            d.distance = distance;
        }
        if (!is_same_value(x, y, 0)) {
            ratio *= scale > 0 && isfinite(scale) ? scale : 1;
            ratio = isfinite(ratio) && (ratio > 2 || ratio < 0.5) ? ratio : 1;
        }
        const double size = fmax(fabs(x), magnitude),
                     weight = size > (double)FLT_MIN ? after / size : 0;
        if (ratio > MOST_RATIO && (d.looser <= MOST_RATIO || weight > d.weight)) {
            d.at = i;
            d.weight = weight;
            d.ratio = ratio;
        }
        d.looser = fmax(d.looser, ratio);
        d.tighter = fmin(d.tighter, ratio);
    }
    return d;
}

/* Two digits, in words that one reads at a glance: "1.8 times", "400 thousand times". */
static void print_ratio(double ratio, char *text, size_t size) {
    static const char *const words[] = {"", " thousand", " million", " billion"};
    int word = 0;
    if (isinf(ratio) || ratio >= 1e12) {
        snprintf(text, size,
                 isinf(ratio) ? "every bit had to agree" : "more than a trillion times as much");
        return;
    }
    for (; ratio >= 1000 && word < 3; word++)
        ratio /= 1000;
    const double unit = ratio < 100 ? 1 : 10;
    snprintf(text, size, ratio < 10 ? "%.2g%s times as much" : "%.0f%s times as much",
             ratio < 10 ? ratio : round(ratio / unit) * unit, words[word]);
}

static void set_why(change *c, const expected *want) {
    const char *why = want->why ? want->why : "";
    if (strncmp(why, "derived from ", 13) == 0)
        why += 13;
    snprintf(c->why, sizeof c->why, "%.*s", (int)strcspn(why, ";"), why);
}

static void compare_answers(const answer *was, const answer *now, change_list *out) {
    const expected *a = &was->want, *b = &now->want;
    const size_t count = a->count < b->count ? a->count : b->count;
    const difference d = compare_values(was, now, count);
    const double before = compare_get_most_together(a), after = compare_get_most_together(b);
    char ratio[64];
    if (b->count < a->count)
        add(out, CHANGE_LOOSER, was->label, INFINITY, "%zu elements of %s are compared, before %zu",
            b->count, was->label, a->count);
    if (d.different)
        add(out, CHANGE_ORACLE, was->label, (double)d.different / (double)count,
            "other values of %s are expected: element %zu should be %.9g, before %.9g; %zu of %zu "
            "differ",
            was->label, d.example, b->value[d.example], a->value[d.example], d.different, count);
    if (d.looser > MOST_RATIO) {
        print_ratio(d.ratio, ratio, sizeof ratio);
        set_why(add(out, CHANGE_LOOSER, was->label, d.weight,
                    "%s may be off by %.2g where %.3g is expected, before by %.2g: %s", was->label,
                    get_tolerance(now, d.at), b->value[d.at], get_tolerance(was, d.at), ratio),
                b);
    } else if (d.tighter < 1 / MOST_RATIO)
        set_why(add(out, CHANGE_TIGHTER, was->label, 1 / d.tighter,
                    "%s may be off by less than before, down to %.2g of it", was->label, d.tighter),
                b);
    if (after > before * MOST_RATIO)
        add(out, CHANGE_LOOSER, "together", after,
            "the errors of %s together are %s, before to "
            "%.2g of the tolerance",
            was->label, isinf(after) ? "not limited any more" : "limited less", before);
}

static void compare_outputs(const answer_list *was, const answer_list *now, change_list *out) {
    for (size_t i = 0; i < was->count; i++) {
        const answer *a = &was->items[i];
        size_t number = 0;
        for (size_t j = 0; j < i; j++)
            number += strcmp(was->items[j].label, a->label) == 0;
        const answer *b = find_answer(now, a->label, number);
        if (!b && was->count == now->count && !find_answer(was, now->items[i].label, 0))
            b = &now->items[i]; /* it has another name */
        if (b)
            compare_answers(a, b, out);
        else if (a->is_result)
            add(out, CHANGE_LOOSER, a->label, INFINITY, "%s is not compared any more", a->label);
    }
}

bool proof_compare(const kernel_case *was, kernel_case *now, change_list *out, err *e) {
    answer_list before = {.count = 0}, after = {.count = 0};
    compare_launches(was->tape, now->tape, out);
    if (now->op->unordered && !was->op->unordered)
        add(out, CHANGE_LOOSER, "runs", 1, "two runs need not agree in every bit any more");
    bool ok = exchange_inputs(was, now, out, e) && ask(was->tape, &before, e) &&
              ask(now->tape, &after, e);
    if (ok)
        compare_outputs(&before, &after, out);
    free_answers(&before);
    free_answers(&after);
    return ok;
}
