/* device_soft: the software Metal device, as device.h asks for it. Memory is shared with
 * the process that runs kernels, pipelines are compiled by compile.c, command buffers are run by pool.c. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checker.h"
#include "compile.h"
#include "counted.h"
#include "engine.h"
#include "harness/base/array.h"
#include "harness/base/map_guard.h"
#include "harness/base/os.h"
#include "harness/device/tape.h"

enum { REFRESHED_BYTES = 65536, UNTOUCHED_BYTES = 16 << 20 };

typedef struct {
    soft_compiler *compiler;
    soft_engine *engine;
    pool_mode mode;
    uint32_t tensor_layout; /* of the next launch; 0: always that of an Apple M5 */
} soft_device;

/* A variable of the environment that is a whole number from 1 on; *value stays as it is where it is not set. */
static bool read_variable(const char *name, unsigned long most, const char *takes, uint32_t *value,
                          err *e) {
    const char *given = getenv(name);
    char *end;
    if (!given || !*given)
        return true;
    unsigned long n = strtoul(given, &end, 10);
    *value = (uint32_t)n;
    return (!*end && n >= 1 && n <= most) ||
           err_set(e, EXIT_USAGE, "%s is '%.40s'; it takes %s", name, given, takes);
}

/* The variable that switches on Metal's shader validation means checked mode here. */
static pool_mode choose_mode(const device *d) {
    const char *validation = getenv("MTL_SHADER_VALIDATION"), *trace = getenv("ASSAY_TRACE_NAN");
    if (d->options.counts)
        return POOL_COUNTED;
    if (!validation || !*validation || strcmp(validation, "0") == 0)
        return POOL_FAST;
    return trace && strcmp(trace, "1") == 0 ? POOL_TRACED : POOL_CHECKED;
}

static bool choose_flushing(const device *d, bool *flush, err *e) {
    const char *given = getenv("ASSAY_FLUSH");
    const bool is_on = given && strcmp(given, "1") == 0;
    *flush = is_on || d->options.flush_denormals;
    return !given || !*given || is_on || strcmp(given, "0") == 0 ||
           err_set(e, EXIT_USAGE, "ASSAY_FLUSH is '%.40s'; it takes 0 or 1", given);
}

/* How cooperative tensors lie in registers: as on an Apple M5 (0), or permuted, another way in each launch,
 * beginning with a number. */
static bool choose_layout(uint32_t *layout, err *e) {
    const char *given = getenv("ASSAY_TENSOR_LAYOUT");
    *layout = !given || strcmp(given, "m5") != 0;
    return !*layout ||
           read_variable("ASSAY_TENSOR_LAYOUT", UINT32_MAX, "m5 or a number from 1", layout, e);
}

static void describe_sandbox(sandbox_state s, char *text, size_t size) {
    snprintf(text, size, "%s",
             s.has_files && s.has_calls
                 ? "a process without files (Landlock) and system calls (seccomp)"
             : s.has_calls ? "a process without system calls that write (seccomp); no Landlock here"
             : s.has_files ? "a process without files (Landlock); no seccomp here"
                           : "none: this system has neither Landlock nor seccomp");
}

