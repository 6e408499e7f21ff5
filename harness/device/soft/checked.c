/* checked: see checked.h. Launches, threadgroups, barriers, and what is wrong beyond memory. */
#if defined(__linux__)
#define _GNU_SOURCE /* dladdr */
#endif
#include "checked_internal.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An index outside of an array is told only if the access it leads to is not told as such: that
 * one knows more. */
static void note_index(soft_checker *c, soft_u64 index, const char *type, const void *pc) {
    checker_tell_index(c);
    c->index_pending = true;
    c->index_value = (int64_t)index;
    c->index_type = type;
    c->index_pc = pc;
    c->hooks.pending = 1;
}

static void on_mishap(soft_worker *w, soft_u32 what, soft_u64 value, const char *type,
                      const void *pc) {
    static const finding_class classes[] = {[SOFT_MISALIGNED] = FINDING_MISALIGNED,
                                            [SOFT_DIVIDE] = FINDING_DIVIDE,
                                            [SOFT_SHIFT] = FINDING_SHIFT,
                                            [SOFT_CONVERT] = FINDING_CONVERT};
    soft_checker *c = checker_of(w);
    if (what == SOFT_INDEX) {
        note_index(c, value, type, pc);
        return;
    }
    const device_region *d = what == SOFT_MISALIGNED ? checker_find_nearest(c, value) : NULL;
    bool is_inside = d && value - d->region.begin < d->region.bytes;
    report *r = checker_add_report(c, classes[what], pc, is_inside ? d->index : -1);
    if (r && is_inside)
        checker_describe(r, d->bound, value, 0, SOFT_LOAD, "at an address its type forbids");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 what == SOFT_MISALIGNED ? "access at address %#llx, which its type forbids"
                 : what == SOFT_DIVIDE   ? "integer division by zero"
                 : what == SOFT_SHIFT    ? "shift by %lld, which is outside the width of its type"
                                         : "float that the integer type cannot hold",
                 (unsigned long long)value);
#if defined(__x86_64__)
    if (what == SOFT_DIVIDE)
        soft_end_lane(w); /* the instruction would trap */
#endif
}

static void on_declare(soft_worker *w, void *at, soft_u64 bytes, soft_u32 begins) {
    soft_checker *c = checker_of(w);
    uintptr_t inside = (uintptr_t)at - (uintptr_t)w - SOFT_STACKS_AT;
    if (inside >= SOFT_REGION_BYTES - SOFT_STACKS_AT)
        return;
    memset(c->private_unset + inside, begins ? 1 : 0, bytes);
    c->declared += begins ? 1 : -1;
    c->hooks.unset = c->declared != 0;
}

static void on_meet(soft_worker *w, soft_u32 party, soft_u32 width, const void *pc) {
    if (width <= 1)
        return;
    const soft_simdgroup *g = w->running;
    soft_u32 wanted = g->present;
    if (width < SOFT_LANES) { /* only the quads that have somebody here */
        wanted = 0;
        for (soft_u32 q = 0; q < SOFT_LANES; q += width)
            if (party >> q & ((1u << width) - 1))
                wanted |= ((1u << width) - 1) << q & g->present;
    }
    if (!(wanted & ~party))
        return;
    bool is_barrier = width > SOFT_LANES;
    report *r =
        checker_add_report(checker_of(w), is_barrier ? FINDING_BARRIER : FINDING_DIVERGED, pc, -1);
    if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 "simdgroup %s reached by %d of %d lanes: the others returned or are elsewhere",
                 is_barrier ? "barrier" : "function", __builtin_popcount(party),
                 __builtin_popcount(wanted));
}

static void on_park(soft_worker *w, const void *pc) {
    checker_of(w)->parked_at[checker_thread(w)] = pc;
}

static void on_fence(soft_worker *w, soft_u32 flags, soft_u32 whole_threadgroup) {
    soft_checker *c = checker_of(w);
    uint32_t t = checker_thread(w);
    uint32_t on_device = flags & 1, on_threadgroup = flags >> 1 & 1;
    if (whole_threadgroup) {
        c->device_epoch[t] += on_device;
        c->threadgroup_epoch[t] += on_threadgroup;
    } else {
        c->device_simd[t] += on_device;
        c->threadgroup_simd[t] += on_threadgroup;
    }
}

