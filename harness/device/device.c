/* device: what all devices share. Choosing one, buffers with guard zones around them, and checking launches
 * against signatures before anything runs; the rest goes through device_ops. */
#include "device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "tape.h"

/* Math modes ----------------------------------------------------------------------------------- */

static const char *const mode_names[MATH_COUNT] = {
    [MATH_SAFE] = "safe", [MATH_RELAXED] = "relaxed", [MATH_FAST] = "fast"};

const char *math_mode_get_name(math_mode m) {
    assert(m < MATH_COUNT);
    return mode_names[m];
}

bool math_mode_find(const char *name, math_mode *m, err *e) {
    for (math_mode i = 0; i < MATH_COUNT; i++)
        if (strcmp(mode_names[i], name) == 0) {
            *m = i;
            return true;
        }
    return err_set(e, EXIT_USAGE,
                   "no math mode is called '%.40s'; there are safe, relaxed and fast", name);
}

/* Fuse, reassociate, multiply by a reciprocal, take 0 for -0, use approximate functions; under fast
 * math also assume that there is no infinity and no NaN. Not -ffast-math: for a CPU that would also
 * link code which switches flushing on for the whole process. */
#define RELAXED                                                                                    \
    "-ffp-contract=fast", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros",          \
        "-fno-trapping-math", "-fapprox-func", "-DASSAY_FAST_MATH=1"

const char *const *math_mode_get_flags(math_mode m) {
    static const char *const flags[MATH_COUNT][MATH_FLAGS + 1] = {
        [MATH_SAFE] = {"-ffp-contract=off"},
        [MATH_RELAXED] = {RELAXED},
        [MATH_FAST] = {RELAXED, "-ffinite-math-only"}};
    assert(m < MATH_COUNT);
    return flags[m];
}

/* Choosing one --------------------------------------------------------------------------------- */