static bool soft_open(device *d, err *e) {
    bool flush;
    pool_mode mode = choose_mode(d);
    uint32_t layout, threads = (uint32_t)os_count_cpus();
    if (!read_variable("ASSAY_THREADS", 256, "a number from 1 to 256", &threads, e) ||
        !choose_flushing(d, &flush, e) || !choose_layout(&layout, e))
        return false;
    uint32_t used =
        mode == POOL_FAST ? threads : 1; /* races are found by order, not by collisions */
    soft_compiler *compiler = soft_compiler_new(e);
    if (!compiler)
        return false;
    soft_engine *engine = soft_engine_new((int)used, mode, d->options.cpu_clock,
                                          soft_compiler_get_folder(compiler), e);
    if (!engine) {
        soft_compiler_free(compiler);
        return false;
    }
    soft_device *s = array_new(1, sizeof *s);
    s->compiler = compiler;
    s->engine = engine;
    s->mode = mode;
    s->tensor_layout = layout;
    d->impl = s;
    device_facts *f = &d->facts;
    /* The same in every mode: results of one device lie in one folder. */
    snprintf(f->name, sizeof f->name, "software Metal device, %u thread%s", threads,
             threads == 1 ? "" : "s");
    f->validates = mode == POOL_CHECKED || mode == POOL_TRACED;
    f->traces = mode == POOL_TRACED;
    f->names_lines = true;
    snprintf(f->compiler, sizeof f->compiler, "%s, %s math", soft_compiler_get_name(compiler),
             math_mode_get_name(d->options.math));
    describe_sandbox(engine->sandbox, f->sandbox, sizeof f->sandbox);
    f->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    f->threads = used;
    f->simd_width = SOFT_LANES;
    f->offers = FEATURE_MATRICES;
    f->max_group_threads = SOFT_MAX_THREADS;
    f->max_threadgroup_bytes = MSL_THREADGROUP_BYTES;
    f->unified = true;
    f->emulated = mode != POOL_COUNTED; /* it stands for a GPU: models take the kernels of one */
    f->flushes_denormals = flush || d->options.math != MATH_SAFE;
    return true;
}

static void soft_close(device *d) {
    soft_device *s = d->impl;
    soft_engine_free(s->engine);
    soft_compiler_free(s->compiler);
    free(s);
}

/* Memory: in the arena, which both sides have at the same address --------------------------------- */

static void open_memory(soft_engine *g, void *at, size_t bytes, bool is_open) {
    err unused;
    if (!engine_is_checked(&g->side))
        return;
    if (g->side.is_thread)
        soft_arena_open(g->side.arena, at, bytes, is_open);
    else
        engine_give_order(g, &(order){is_open ? ORDER_OPEN : ORDER_SHUT, 0, at, bytes}, &unused);
}

/* Memory that kernels can be given; zeros. In checked mode there is a gap around it that no other
 * memory uses: an access far outside is still attributed to this buffer. */
static void *engine_take(soft_engine *g, size_t bytes) {
    void *at = soft_arena_take(g->side.arena, bytes, engine_is_checked(&g->side) ? GAP_BYTES : 0);
    if (at)
        open_memory(g, at, bytes, true);
    return at;
}

static void fill_words(void *at, size_t bytes, uint16_t pattern) {
    for (size_t i = 0; i + 1 < bytes; i += 2)
        memcpy((char *)at + i, &pattern, sizeof pattern);
}

/* The same with POISON_PATTERN in it, but for a large private one: its pages take no memory before they are
 * written, so that a key-value cache for a long context costs what is in it. */
static void *engine_take_poisoned(soft_engine *g, size_t bytes, bool is_private) {
    void *at = engine_take(g, bytes);
    if (at && !(is_private && bytes >= UNTOUCHED_BYTES))
        fill_words(at, bytes, POISON_PATTERN);
    return at;
}

static void engine_give(soft_engine *g, void *at) {
    size_t bytes = at ? soft_arena_get_bytes(g->side.arena, at) : 0;
    if (!bytes)
        return;
    soft_arena_give(g->side.arena, at);
    open_memory(g, at, bytes, false);
}

static shared_file *find_shared(const soft_engine *g, const char *memory) {
    for (size_t i = 0; i < g->shared_count; i++)
        if (g->shared[i].uses > 0 && memory >= g->shared[i].here &&
            memory < g->shared[i].here + g->shared[i].bytes)
            return &g->shared[i];
    return NULL;
}

static shared_file *add_shared(soft_engine *g, const char *memory, size_t bytes) {
    err unused;
    void *there = NULL;
    shared_file f = {.uses = 0};
    int file = map_guard_find(memory, bytes, &f.here, &f.bytes);
    if (file < 0 ||
        !engine_ask(g, &(order){.kind = ORDER_MAP, .count = f.bytes}, file, &there, &unused) ||
        !there)
        return NULL;
    f.there = there;
    size_t i = 0;
    while (i < g->shared_count && g->shared[i].uses > 0)
        i++;
    if (i == g->shared_count)
        ARRAY_ADD(g->shared, g->shared_count, g->shared_room);
    g->shared[i] = f;
    return &g->shared[i];
}