/* An endless loop is told at its line: where the timer finds the kernel in code that is not of its
 * .metal file (the checks it calls), it is let go on for a moment, a few hundred times at most. */
static rescue_action stop_loop(soft_checker *c, const void *pc) {
    char file[128] = "";
    int line = 0;
    bool is_kernel = (uintptr_t)pc - c->image_begin < c->image_end - c->image_begin;
    const void *at = is_kernel ? (const char *)pc + 1 : NULL;
    checker_find_line(c, at, file, sizeof file, &line);
    const char *dot = strrchr(file, '.');
    bool is_metal = dot && strcmp(dot, ".h") != 0;
    if (!is_metal && c->looks++ < MAX_LOOKS)
        return RESCUE_GO_ON;
    report *r = checker_add_report(c, FINDING_ENDLESS, at, -1);
    if (r)
        snprintf(r->row.text, sizeof r->row.text, "still running after %u s: an endless loop",
                 c->seconds);
    return RESCUE_GIVE_UP;
}

static rescue_action on_rescue(void *context, int signal_number, const void *pc, void *address) {
    soft_checker *c = context;
    if (signal_number == SIGUSR2)
        return stop_loop(c, pc);
    bool is_division = signal_number == SIGFPE;
    uintptr_t inside = (uintptr_t)address - (uintptr_t)c->worker;
    report *r = checker_add_report(c, is_division ? FINDING_DIVIDE : FINDING_FAULT,
                                   (const char *)pc + 1, -1);
    if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s",
                 is_division                  ? "integer division that traps"
                 : inside < SOFT_REGION_BYTES ? "private memory overrun"
                                              : "access to an address where nothing is");
    return RESCUE_END_LANE;
}