/* In the order in which `auto` tries them. A device that this build lacks says why. */
static const struct {
    const char *name;
    const device_ops *ops;
    const char *absent;
    device_kind kind;
} kinds[] = {
#if defined(ASSAY_METAL)
    {"metal", &metal_device_ops, NULL, DEVICE_METAL},
#elif defined(__APPLE__)
    {"metal", NULL, "this build was made without Metal", DEVICE_METAL},
#else
    {"metal", NULL, "Metal is on macOS only", DEVICE_METAL},
#endif
    {"cuda", &cuda_device_ops, NULL, DEVICE_CUDA},
    {"soft", &soft_device_ops, NULL, DEVICE_SOFT},
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static device *open_kind(int i, const char *wanted, const device_options *o, err *e) {
    if (!kinds[i].ops)
        return err_null(e, EXIT_CANNOT, "the device '%s' cannot be used: %s", kinds[i].name,
                        kinds[i].absent);
    if (*wanted && !kinds[i].ops->has_many)
        return err_null(e, EXIT_USAGE, "there is one device '%s': it is not picked with ':%.40s'",
                        kinds[i].name, wanted);
    device *d = array_new(1, sizeof *d);
    d->ops = kinds[i].ops;
    d->wanted = wanted;
    d->options = *o;
    d->facts.kind = kinds[i].kind;
    snprintf(d->facts.api, sizeof d->facts.api, "%s", kinds[i].name);
    d->facts.math = o->math;
    d->facts.language = o->language ? o->language : MSL_LANGUAGE;
    if (d->ops->open(d, e)) {
        snprintf(d->facts.spec, sizeof d->facts.spec, "%s%s%s", kinds[i].name, *wanted ? ":" : "",
                 wanted);
        d->wanted = "";
        return d;
    }
    free(d);
    return NULL;
}

device *device_open(const char *name, err *e) {
    return device_open_with(name, &(device_options){.flush_denormals = false}, e);
}

device *device_open_with(const char *name, const device_options *given, err *e) {
    device_options options = *given, *o = &options;
    const char *math = getenv("ASSAY_MATH");
    if ((!o->language && !msl_ask_language(&o->language, e)) ||
        (!o->math && math && *math && !math_mode_find(math, &o->math, e)))
        return NULL;
    if (!name)
        name = getenv("ASSAY_DEVICE");
    if (!name || !*name || strcmp(name, "auto") == 0) {
        device *d = NULL;
        err why; /* of the last kind: earlier failures do not matter if this one opens */
        for (int i = 0; i < KIND_COUNT && !d; i++)
            d = open_kind(i, "", o, &why);
        if (!d && e)
            *e = why;
        return d;
    }
    size_t length = strcspn(name, ":");
    for (int i = 0; i < KIND_COUNT; i++)
        if (strlen(kinds[i].name) == length && strncmp(name, kinds[i].name, length) == 0)
            return open_kind(i, name + length + (name[length] == ':'), o, e);
    return err_null(e, EXIT_USAGE,
                    "no device is called '%.60s'; there are soft, metal, cuda and auto", name);
}

void device_close(device *d) {
    if (!d)
        return;
    d->ops->close(d);
    free(d);
}

const device_facts *device_get_facts(const device *d) {
    return &d->facts;
}

msl_extras device_complete_extras(const device *d, const msl_extras *extras) {
    msl_extras complete = *extras;
    if (!complete.language)
        complete.language = d->facts.language;
    complete.is_apple = d->facts.kind == DEVICE_METAL;
    return complete;
}

bool device_describe(int i, const char **name, bool *available, err *why_not) {
    if (i < 0 || i >= KIND_COUNT)
        return false;
    *name = kinds[i].name;
    device *d = open_kind(i, "", &(device_options){.math = MATH_SAFE}, why_not);
    *available = d != NULL;
    device_close(d);
    return true;
}

/* Guard zones ------------------------------------------------------------------------------- */

static void fill_words(void *at, size_t bytes, uint16_t pattern) {
    unsigned char *p = at;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(i % 2 ? pattern >> 8 : pattern & 255);
}

/* Offset in a guard zone of the change nearest to the contents, or -1 if it is intact. */
static ptrdiff_t find_change(const unsigned char *zone, uint16_t pattern, bool is_front) {
    for (ptrdiff_t i = 0; i < BUFFER_GUARD_BYTES; i++) {
        ptrdiff_t at = is_front ? BUFFER_GUARD_BYTES - 1 - i : i;
        if (zone[at] != (at % 2 ? pattern >> 8 : pattern & 255))
            return at;
    }
    return -1;
}

/* The back guard starts on an even address: an odd byte count is followed by one free byte. */
static size_t find_back_guard(const buffer *b) {
    return BUFFER_GUARD_BYTES + (b->bytes + 1) / 2 * 2;
}

bool buffer_check_guards(const buffer *b, ptrdiff_t *at, err *e) {
    if (b->storage == STORAGE_NO_COPY || b->device->facts.exact_buffers)
        return true;
    buffer *raw = (buffer *)(uintptr_t)b; /* reading the device's copy changes nothing */
    unsigned char zone[BUFFER_GUARD_BYTES];
    if (!b->device->ops->copy(raw, find_back_guard(b), zone, sizeof zone, false, e))
        return false;
    ptrdiff_t found = find_change(zone, b->guard, false);
    if (found >= 0) {
        *at = found + (ptrdiff_t)(find_back_guard(b) - BUFFER_GUARD_BYTES - b->bytes);
        return err_set(e, EXIT_WRONG, "buffer '%s' was written %td bytes past its end", b->label,
                       *at);
    }
    if (!b->device->ops->copy(raw, 0, zone, sizeof zone, false, e))
        return false;
    found = find_change(zone, b->guard, true);
    if (found >= 0) {
        *at = found - BUFFER_GUARD_BYTES;
        return err_set(e, EXIT_WRONG, "buffer '%s' was written %td bytes before its start",
                       b->label, -*at);
    }
    return true;
}

/* Buffers ----------------------------------------------------------------------------------- */

static buffer *make_buffer(device *d, size_t bytes, storage_mode storage, const char *label) {
    buffer *b = array_new(1, sizeof *b);
    b->device = d;
    b->bytes = bytes;
    b->storage = storage;
    b->guard = (uint16_t)(GUARD_PATTERN + d->buffers++ % (POISON_PATTERN - GUARD_PATTERN));
    snprintf(b->label, sizeof b->label, "%s", label);
    return b;
}

buffer *device_new_buffer(device *d, size_t bytes, storage_mode storage, const char *label,
                          err *e) {
    assert(storage != STORAGE_NO_COPY);
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return err_null(e, EXIT_USAGE, "the buffer '%.60s' cannot have %zu bytes", label, bytes);
    buffer *b = make_buffer(d, bytes, storage, label);
    bool is_exact = d->facts.exact_buffers;
    b->base = is_exact ? 0 : BUFFER_GUARD_BYTES;
    size_t all = is_exact ? bytes : find_back_guard(b) + BUFFER_GUARD_BYTES;
    if (!d->ops->new_buffer(b, all, NULL, e)) {
        free(b);
        return NULL;
    }
    if (is_exact)
        return b;
    unsigned char zone[BUFFER_GUARD_BYTES];
    fill_words(zone, sizeof zone, b->guard);
    if (!d->ops->copy(b, 0, zone, sizeof zone, true, e) ||
        !d->ops->copy(b, find_back_guard(b), zone, sizeof zone, true, e)) {
        buffer_free(b);
        return NULL;
    }
    return b;
}

buffer *device_wrap_memory(device *d, const void *memory, size_t bytes, const char *label, err *e) {
    if (bytes == 0)
        return err_null(e, EXIT_USAGE, "the buffer '%.60s' cannot have 0 bytes", label);
    buffer *b = make_buffer(d, bytes, STORAGE_NO_COPY, label);
    if (d->ops->new_buffer(b, bytes, memory, e))
        return b;
    free(b);
    return NULL;
}

void buffer_free(buffer *b) {
    if (!b)
        return;
    b->device->ops->free_buffer(b);
    b->device->releases++;
    free(b);
}

static bool is_inside(const buffer *b, size_t offset, size_t bytes, err *e) {
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return true;
    return err_set(e, EXIT_USAGE, "bytes %zu to %zu are outside buffer '%s' of %zu bytes", offset,
                   offset + bytes, b->label, b->bytes);
}

bool buffer_upload(buffer *b, size_t offset, const void *data, size_t bytes, err *e) {
    if (b->storage == STORAGE_NO_COPY)
        return err_set(e, EXIT_USAGE, "buffer '%s' is over the caller's memory: read only",
                       b->label);
    void *host = (void *)(uintptr_t)data; /* only read: the copy is to the device */
    return is_inside(b, offset, bytes, e) &&
           b->device->ops->copy(b, b->base + offset, host, bytes, true, e);
}

bool buffer_download(const buffer *b, size_t offset, void *data, size_t bytes, err *e) {
    buffer *raw = (buffer *)(uintptr_t)b;
    return is_inside(b, offset, bytes, e) &&
           b->device->ops->copy(raw, b->base + offset, data, bytes, false, e);
}

bool buffer_fill_pattern(buffer *b, size_t offset, size_t bytes, uint16_t pattern, err *e) {
    unsigned char words[4096];
    size_t filled = 0;
    if (b->device->ops->fill && b->storage != STORAGE_NO_COPY && (b->base + offset) % 2 == 0) {
        filled = bytes / 2 * 2;
        if (!is_inside(b, offset, bytes, e) ||
            !b->device->ops->fill(b, b->base + offset, filled, pattern, e))
            return false;
    }
    fill_words(words, sizeof words, pattern);
    for (size_t done = filled, n; done < bytes; done += n) {
        n = bytes - done < sizeof words ? bytes - done : sizeof words;
        if (!buffer_upload(b, offset + done, words, n, e))
            return false;
    }
    if (pattern == POISON_PATTERN && b->device->ops->forget)
        b->device->ops->forget(b, b->base + offset, bytes);
    return true;
}

const unsigned char *buffer_get_written(const buffer *b) {
    const device_ops *ops = b->device->ops;
    const unsigned char *all = ops->get_written ? ops->get_written(b) : NULL;
    return all ? all + b->base : NULL;
}

/* Pipelines and plays ----------------------------------------------------------------------- */

pipeline *device_plan_pipeline(device *d, const char *kernel, math_mode math) {
    pipeline *p = array_new(1, sizeof *p);
    p->device = d;
    snprintf(p->kernel, sizeof p->kernel, "%s", kernel);
    p->max_group_threads = d->facts.max_group_threads;
    p->simd_width = d->facts.simd_width;
    p->math = math;
    /* Code that is not safe drops denormals wherever it runs. */
    p->flushes_denormals = d->facts.flushes_denormals || math != MATH_SAFE;
    return p;
}

pipeline *device_new_pipeline(device *d, const msl_unit *unit, const char *kernel,
                              const constant_value *constants, size_t count, math_mode math,
                              err *e) {
    if (!msl_find_kernel(unit, kernel, e))
        return NULL;
    pipeline *p = device_plan_pipeline(d, kernel, math);
    msl_constant_text *texts = array_new(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++)
        constant_spell(&constants[i], &texts[i]);
    bool ok = msl_specialise(unit, kernel, texts, count, &p->signature, e);
    if (p->signature.max_total_threads && p->signature.max_total_threads < p->max_group_threads)
        p->max_group_threads = p->signature.max_total_threads;
    worker_note(WORKER_COMPILER);
    ok = ok && d->ops->new_pipeline(p, unit, constants, texts, count, e);
    worker_note("");
    free(texts);
    if (ok) {
        p->counts_lanes = p->simd_width != MSL_LANES && msl_uses_simdgroups(unit, kernel);
        return p;
    }
    free(p);
    return NULL;
}

void pipeline_free(pipeline *p) {
    if (!p)
        return;
    if (p->impl)
        p->device->ops->free_pipeline(p);
    p->device->releases++;
    free(p);
}

void constant_spell(const constant_value *v, msl_constant_text *out) {
    static const struct {
        const char *before, *after; /* of the bits as a number without a sign */
    } spellings[ELEM_COUNT] = {
        [ELEM_U8] = {"", "u"},
        [ELEM_U16] = {"", "u"},
        [ELEM_U32] = {"", "u"},
        [ELEM_I32] = {"int(", "u)"},
        [ELEM_U64] = {"", "ul"},
        [ELEM_I64] = {"long(", "ul)"},
        [ELEM_F16] = {"__builtin_bit_cast(half, (unsigned short)", ")"},
        [ELEM_BF16] = {"__builtin_bit_cast(bfloat, (unsigned short)", ")"},
        [ELEM_F32] = {"__builtin_bit_cast(float, ", "u)"},
    };
    const size_t unused = 64 - 8 * elem_get_bytes(v->type);
    const uint64_t bits = v->bits << unused >> unused;
    float f;
    memcpy(&f, &(uint32_t){(uint32_t)bits}, sizeof f);
    out->index = (int)v->index;
    if (v->type == ELEM_I8 || v->type == ELEM_I16)
        snprintf(out->text, sizeof out->text, "%d",
                 v->type == ELEM_I8 ? (int8_t)bits : (int16_t)bits);
    else if (v->type == ELEM_F32 && f - f == 0)
        snprintf(out->text, sizeof out->text, "%af", (double)f);
    else
        snprintf(out->text, sizeof out->text, "%s%llu%s", spellings[v->type].before,
                 (unsigned long long)bits, spellings[v->type].after);
}

bool constant_check(const msl_unit *u, const constant_value *values, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        const msl_constant *found = NULL;
        for (size_t k = 0; k < msl_count_constants(u) && !found; k++)
            if (msl_get_constant(u, k)->index == (int)values[i].index)
                found = msl_get_constant(u, k);
        if (!found)
            return err_set(e, EXIT_USAGE, "%.120s has no function constant %u", msl_get_name(u),
                           values[i].index);
        elem wanted;
        if (elem_find_msl(found->type, &wanted) && wanted != values[i].type)
            return err_set(e, EXIT_USAGE,
                           "function constant %d (%.60s) is %.30s: give it as %s, not as %s",
                           found->index, found->name, found->type, elem_get_name(wanted),
                           elem_get_name(values[i].type));
    }
    return true;
}

