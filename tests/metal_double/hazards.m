/* hazards: launches of a concurrent encoder run at the same time. Two that need an order and have no
 * barrier between them are a race that a GPU would often win. Metal does not know which bytes a kernel
 * touches, so they are found by trial: what each launch changes, and whether the outcome is the same
 * backwards. */
#include <stdlib.h>
#include <string.h>

#include "double.h"

enum { WORD = 4 }; /* a sum may change any byte of a float */

/* A buffer that launches of the segment may write. */
typedef struct {
    buffer *buffer;
    char *before, *last, *forwards; /* contents: at the start, before a launch, after all forwards */
    uint32_t *owners; /* (words) the launch since the last barrier that changed it, or 0 */
} watched;

typedef struct {
    DoubleCommands *commands;
    const segment *segment;
    watched *items;
    size_t count;
} trial;

static bool is_written(const launch *l, int i) {
    return l->args[i].kind == BIND_BUFFER && l->args[i].access & ACCESS_WRITE;
}

static watched *find_watched(const trial *t, const buffer *b) {
    for (size_t i = 0; i < t->count; i++)
        if (t->items[i].buffer == b)
            return &t->items[i];
    return NULL;
}

static const launch *get_launch(const trial *t, size_t i) {
    return &t->commands->recorded->launches[t->segment->first + i];
}

static char *copy_contents(const buffer *b) {
    return memcpy(malloc(b->bytes), b->contents, b->bytes);
}

static void watch(trial *t) {
    for (size_t i = 0; i < t->segment->count; i++)
        for (int k = 0; k < LAUNCH_BUFFERS; k++) {
            buffer *b = get_launch(t, i)->args[k].at.buffer;
            if (!is_written(get_launch(t, i), k) || find_watched(t, b))
                continue;
            t->items = realloc(t->items, (t->count + 1) * sizeof *t->items);
            t->items[t->count++] = (watched){.buffer = b,
                                             .before = copy_contents(b),
                                             .last = copy_contents(b),
                                             .owners = calloc(b->bytes / WORD + 1, sizeof(uint32_t))};
        }
}

static void play(const trial *t, size_t i) {
    DoubleCommands *c = t->commands;
    err e;
    ticket k;
    if (!device_submit(c->owner->soft, c->recorded, t->segment->first + i, 1, &k, &e) ||
        !device_wait(c->owner->soft, &k, NULL, &e))
        double_refuse(c, @selector(commit), "%s", e.text);
}

static _Noreturn void refuse(const trial *t, size_t i, const buffer *b) {
    double_refuse(t->commands, @selector(commit),
                  "Compute Function(%s): no barrier between this dispatch and one before that shares "
                  "buffer '%s'",
                  get_launch(t, i)->pipeline->kernel, b->label);
}

/* Notes what the launch changed; no other launch may have changed it since the last barrier. */
static void note_changes(const trial *t, size_t i) {
    for (int k = 0; k < LAUNCH_BUFFERS; k++) {
        if (!is_written(get_launch(t, i), k))
            continue;
        watched *w = find_watched(t, get_launch(t, i)->args[k].at.buffer);
        const char *now = w->buffer->contents;
        for (size_t at = 0; at < w->buffer->bytes; at++) {
            if (now[at] == w->last[at])
                continue;
            uint32_t *owner = &w->owners[at / WORD];
            if (*owner && *owner != i + 1)
                refuse(t, i, w->buffer);
            *owner = (uint32_t)i + 1;
        }
        memcpy(w->last, now, w->buffer->bytes);
    }
}

static void play_forwards(const trial *t) {
    for (size_t i = 0; i < t->segment->count; i++) {
        for (size_t n = 0; get_launch(t, i)->barrier_before && n < t->count; n++)
            memset(t->items[n].owners, 0, (t->items[n].buffer->bytes / WORD + 1) * sizeof(uint32_t));
        play(t, i);
        note_changes(t, i);
    }
    for (size_t n = 0; n < t->count; n++) {
        t->items[n].forwards = copy_contents(t->items[n].buffer);
        memcpy(t->items[n].buffer->contents, t->items[n].before, t->items[n].buffer->bytes);
    }
}

static void play_backwards(const trial *t) {
    for (size_t first = 0, end; first < t->segment->count; first = end) {
        end = first + 1;
        while (end < t->segment->count && !get_launch(t, end)->barrier_before)
            end++;
        for (size_t i = end; i-- > first;)
            play(t, i);
    }
    for (size_t n = 0; n < t->count; n++) {
        const watched *w = &t->items[n];
        if (memcmp(w->buffer->contents, w->forwards, w->buffer->bytes) != 0)
            refuse(t, t->segment->count - 1, w->buffer);
        memcpy(w->buffer->contents, w->before, w->buffer->bytes);
    }
}

/* One that was tried before is not tried again: it may be played thousands of times. */
static bool is_known(const trial *t) {
    static uint64_t known[256];
    static size_t used;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < t->segment->count; i++) {
        const launch *l = get_launch(t, i);
        const unsigned char *bytes = (const unsigned char *)l->args;
        for (size_t k = 0; k < sizeof l->args; k++)
            hash = (hash ^ bytes[k]) * 1099511628211u;
        hash = (hash ^ (uintptr_t)l->pipeline ^ l->barrier_before) * 1099511628211u;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == hash)
            return true;
    known[used++ % (sizeof known / sizeof *known)] = hash;
    return false;
}

void double_check_order(DoubleCommands *commands, const segment *s) {
    trial t = {.commands = commands, .segment = s};
    if (device_get_facts(commands->owner->soft)->validates || is_known(&t))
        return;
    [commands finishOthers];
    watch(&t);
    play_forwards(&t);
    play_backwards(&t);
    for (size_t i = 0; i < t.count; i++) {
        free(t.items[i].before);
        free(t.items[i].last);
        free(t.items[i].forwards);
        free(t.items[i].owners);
    }
    free(t.items);
}