soft_checker *soft_checker_new(soft_worker *w, bool is_traced, err *e) {
    soft_checker *c = calloc(1, sizeof *c);
    assert(c);
    size_t stacks = (size_t)(SOFT_REGION_BYTES - SOFT_STACKS_AT);
    c->private_unset = mmap(NULL, stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    c->threadgroup_cells = calloc(THREADGROUP_CELLS, sizeof *c->threadgroup_cells);
    c->rescue = soft_rescue_new(w, on_rescue, c, e);
    if (c->private_unset == MAP_FAILED || !c->threadgroup_cells || !c->rescue) {
        soft_checker_free(c);
        return NULL;
    }
    const char *given = getenv("ASSAY_LOOP_SECONDS");
    int seconds = given ? atoi(given) : 0;
    c->seconds = seconds > 0 ? (unsigned)seconds : DEFAULT_SECONDS;
    c->worker = w;
    c->hooks.unset_map = c->private_unset;
    c->hooks.trace = c->hooks.pending = is_traced;
    c->hooks.access = checker_access;
    c->hooks.mishap = on_mishap;
    c->hooks.declare = on_declare;
    c->hooks.meet = on_meet;
    c->hooks.park = on_park;
    c->hooks.fence = on_fence;
    w->checks = &c->hooks;
    return c;
}

void soft_checker_free(soft_checker *c) {
    if (!c)
        return;
    if (c->worker)
        c->worker->checks = NULL;
    soft_rescue_free(c->rescue);
    free(c->threadgroup_cells);
    if (c->private_unset && c->private_unset != MAP_FAILED)
        munmap(c->private_unset, (size_t)(SOFT_REGION_BYTES - SOFT_STACKS_AT));
    free(c);
}

static void find_image(soft_checker *c, const soft_kernel *k) {
    Dl_info info;
    c->image_begin = c->image_end = 0;
    c->nothing = (uintptr_t)k->nothing;
    if (dladdr((const void *)(uintptr_t)k->fiber, &info) == 0)
        return;
    c->image_begin = (uintptr_t)info.dli_fbase;
    c->image_end = c->image_begin + ((uintptr_t)1 << 24); /* far larger than any kernel's object */
}

void soft_checker_begin(soft_checker *c, const char *kernel, const soft_kernel *k,
                        const char *object, const soft_bound bound[SOFT_BUFFERS],
                        const void *inline_begin) {
    c->kernel = kernel;
    c->object = object;
    find_image(c, k);
    memcpy(c->bound, bound, sizeof c->bound);
    memset(c->hooks.page, 0, sizeof c->hooks.page);
    memset(c->hooks.inline_region, 0, sizeof c->hooks.inline_region);
    c->hooks.inline_begin = (uintptr_t)inline_begin;
    c->stretch_count = c->region_count = c->variable_count = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (c->bound[i].is_bound)
            checker_add_stretch(c, &c->bound[i]);
    for (int i = 0; i < c->stretch_count; i++) {
        stretch *s = &c->stretches[i];
        checker_find_unset(s);
        size_t words = (s->end - (s->begin & ~(uintptr_t)3) + 3) / 4;
        if (s->is_written)
            s->cells = calloc(words, sizeof *s->cells);
    }
    for (int i = 0; i < SOFT_BUFFERS; i++) {
        const soft_bound *b = &c->bound[i];
        if (!b->is_bound)
            continue;
        device_region *d = &c->regions[c->region_count++];
        *d = (device_region){.region = {(uintptr_t)b->begin, b->bytes, 0}, .bound = b, .index = i};
        for (int j = 0; j < c->stretch_count; j++)
            if (c->stretches[j].begin <= d->region.begin && d->region.begin < c->stretches[j].end)
                d->stretch = &c->stretches[j];
        d->region.plain = !d->stretch->is_written && !d->stretch->unset;
        checker_map_pages(c, d);
    }
    c->looks = 0;
    soft_rescue_begin(c->rescue, c->seconds);
}

void soft_checker_end(soft_checker *c, finding_list *out) {
    soft_rescue_end(c->rescue);
    checker_tell_index(c);
    checker_put_back(c);
    if (c->declared) { /* lanes that ended early left theirs behind */
        /* New pages are zeros; madvise promises that on Linux only. */
        mmap(c->private_unset, (size_t)(SOFT_REGION_BYTES - SOFT_STACKS_AT), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
        c->declared = 0;
        c->hooks.unset = 0;
    }
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        checker_find_line(c, r->pc, r->row.file, sizeof r->row.file, &r->row.line);
        if (r->other) {
            char file[128] = "";
            int line = 0;
            checker_find_line(c, r->other, file, sizeof file, &line);
            size_t n = strlen(r->row.text);
            snprintf(r->row.text + n, sizeof r->row.text - n, " with line %d", line);
        }
        finding_add(out, &r->row);
    }
    c->report_count = 0;
    for (int i = 0; i < c->stretch_count; i++) {
        free(c->stretches[i].cells);
        free(c->stretches[i].unset);
        c->stretches[i].cells = NULL;
        c->stretches[i].unset = NULL;
    }
    while (c->page_count > 0)
        munmap(c->pages[--c->page_count], (size_t)sysconf(_SC_PAGESIZE));
}

void soft_checker_begin_group(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    c->group++;
    soft_rescue_advance(c->rescue);
    if (c->hooks.trace)
        checker_forget_exceptions();
    memset(c->device_epoch, 0, sizeof c->device_epoch);
    memset(c->threadgroup_epoch, 0, sizeof c->threadgroup_epoch);
    memset(c->device_simd, 0, sizeof c->device_simd);
    memset(c->threadgroup_simd, 0, sizeof c->threadgroup_simd);
}

void soft_checker_add_variable(soft_checks *hooks, void *at, size_t bytes) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    if (c->variable_count < MAX_VARIABLES)
        c->variables[c->variable_count++] = (variable){(uintptr_t)at, bytes};
}

/* Every thread has returned or parked, and some have parked: all must have, and at one barrier. */
void soft_checker_end_phase(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    soft_worker *w = c->worker;
    const void *first = NULL, *elsewhere = NULL;
    uint32_t parked = 0;
    for (uint32_t t = 0; t < w->group_total; t++) {
        if (!(w->group[t / SOFT_LANES].parked >> t % SOFT_LANES & 1))
            continue;
        parked++;
        first = first ? first : c->parked_at[t];
        elsewhere = c->parked_at[t] != first ? c->parked_at[t] : elsewhere;
    }
    bool apart = elsewhere && !checker_is_same_line(c, first, elsewhere);
    if (parked == w->group_total && !apart)
        return;
    report *r = checker_add_report(c, FINDING_BARRIER, first, -1);
    if (r && apart)
        snprintf(r->row.text, sizeof r->row.text,
                 "threads of one threadgroup wait at different barriers");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 "barrier reached by %u of %u threads of the threadgroup: the others have returned",
                 parked, w->group_total);
}