/* A kernel that asks how many lanes there are works with any number, as long as simdgroups are whole.
 */
static bool check_lanes(const launch *l, err *e) {
    const pipeline *p = l->pipeline;
    uint64_t threads = (uint64_t)l->group.x * l->group.y * l->group.z;
    bool asks = false;
    for (size_t i = 0; i < p->signature.count; i++)
        asks |= p->signature.params[i].kind == MSL_THREADS_PER_SIMDGROUP;
    if (!p->counts_lanes || (asks && threads % p->simd_width == 0))
        return true;
    return err_set(e, EXIT_CANNOT,
                   "kernel '%.80s' is written for simdgroups of %d lanes; this GPU runs it with %u",
                   p->kernel, MSL_LANES, p->simd_width);
}

/* Constant memory is bound where the GPU can read it: GPUs of AMD take few offsets. */
static bool check_constants(const launch *l, err *e) {
    const msl_signature *s = &l->pipeline->signature;
    uint32_t unit = l->pipeline->device->facts.constant_alignment;
    for (size_t i = 0; unit && i < s->count; i++) {
        const msl_param *p = &s->params[i];
        const binding *b = &l->args[p->index];
        if (p->kind != MSL_BUFFER || p->space != MSL_SPACE_CONSTANT || b->kind != BIND_BUFFER)
            continue;
        size_t offset = b->at.buffer->base + b->at.offset;
        if (offset % unit)
            return err_set(e, EXIT_CANNOT,
                           "kernel '%.80s' is given constant '%.40s' at offset %zu; this GPU takes "
                           "multiples of %u",
                           l->pipeline->kernel, p->name, offset, unit);
    }
    return true;
}