/* Memory of the program as kernels see it, to be read. NULL if they cannot: it must be a part of a file
 * that is mapped (map_guard.h). Once unshared for each time that it was shared, it is gone. */
static void *engine_share(soft_engine *g, const void *memory, size_t bytes) {
    if (g->side.is_thread)
        return (void *)(uintptr_t)memory;
    shared_file *f = find_shared(g, memory);
    if (!f)
        f = add_shared(g, memory, bytes);
    if (!f || bytes > (size_t)(f->here + f->bytes - (const char *)memory))
        return NULL;
    f->uses++;
    return f->there + ((const char *)memory - f->here);
}

static void engine_unshare(soft_engine *g, const void *memory) {
    err unused;
    shared_file *f = g->side.is_thread ? NULL : find_shared(g, memory);
    if (f && --f->uses == 0)
        engine_give_order(g, &(order){ORDER_UNMAP, 0, f->there, f->bytes}, &unused);
}

/* Checked mode: the same memory at another address, n from 1. */
static void *engine_get_view(soft_engine *g, void *at, int n) {
    void *view = soft_arena_get_view(g->side.arena, at, n);
    open_memory(g, view, soft_arena_get_bytes(g->side.arena, at), true);
    return view;
}

/* Buffers ------------------------------------------------------------------------------------------ */

/* What nothing wrote reads as NaN. */
static bool soft_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e) {
    const soft_device *s = b->device->impl;
    if (no_copy) {
        b->contents = (void *)(uintptr_t)no_copy; /* never written: it is bound to read */
        b->impl = engine_share(s->engine, no_copy, allocation_bytes);
        b->is_copy = !b->impl;
        if (b->impl)
            return true;
    }
    bool is_private = b->storage == STORAGE_PRIVATE;
    b->impl = no_copy ? engine_take(s->engine, allocation_bytes)
                      : engine_take_poisoned(s->engine, allocation_bytes, is_private);
    if (!b->impl)
        return err_set(e, EXIT_CANNOT, "no memory for the buffer '%s' of %zu bytes", b->label,
                       b->bytes);
    if (no_copy)
        memcpy(b->impl, no_copy, allocation_bytes);
    else if (!is_private)
        b->contents = (char *)b->impl + b->base;
    return true;
}

static void soft_free_buffer(buffer *b) {
    const soft_device *s = b->device->impl;
    if (b->storage == STORAGE_NO_COPY && !b->is_copy)
        engine_unshare(s->engine, b->contents);
    else
        engine_give(s->engine, b->impl);
}

static void note_written(const buffer *b, size_t allocation_offset, size_t bytes, bool is_written) {
    const soft_device *s = b->device->impl;
    memset(soft_arena_get_marks(s->engine->side.arena, (char *)b->impl + allocation_offset),
           is_written, bytes);
}

/* Memory of the caller that is not a mapped file is copied when it is wrapped; what is small is
 * copied again each time it is used, because its owner may change it. */
static void refresh(const buffer *b) {
    if (b->is_copy && b->bytes <= REFRESHED_BYTES)
        memcpy(b->impl, b->contents, b->bytes);
}

static bool soft_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
                      err *e) {
    (void)e;
    if (b->storage == STORAGE_NO_COPY) { /* only read, and not by way of the device */
        memcpy(host, (const char *)b->contents + allocation_offset, bytes);
        return true;
    }
    char *at = (char *)b->impl + allocation_offset;
    if (to_device && b->device->facts.validates)
        note_written(b, allocation_offset, bytes, true);
    memcpy(to_device ? at : host, to_device ? host : at, bytes);
    return true;
}

