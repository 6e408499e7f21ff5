/* engine_memory: see engine.h. Buffers are in the arena, which both sides have at the same address. */
#include <string.h>

#include "checker.h"
#include "engine_program.h"
#include "harness/base/array.h"
#include "harness/base/map_guard.h"
#include "harness/device/device.h"

static void open_memory(soft_engine *g, void *at, size_t bytes, bool is_open) {
    err unused;
    if (!engine_is_checked(g))
        return;
    if (g->side.is_thread)
        soft_arena_open(g->side.arena, at, bytes, is_open);
    else
        engine_give_order(g, &(order){is_open ? ORDER_OPEN : ORDER_SHUT, 0, at, bytes, NULL},
                          &unused);
}

void *soft_engine_take(soft_engine *g, size_t bytes) {
    void *at = soft_arena_take(g->side.arena, bytes, engine_is_checked(g) ? GAP_BYTES : 0);
    if (at)
        open_memory(g, at, bytes, true);
    return at;
}

/* Is its contents where only the engine has it? */
static bool is_far(const soft_engine *g, const void *at) {
    return !g->side.is_thread && soft_arena_is_replaced(g->side.arena, at);
}

static void restore(soft_engine *g, void *at, size_t bytes) {
    err unused;
    int file = soft_arena_get_file(g->side.arena);
    if (g->side.is_thread)
        soft_arena_restore(g->side.arena, at, bytes, file);
    else
        engine_ask(g, &(order){ORDER_RESTORE, 0, at, bytes, NULL}, file, &at, &unused);
}

static bool poison_lazily(soft_engine *g, void *at) {
    err unused;
    void *done = NULL;
    const size_t bytes = soft_arena_get_bytes(g->side.arena, at);
    int file = soft_arena_get_file(g->side.arena) < 0 ? -1 : poison_get_file();
    if (file < 0)
        return false;
    bool ok = g->side.is_thread ? poison_map(at, bytes, file)
                                : engine_ask(g, &(order){ORDER_POISON, 0, at, bytes, NULL}, file,
                                             &done, &unused) &&
                                      done;
    if (ok)
        soft_arena_set_replaced(g->side.arena, at);
    else
        restore(g, at, bytes);
    return ok;
}

void *soft_engine_take_poisoned(soft_engine *g, size_t bytes, bool is_private) {
    void *at = soft_engine_take(g, bytes);
    bool is_lazy =
        !engine_is_checked(g) && bytes >= POISON_LAZY_BYTES && (is_private || g->side.is_thread);
    /* Of a vast one the marks alone say that nothing wrote it. */
    bool is_vast = engine_is_checked(g) && is_private && bytes >= DEVICE_VAST_BYTES;
    if (at && !is_vast && !(is_lazy && poison_lazily(g, at)))
        poison_fill(at, bytes, POISON_PATTERN);
    return at;
}

void soft_engine_give(soft_engine *g, void *at) {
    size_t bytes = at ? soft_arena_get_bytes(g->side.arena, at) : 0;
    if (!bytes)
        return;
    if (soft_arena_is_replaced(g->side.arena, at))
        restore(g, at, bytes);
    soft_arena_give(g->side.arena, at);
    open_memory(g, at, bytes, false);
}

bool soft_engine_copy(soft_engine *g, void *block, size_t offset, void *host, size_t bytes,
                      bool to_engine, err *e) {
    const size_t most = (size_t)1 << 20;
    char *at = (char *)block + offset;
    if (!is_far(g, block)) {
        memcpy(to_engine ? at : host, to_engine ? host : at, bytes);
        return true;
    }
    if (!g->stage && !(g->stage = soft_engine_take(g, most)))
        return err_set(e, EXIT_CANNOT, "no memory to copy a buffer");
    for (size_t done = 0, n; done < bytes; done += n) {
        void *copied;
        char *ours = (char *)host + done;
        n = bytes - done < most ? bytes - done : most;
        if (to_engine)
            memcpy(g->stage, ours, n);
        const order o = {.kind = ORDER_COPY,
                         .at = to_engine ? at + done : g->stage,
                         .count = n,
                         .from = to_engine ? g->stage : at + done};
        if (!engine_ask(g, &o, -1, &copied, e))
            return false;
        if (!to_engine)
            memcpy(ours, g->stage, n);
    }
    return true;
}

bool soft_engine_fill(soft_engine *g, void *block, size_t offset, size_t bytes, uint16_t pattern,
                      err *e) {
    char *at = (char *)block + offset;
    if (is_far(g, block))
        return engine_give_order(g, &(order){ORDER_FILL, pattern, at, bytes, NULL}, e);
    poison_fill(at, bytes, pattern);
    return true;
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

void *soft_engine_share(soft_engine *g, const void *memory, size_t bytes) {
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

void soft_engine_unshare(soft_engine *g, const void *memory) {
    err unused;
    shared_file *f = g->side.is_thread ? NULL : find_shared(g, memory);
    if (f && --f->uses == 0)
        engine_give_order(g, &(order){ORDER_UNMAP, 0, f->there, f->bytes, NULL}, &unused);
}

void soft_engine_mark(soft_engine *g, void *at, size_t bytes, bool is_written) {
    memset(soft_arena_get_marks(g->side.arena, at), is_written, bytes);
}

unsigned char *soft_engine_get_marks(const soft_engine *g, const void *at) {
    return soft_arena_get_marks(g->side.arena, at);
}

void *soft_engine_get_view(soft_engine *g, void *at, int n) {
    void *view = soft_arena_get_view(g->side.arena, at, n);
    open_memory(g, view, soft_arena_get_bytes(g->side.arena, at), true);
    return view;
}

void engine_read_shared(const soft_engine *g) {
    for (size_t i = 0; i < g->shared_count; i++)
        if (g->shared[i].uses > 0)
            (void)*(const volatile char *)&g->shared[i].here[g->shared[i].bytes - 1];
}