bool device_offers(const device_facts *d, uint32_t needs, err *e) {
    static const char *const names[] = {"units for simdgroup matrices",
                                        "bulk copies (TMA), mbarriers and clusters",
                                        "products of warpgroups (wgmma)"};
    uint32_t missing = needs & ~d->offers;
    size_t i = 0;
    while (missing && !(missing >> i & 1))
        i++;
    return !missing ||
           err_set(e, EXIT_CANNOT, "needs %s, which this device does not have", names[i]);
}

static bool check_device(const launch *l, err *e) {
    if (l->pipeline->needs_matrices)
        return err_set(
            e, EXIT_CANNOT,
            "kernel '%.80s' multiplies simdgroup matrices, and this GPU has no units for it",
            l->pipeline->kernel);
    return check_lanes(l, e) && check_constants(l, e);
}

bool device_can_play(const tape *t, err *e) {
    for (size_t i = 0; i < t->count; i++)
        if (!check_device(&t->launches[i], e))
            return false;
    return true;
}

bool device_is_lost(const device *d) {
    return d && d->is_lost;
}

void device_tell_loss(const device *d, err *e) {
    static const char said[] = "; its process is retired";
    size_t used = strlen(e->text), room = sizeof e->text - sizeof said;
    if (device_is_lost(d))
        memcpy(e->text + (used < room ? used : room), said, sizeof said);
}