static bool soft_fill(buffer *b, size_t allocation_offset, size_t bytes, uint16_t pattern, err *e) {
    (void)e;
    if (b->device->facts.validates)
        note_written(b, allocation_offset, bytes, true);
    fill_words((char *)b->impl + allocation_offset, bytes, pattern);
    return true;
}

static void soft_forget(buffer *b, size_t allocation_offset, size_t bytes) {
    if (b->device->facts.validates && b->storage != STORAGE_NO_COPY)
        note_written(b, allocation_offset, bytes, false);
}

static const unsigned char *soft_get_written(const buffer *b) {
    const soft_device *s = b->device->impl;
    return b->device->facts.validates && b->storage != STORAGE_NO_COPY
               ? soft_arena_get_marks(s->engine->side.arena, b->impl)
               : NULL;
}

/* Sizes that the text alone did not tell: the compiler knows them. */
static void complete_signature(pipeline *p, const soft_loaded *k, const msl_signature *all) {
    for (size_t i = 0; i < p->signature.count; i++)
        for (size_t j = 0; j < all->count && j < k->count; j++)
            if (strcmp(p->signature.params[i].name, all->params[j].name) == 0 &&
                k->value_bytes[j] > 0)
                p->signature.params[i].value_bytes = k->value_bytes[j];
}

static bool soft_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                              const msl_constant_text *texts, size_t count, err *e) {
    soft_device *s = p->device->impl;
    (void)constants;
    char *text = msl_rewrite_for(unit, p->kernel, texts, count, s->mode == POOL_TRACED, e);
    if (!text)
        return false;
    soft_loaded *loaded = array_new(1, sizeof *loaded);
    static const soft_build builds[] = {[POOL_FAST] = BUILD_FAST,
                                        [POOL_CHECKED] = BUILD_CHECKED,
                                        [POOL_TRACED] = BUILD_TRACED,
                                        [POOL_COUNTED] = BUILD_COUNTED};
    char object[PATH_MAX];
    bool ok = soft_compile(s->compiler, text, p->kernel, builds[s->mode], p->math, object, e) &&
              soft_engine_load(s->engine, object, p->kernel, loaded, e);
    free(text);
    if (!ok) {
        free(loaded);
        return false;
    }
    complete_signature(p, loaded, msl_find_kernel(unit, p->kernel, NULL));
    p->impl = loaded;
    return true;
}

static void soft_free_pipeline(pipeline *p) {
    const soft_device *s = p->device->impl;
    const soft_loaded *loaded = p->impl;
    soft_engine_unload(s->engine, loaded->image);
    free(p->impl);
}

/* A buffer that is bound at several offsets gets an address of its own for each. Bindings at the
 * same offset keep the same address: kernels ask by it whether an optional buffer is there. */
static void separate_binding(soft_item *item, const launch *l, int index) {
    const binding *b = &l->args[index];
    int before = 0;
    for (int i = 0; i < index; i++) {
        const binding *other = &l->args[i];
        if (other->kind != BIND_BUFFER || other->at.buffer != b->at.buffer)
            continue;
        if (b->kind == BIND_BUFFER && other->at.offset == b->at.offset) {
            item->launch.buffer[index] = item->launch.buffer[i];
            return;
        }
        before++;
    }
    if (b->kind != BIND_BUFFER || b->at.buffer->storage == STORAGE_NO_COPY || before == 0)
        return;
    const soft_device *s = b->at.buffer->device->impl;
    char *view = engine_get_view(s->engine, b->at.buffer->impl, before);
    item->launch.buffer[index] = view + b->at.buffer->base + b->at.offset;
}

static void describe_dynamic(soft_item *item, const msl_signature *s) {
    for (int i = 0; i < SOFT_DYNAMIC; i++) {
        soft_dynamic *d = &item->dynamic[i];
        *d = (soft_dynamic){.element_bytes = 1};
        snprintf(d->name, sizeof d->name, "[[threadgroup(%d)]]", i);
        for (size_t j = 0; j < s->count; j++) {
            const msl_param *p = &s->params[j];
            if (p->kind != MSL_THREADGROUP || p->index != i)
                continue;
            snprintf(d->name, sizeof d->name, "%s", p->name);
            d->element_bytes = p->value_bytes ? p->value_bytes : 1;
        }
    }
}