static bool check_launches(const device *d, const tape *t, size_t first, size_t count, err *e) {
    for (size_t i = first; i < first + count; i++) {
        const launch *l = &t->launches[i];
        const pipeline *p = l->pipeline;
        assert(p->device == d);
        uint32_t all = d->facts.max_threadgroup_bytes;
        if (!check_device(l, e) ||
            !launch_check_fit(l, &p->signature, p->max_group_threads,
                              p->threadgroup_bytes < all ? all - p->threadgroup_bytes : 0, e))
            return false;
    }
    return true;
}

static bool knows_all(const tape *t, uint64_t releases) {
    return t->version != 0 && t->known_count == t->count && t->known_order == t->order &&
           t->known_releases == releases;
}

/* Are these launches as they were when they were last played, in whole or as a part of the whole tape, and
 * was nothing freed since that they may refer to? */
static bool is_known(const tape *t, size_t first, size_t count, uint64_t releases) {
    return knows_all(t, releases) &&
           memcmp(&t->known[first], &t->launches[first], count * sizeof *t->known) == 0;
}

static void remember_launches(tape *t, size_t first, size_t count, uint64_t releases) {
    if (count < t->count && !knows_all(t, releases)) { /* the rest was not looked at */
        t->known_count = 0;
        t->version = 0;
        return;
    }
    if (t->known_count != t->count) {
        t->known = realloc(t->known, (t->count + 1) * sizeof *t->known);
        assert(t->known);
        t->known_count = t->count;
    }
    memcpy(&t->known[first], &t->launches[first], count * sizeof *t->known);
    t->known_order = t->order;
    t->known_releases = releases;
    t->version = ++t->versions;
}

/* A tape that is played again as it was needs no second look. */
static bool look_at_launches(const device *d, tape *t, size_t first, size_t count, err *e) {
    if (is_known(t, first, count, d->releases))
        return true;
    if (!check_launches(d, t, first, count, e))
        return false;
    remember_launches(t, first, count, d->releases);
    return true;
}

bool device_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e) {
    assert(first <= t->count && count <= t->count - first);
    uint64_t start = os_now_ns();
    *out = (ticket){0};
    if (!look_at_launches(d, t, first, count, e) || !d->ops->submit(d, t, first, count, out, e))
        return false;
    out->encode_ns = os_now_ns() - start;
    return true;
}

bool device_wait(device *d, ticket *k, play_times *times, err *e) {
    play_times ignored;
    if (!times)
        times = &ignored;
    *times = (play_times){0};
    bool ok = d->ops->wait(d, k, times, e);
    times->encode_ns = k->encode_ns;
    return ok;
}

bool device_can_sample(device *d) {
    return d->ops->play_sampled && (!d->ops->can_sample || d->ops->can_sample(d));
}

bool device_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e) {
    assert(d->ops->play_sampled);
    return look_at_launches(d, t, 0, t->count, e) && d->ops->play_sampled(d, t, total, each, e);
}

bool device_start_capture(device *d, const char *path, err *e) {
    if (!d->ops->start_capture)
        return err_set(e, EXIT_CANNOT, "the device '%s' makes no captures: they are Metal's",
                       d->facts.api);
    return d->ops->start_capture(d, path, e);
}

void device_stop_capture(device *d) {
    d->ops->stop_capture(d);
}

const finding_list *device_get_findings(const device *d) {
    return d->ops->get_findings(d);
}

bool device_get_counts(device *d, const launch *l, count_list *out, err *e) {
    if (!d->ops->get_counts || !d->options.counts)
        return err_set(e, EXIT_CANNOT, "only the software device counts, not %.80s", d->facts.name);
    return d->ops->get_counts(d, l, out, e);
}

void device_clear_findings(device *d) {
    finding_clear(d->ops->get_findings(d));
}