enum { MOST_VALUE_BYTES = 8 }; /* of constants that travel with a launch, as on NVIDIA GPUs */

/* What checked mode must know of the bindings. Kept with the job until it is waited for. */
static void describe_bindings(soft_item *item, const launch *l, soft_bound *bound) {
    const msl_signature *s = &l->pipeline->signature;
    const bool is_checked = l->pipeline->device->facts.validates;
    memset(bound, 0, SOFT_BUFFERS * sizeof *bound);
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_NONE)
            continue;
        bool is_ours = b->kind == BIND_BUFFER && b->at.buffer->storage != STORAGE_NO_COPY;
        void *real = item->launch.buffer[i];
        if (is_checked)
            separate_binding(item, l, i);
        bound[i] = (soft_bound){.begin = item->launch.buffer[i],
                                .real = real,
                                .is_bound = true,
                                .is_inline = b->kind == BIND_BYTES,
                                .bytes = b->kind == BIND_BYTES ? b->inline_bytes : b->at.bytes,
                                .can_write = (b->access & ACCESS_WRITE) != 0,
                                .is_private = is_ours && b->at.buffer->storage == STORAGE_PRIVATE,
                                .may_overread = (l->may_overread >> i & 1) != 0,
                                .element_bytes = (uint32_t)elem_get_bytes(b->type)};
        if (is_ours && is_checked) {
            const soft_device *owner = b->at.buffer->device->impl;
            bound[i].written = soft_arena_get_marks(owner->engine->side.arena, real);
        }
        snprintf(bound[i].label, sizeof bound[i].label, "%s",
                 b->kind == BIND_BUFFER ? b->at.buffer->label : "constant");
        for (size_t j = 0; j < s->count; j++) {
            if (s->params[j].kind != MSL_BUFFER || s->params[j].index != i)
                continue;
            snprintf(bound[i].name, sizeof bound[i].name, "%s", s->params[j].name);
            bound[i].is_constant = s->params[j].space == MSL_SPACE_CONSTANT;
            bound[i].is_coherent = s->params[j].is_coherent;
            bound[i].is_value = b->kind == BIND_BYTES && s->params[j].is_reference &&
                                bound[i].is_constant && b->inline_bytes <= MOST_VALUE_BYTES;
            bound[i].is_once = b->kind == BIND_BUFFER && s->params[j].is_reference &&
                               bound[i].is_constant && s->params[j].value_bytes > 0 &&
                               s->params[j].value_bytes <= MOST_VALUE_BYTES;
            /* What is declared as bytes holds what the host says. */
            if (s->params[j].value_bytes > 1)
                bound[i].element_bytes = s->params[j].value_bytes;
        }
    }
    describe_dynamic(item, s);
    item->bound = bound;
}

static void encode(soft_item *item, const launch *l) {
    const soft_loaded *s = l->pipeline->impl;
    static_assert(sizeof item->inline_bytes == LAUNCH_INLINE_BYTES, "room for all constants");
    item->image = s->image;
    item->flush = l->pipeline->flushes_denormals;
    memset(&item->launch, 0, sizeof item->launch);
    memcpy(item->inline_bytes, l->inline_bytes, l->inline_used);
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (b->kind == BIND_BUFFER)
            refresh(b->at.buffer);
        if (b->kind == BIND_BUFFER)
            item->launch.buffer[i] = (char *)b->at.buffer->impl + b->at.buffer->base + b->at.offset;
        else if (b->kind == BIND_BYTES)
            item->launch.buffer[i] = item->inline_bytes + b->inline_at;
    }
    memcpy(item->launch.dynamic_bytes, l->threadgroup_bytes, sizeof l->threadgroup_bytes);
    size3 groups = launch_get_groups(l);
    const uint32_t grid[3] = {l->grid.x, l->grid.y, l->grid.z};
    const uint32_t count[3] = {groups.x, groups.y, groups.z};
    const uint32_t group[3] = {l->group.x, l->group.y, l->group.z};
    for (int i = 0; i < 3; i++) {
        item->launch.grid_groups[i] = count[i];
        item->launch.group_nominal[i] = group[i];
        item->launch.grid_threads[i] = l->grid_is_threads ? grid[i] : count[i] * group[i];
    }
}

static size_t get_job_bytes(const soft_engine *g, size_t count) {
    return count * (sizeof(soft_item) +
                    (g->side.mode != POOL_FAST ? SOFT_BUFFERS * sizeof(soft_bound) : 0));
}

static soft_job *new_job(soft_engine *g, size_t count, err *e) {
    soft_job *j = g->spare;
    if (j)
        g->spare = j->next;
    else
        j = array_new(1, sizeof *j);
    if (count > j->capacity) {
        engine_give(g, j->items);
        j->items = engine_take(g, get_job_bytes(g, count));
        j->capacity = j->items ? count : 0;
    }
    j->bound = g->side.mode != POOL_FAST && j->items
                   ? (soft_bound *)(void *)(j->items + j->capacity)
                   : NULL;
    j->count = count;
    j->next = NULL;
    if (j->items || count == 0)
        return j;
    j->next = g->spare;
    g->spare = j;
    return err_null(e, EXIT_CANNOT, "no memory for %zu launches", count);
}

static bool soft_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e) {
    soft_device *s = d->impl;
    soft_job *j = new_job(s->engine, count, e);
    if (!j)
        return false;
    for (size_t i = 0; i < count; i++) {
        soft_item *item = &j->items[i];
        encode(item, &t->launches[first + i]);
        item->launch.tensor_layout = s->tensor_layout;
        item->every = d->options.counts;
        item->only = t->launches[first + i].only;
        const slice w = t->launches[first + i].watched;
        item->watched_bytes = w.bytes;
        item->watched = w.bytes ? (uintptr_t)w.buffer->impl + w.buffer->base + w.offset : 0;
        if (s->tensor_layout && ++s->tensor_layout == 0)
            s->tensor_layout = 1;
        if (j->bound)
            describe_bindings(item, &t->launches[first + i], &j->bound[i * SOFT_BUFFERS]);
    }
    out->commit_at_ns = os_now_ns();
    return soft_engine_queue(s->engine, j, &out->id, e);
}

static bool soft_wait(device *d, ticket *k, play_times *times, err *e) {
    soft_device *s = d->impl;
    bool ok = soft_engine_wait(s->engine, k->id, &times->gpu_ns, e);
    times->wall_ns = os_now_ns() - k->commit_at_ns;
    return ok;
}

static finding_list *soft_get_findings(const device *d) {
    const soft_device *s = d->impl;
    return &s->engine->findings;
}

static bool soft_get_counts(device *d, const launch *l, count_list *out, err *e) {
    const soft_device *s = d->impl;
    const soft_loaded *loaded = l->pipeline->impl;
    *out = (count_list){.threadgroup_bytes = s->engine->threadgroup_bytes};
    size3 groups = launch_get_groups(l);
    out->groups = (uint64_t)groups.x * groups.y * groups.z;
    out->groups_run = (out->groups + d->options.counts - 1) / d->options.counts;
    return count_read(loaded->object, s->engine->counts, s->engine->count_rows, out, e);
}

const device_ops soft_device_ops = {
    .name = "soft",
    .open = soft_open,
    .close = soft_close,
    .new_buffer = soft_new_buffer,
    .free_buffer = soft_free_buffer,
    .copy = soft_copy,
    .fill = soft_fill,
    .forget = soft_forget,
    .get_written = soft_get_written,
    .new_pipeline = soft_new_pipeline,
    .free_pipeline = soft_free_pipeline,
    .submit = soft_submit,
    .wait = soft_wait,
    .get_findings = soft_get_findings,
    .get_counts = soft_get_counts,
};
