/* checked: see checked.h. The front door of checked mode: launches, threadgroups, barriers, the lives of
 * variables; the rows that it fills, folded while the launch runs, whose lines are looked up only when it
 * is over; and mistakes that are not about memory: arithmetic, simdgroup functions, faults of the CPU and
 * loops that do not end. */
#if defined(__linux__)
#define _GNU_SOURCE /* dladdr */
#endif
#include "checker.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/macro_place.h"
#include "object.h"
#include "pool.h"

/* Rows ----------------------------------------------------------------------------------------- */

/* The next frame of a fiber outwards: where it returns to. False after the first, which has no caller. */
static bool next_frame(const soft_checker *c, uintptr_t *fp, uintptr_t *at) {
    uintptr_t frame[2];
    if (*fp - (uintptr_t)c->worker - SOFT_STACKS_AT >=
            SOFT_REGION_BYTES - SOFT_STACKS_AT - sizeof frame ||
        *fp % 8 != 0)
        return false;
    memcpy(frame, (const void *)*fp, sizeof frame);
    if (frame[0] <= *fp)
        return false;
    *fp = frame[0];
    *at = frame[1];
    return true;
}

static report *find_report(soft_checker *c, finding_class what, const void *pc, int index) {
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        if (r->row.what == what && r->pc == pc && r->row.buffer == index)
            return r;
    }
    return NULL;
}

void checker_start_report(const soft_checker *c, report *r, finding_class what, const void *pc,
                          int index) {
    memset(r, 0, sizeof *r);
    r->pc = pc;
    finding *f = &r->row;
    f->what = what;
    f->buffer = index;
    f->count = 1;
    snprintf(f->kernel, sizeof f->kernel, "%s", c->kernel);
    const soft_worker *w = c->worker;
    const unsigned short *p = w->thread_position[checker_thread(w)];
    for (int i = 0; i < 3; i++) {
        f->thread[i] = p[i];
        f->group[i] = w->group_position[i];
    }
}

report *checker_add_report(soft_checker *c, finding_class what, const void *pc, int index) {
    report *r = find_report(c, what, pc, index);
    if (r) {
        r->row.count++;
        return NULL;
    }
    if (c->report_count == MAX_REPORTS)
        return NULL;
    r = &c->reports[c->report_count++];
    checker_start_report(c, r, what, pc, index);
    return r;
}

report *checker_tell(soft_checker *c, finding_class what, const void *pc, const char *label,
                     const char *format, ...) {
    report *r = checker_add_report(c, what, pc, -1);
    va_list args;
    if (!r)
        return NULL;
    va_start(args, format);
    vsnprintf(r->row.text, sizeof r->row.text, format, args);
    va_end(args);
    snprintf(r->row.label, sizeof r->row.label, "%s", label ? label : "");
    return r;
}

const char *checker_name_access(unsigned how) {
    return how & SOFT_ATOMIC ? "atomic access" : how & SOFT_STORE ? "store" : "load";
}

/* Element index of an address, also before the start. */
static int64_t count_elements(uintptr_t begin, uint32_t element_bytes, uintptr_t at) {
    int64_t offset = (int64_t)(at - begin), size = element_bytes;
    return offset >= 0 ? offset / size : -((-offset + size - 1) / size);
}

/* "store of 4 bytes WHAT: element 3 of NAME, which has 64" */
static void describe(report *r, uintptr_t begin, size_t whole, uint32_t element_bytes, uintptr_t at,
                     size_t bytes, unsigned how, const char *what, const char *name) {
    finding *f = &r->row;
    size_t elements = whole / element_bytes;
    uintptr_t end = begin + whole;
    /* Of an access that begins inside, the first element outside is the one to name. */
    f->element = count_elements(begin, element_bytes, at < end && at + bytes > end ? end : at);
    f->bytes = (uint32_t)bytes;
    f->by = at + bytes > end ? (int64_t)(at + bytes - end) : at < begin ? (int64_t)(begin - at) : 0;
    char access[48] = "access";
    if (bytes > 0)
        snprintf(access, sizeof access, "%s of %zu bytes", checker_name_access(how), bytes);
    snprintf(f->text, sizeof f->text, "%s %s: element %lld of %s, which has %zu", access, what,
             (long long)f->element, name, elements);
}

void checker_describe(report *r, const soft_bound *b, uintptr_t at, size_t bytes, unsigned how,
                      const char *what) {
    char name[160];
    snprintf(r->row.label, sizeof r->row.label, "%s", b->label);
    if (b->name[0] && strcmp(b->name, b->label) != 0)
        snprintf(name, sizeof name, "buffer %d '%.40s' (%.60s)", r->row.buffer, b->label, b->name);
    else
        snprintf(name, sizeof name, "buffer %d '%.40s'", r->row.buffer, b->label);
    describe(r, (uintptr_t)b->begin, b->bytes, b->element_bytes, at, bytes, how, what, name);
}

void checker_describe_variable(report *r, const variable *v, uintptr_t at, size_t bytes,
                               unsigned how, const char *what) {
    char name[100];
    snprintf(name, sizeof name, "threadgroup variable '%.60s'", v->name);
    snprintf(r->row.label, sizeof r->row.label, "threadgroup %.30s", v->name);
    describe(r, v->begin, v->bytes, v->element_bytes, at, bytes, how, what, name);
}

/* The line of an address of the kernel, from its debug information. */
static bool checker_find_line(const soft_checker *c, const void *pc, char *file, size_t size,
                              int *line) {
    if (!pc || !checker_is_kernel(c, (uintptr_t)pc))
        return false;
    uint64_t offset = (uintptr_t)pc - 1 - c->image_begin; /* the call, not what follows it */
    return soft_find_line(c->object, offset, file, size, line);
}

/* Lines ---------------------------------------------------------------------------------------- */

/* Where a thread stood that is known by its number only. */
static void name_thread(const soft_checker *c, const shadow_access *a, char *out, size_t size) {
    const soft_worker *w = c->worker;
    const uint32_t *n = w->launch->grid_groups;
    const uint32_t run = (a->group - 1 - c->group_first) & 0xFFFFFF;
    const uint32_t group = (uint32_t)(c->order.first + c->order.step * (int64_t)run);
    const uint32_t g[3] = {group % n[0], group / n[0] % n[1], group / n[0] / n[1]};
    uint32_t s[3]; /* of that threadgroup, which is smaller at the edge of the grid */
    for (int i = 0; i < 3; i++) {
        uint32_t left = w->launch->grid_threads[i] - g[i] * w->launch->group_nominal[i];
        s[i] = left < w->launch->group_nominal[i] ? left : w->launch->group_nominal[i];
    }
    snprintf(out, size, "thread %u,%u,%u of threadgroup %u,%u,%u", a->thread % s[0],
             a->thread / s[0] % s[1], a->thread / s[0] / s[1], g[0], g[1], g[2]);
}

static void add_other(const soft_checker *c, report *r) {
    char file[128] = "", who[96];
    int line = 0;
    checker_find_line(c, (const char *)c->image_begin + r->other.pc, file, sizeof file, &line);
    name_thread(c, &r->other, who, sizeof who);
    finding *f = &r->row;
    char own[sizeof f->file];
    snprintf(own, sizeof own, "%s", f->file);
    macro_place_cut(own, &(macro_place){.line = 0});
    macro_place_cut(file, &(macro_place){.line = 0});
    const bool is_elsewhere = strcmp(file, own) != 0;
    r->other_line = line;
    finding_append(f, "; the other is a %s of %u bytes by %s", checker_name_access(r->other.how),
                   r->other.bytes, who);
    if (line)
        finding_append(f, " at %s%sline %d", is_elsewhere ? file : "", is_elsewhere ? " " : "",
                       line);
}

static void add_barrier(const soft_checker *c, report *r) {
    char file[128] = "";
    int line = 0;
    checker_find_line(c, r->barrier, file, sizeof file, &line);
    finding_append(&r->row, "; the barrier is at line %d", line);
}

/* Did the launch's first run report it? Of two accesses that race, the second is reported: in another order
 * of threads that may be the other one. */
static bool is_told(const soft_checker *c, const report *r) {
    for (int i = 0; i < c->reported_count; i++) {
        const reported_row *t = &c->reported[i];
        if (t->what == r->row.what && t->buffer == r->row.buffer &&
            ((t->line == r->row.line && strcmp(t->file, r->row.file) == 0) ||
             (r->has_other && t->line == r->other_line && t->other_line == r->row.line)))
            return true;
    }
    return false;
}

static void hand_out(soft_checker *c, report *r, finding_list *out) {
    if (!c->order.takes_turns) {
        reported_row *t = &c->reported[c->reported_count++];
        *t = (reported_row){r->row.what, r->row.buffer, r->row.line, r->other_line, ""};
        snprintf(t->file, sizeof t->file, "%s", r->row.file);
    } else if (is_told(c, r)) {
        return;
    } else if (r->row.what != FINDING_WRONG) {
        finding_append(&r->row, ", when threads take turns at atomics");
    }
    finding_add(out, &r->row);
}

/* Looks up the lines of all rows and hands them over. */
static void checker_finish_reports(soft_checker *c, finding_list *out) {
    for (int i = 0; i < c->report_count && out; i++) {
        report *r = &c->reports[i];
        checker_find_line(c, r->pc, r->row.file, sizeof r->row.file, &r->row.line);
        if (r->has_other)
            add_other(c, r);
        if (r->barrier)
            add_barrier(c, r);
        if (i + 1 == MAX_REPORTS)
            finding_append(&r->row, "; the launch has others");
        hand_out(c, r, out);
    }
    c->report_count = 0;
}

/* Mistakes that are not about memory ----------------------------------------------------------- */

/* An index outside of an array is reported only if the access it leads to is not reported itself: that
 * one knows more. */
static void note_index(soft_checker *c, soft_u64 index, const char *type, const void *pc) {
    checker_tell_index(c, SOFT_LOAD);
    c->index_pending = true;
    c->index_value = (int64_t)index;
    c->index_type = type;
    c->index_pc = pc;
    c->hooks.pending = 1;
}

static void tell_misaligned(soft_checker *c, uintptr_t at, const void *pc) {
    const device_region *d = checker_find_nearest(c, at);
    bool is_inside = d && at - d->region.begin < d->region.bytes;
    bool is_null = at < 4096;
    if (is_null)
        return; /* the access itself is reported */
    report *r = checker_add_report(c, FINDING_MISALIGNED, pc, is_inside ? d->index : -1);
    if (r && is_inside)
        checker_describe(r, d->bound, at, 0, SOFT_LOAD, "at an address its type forbids");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text, "access at address %#llx, which its type forbids",
                 (unsigned long long)at);
}

/* A lane in a loop for a lock that another lane of its simdgroup took in the same way, with no barrier
 * between: here one lane runs after the other, on a GPU they wait for each other. */
static void note_lock(soft_checker *c, uintptr_t word, const void *pc) {
    const uint32_t t = checker_thread(c->worker), first = t / SOFT_LANES * SOFT_LANES;
    const lock_attempt now = {word, c->group, c->phase, c->simd_phase[t / SOFT_LANES]};
    c->locks[t] = now;
    for (uint32_t i = first; i < first + SOFT_LANES; i++) {
        const lock_attempt *o = &c->locks[i];
        if (i == t || o->word != word || o->group != now.group || o->phase != now.phase ||
            o->simd_phase != now.simd_phase)
            continue;
        checker_tell(c, FINDING_ENDLESS, pc, NULL,
                     "lanes of one simdgroup spin for the same lock: on a GPU the lane that has it "
                     "waits for the others");
        return;
    }
}

/* The message is the text, if that is wanted, the start, the value, if there is an end, and the end. */
static const struct {
    finding_class what;
    const char *before, *start, *end; /* before: of a text; NULL: there is none */
} mishaps[] = {
    [SOFT_DIVIDE] = {FINDING_DIVIDE, NULL, "integer division by zero", NULL},
    [SOFT_SHIFT] = {FINDING_SHIFT, NULL, "shift by ", ", which is outside the width of its type"},
    [SOFT_CONVERT] = {FINDING_CONVERT, NULL, "float that the integer type cannot hold", NULL},
    [SOFT_OVERFLOW] = {FINDING_OVERFLOW, "signed integer ", " overflows", NULL},
    [SOFT_CLAMP] = {FINDING_CLAMP, NULL, "clamp to a range whose minimum is above its maximum",
                    NULL},
    [SOFT_EDGES] = {FINDING_CLAMP, NULL, "smoothstep whose first edge is not below its second",
                    NULL},
    [SOFT_FIELD] = {FINDING_SHIFT, NULL, "bit field up to bit ",
                    ", which is outside the width of its type"},
    [SOFT_NO_RETURN] = {FINDING_NO_RETURN, NULL,
                        "the end of a function that must return a value and does not", NULL},
    [SOFT_VARIES] = {FINDING_DIVERGED, "",
                     " whose lane, delta or mask is not the same for all threads", NULL},
    [SOFT_INACTIVE] = {FINDING_DIVERGED, "", " takes the value of lane ",
                       ", which is not active here: it returned, is elsewhere or does not exist"},
    [SOFT_NO_LANE] = {FINDING_DIVERGED, "", " takes the value of lane ",
                      ", outside of the simdgroup"},
    [SOFT_SCOPE] = {FINDING_DIVERGED, "", " is an operation of ",
                    " simdgroups, and the threadgroup has "},
};

static void tell(char *out, size_t size, soft_u32 what, soft_u64 value, const char *text) {
    const bool is_scope = what == SOFT_SCOPE;
    const char *before = mishaps[what].before, *end = mishaps[what].end;
    char number[24] = "", other[24] = "";
    if (end)
        snprintf(number, sizeof number, "%lld", (long long)(is_scope ? value & 0xFFFF : value));
    if (is_scope)
        snprintf(other, sizeof other, "%lld", (long long)value >> 16);
    snprintf(out, size, "%s%s%s%s%s%s", before ? before : "", before ? text : "",
             mishaps[what].start, number, end ? end : "", other);
}

static void checker_mishap(soft_worker *w, soft_u32 what, soft_u64 value, const char *text,
                           const void *pc) {
    soft_checker *c = checker_of(w);
    if (what == SOFT_INDEX) {
        note_index(c, value, text, pc);
        return;
    }
    if (what == SOFT_SPIN) {
        note_lock(c, (uintptr_t)value, pc);
        return;
    }
    if (what == SOFT_MISALIGNED) {
        tell_misaligned(c, (uintptr_t)value, pc);
#if defined(__aarch64__)
        if (text)
            soft_end_lane(w); /* an atomic instruction would trap */
#endif
        return;
    }
    report *r = checker_add_report(c, mishaps[what].what, pc, -1);
    if (r)
        tell(r->row.text, sizeof r->row.text, what, value, text);
    if (what == SOFT_NO_RETURN)
        soft_end_lane(w); /* there is nothing to go on with */
    c->has_told_division = what == SOFT_DIVIDE || (what == SOFT_OVERFLOW && value);
}

/* Signals -------------------------------------------------------------------------------------- */

static bool is_of_file(const soft_checker *c, const void *at) {
    char file[128] = "";
    int line = 0;
    return checker_find_line(c, at, file, sizeof file, &line) && line > 0 && strchr(file, '.') &&
           strncmp(file, DWARF_SHIM, strlen(DWARF_SHIM)) != 0;
}

/* The innermost place in a file of the kernel's: what faulted may be a check that the kernel called. */
static const void *find_place(const soft_checker *c, const void *pc, uintptr_t fp) {
    const void *at = checker_is_kernel(c, (uintptr_t)pc) ? (const char *)pc + 1 : NULL;
    uintptr_t from;
    for (int i = 0; i < CHECKER_FRAMES && !(at && is_of_file(c, at)) && next_frame(c, &fp, &from);
         i++)
        at = checker_is_kernel(c, from) ? (const void *)from : at;
    return at;
}

/* An endless loop is reported at its line: where the timer finds the kernel in code that is not of its
 * files (the checks it calls), it is let go on for a moment, a few hundred times at most. */
static rescue_action stop_loop(soft_checker *c, const void *pc) {
    const void *at = checker_is_kernel(c, (uintptr_t)pc) ? (const char *)pc + 1 : NULL;
    if (!is_of_file(c, at) && c->looks++ < MAX_LOOKS)
        return RESCUE_GO_ON;
    checker_tell(c, FINDING_ENDLESS, at, NULL, "still running after %g s: an endless loop",
                 c->seconds);
    return RESCUE_GIVE_UP;
}

static rescue_action checker_rescue(void *context, int signal_number, const void *pc, uintptr_t fp,
                                    void *address) {
    soft_checker *c = context;
    if (signal_number == SIGUSR2)
        return stop_loop(c, pc);
    if (signal_number == SIGFPE && c->has_told_division)
        return RESCUE_STEP_OVER;
    const void *at = find_place(c, pc, fp);
    bool is_trap = signal_number == SIGTRAP || signal_number == SIGILL;
    if (is_trap && c->index_pending) { /* the compiler's two checks of one index */
        checker_tell_index(c, SOFT_LOAD);
        return RESCUE_END_LANE;
    }
    uintptr_t inside = (uintptr_t)address - (uintptr_t)c->worker;
    bool is_stack = !is_trap && inside - SOFT_STACKS_AT < SOFT_REGION_BYTES - SOFT_STACKS_AT;
    if (signal_number == SIGFPE)
        checker_tell(c, FINDING_DIVIDE, at, NULL, "integer division that traps");
    else if (is_trap)
        checker_tell(c, FINDING_LOAD_OUTSIDE, at, "array",
                     "access through a pointer that has left its array or table");
    else
        checker_tell(c, FINDING_FAULT, at, NULL, "%s",
                     is_stack
                         ? "private memory overrun: a recursion, or more of it than a thread has"
                         : "access to an address where nothing is");
    return signal_number == SIGFPE ? RESCUE_STEP_OVER : RESCUE_END_LANE;
}

/* Meetings and barriers ------------------------------------------------------------------------ */

/* A meeting that all lanes must come to: a simdgroup barrier, or a function of matrices. */
static void on_meet(soft_worker *w, soft_u32 party, soft_u32 width, const void *pc) {
    soft_checker *c = checker_of(w);
    const soft_simdgroup *g = w->running;
    if (width == SOFT_MEET_ANY)
        return;
    bool is_barrier = width == SOFT_MEET_BARRIER;
    if (is_barrier || width == SOFT_MEET_PRODUCT)
        c->simd_phase[g->index]++;
    for (uint32_t i = 0; i < SOFT_LANES && width == SOFT_MEET_PRODUCT; i++)
        for (int k = 0; k < 2; k++)
            c->simd_epoch[k][g->index * SOFT_LANES + i] = c->simd_phase[g->index];
    soft_u32 wanted = is_barrier ? g->present : ~0u;
    if (!(wanted & ~(party | g->ended)))
        return;
    checker_tell(c, is_barrier ? FINDING_BARRIER : FINDING_DIVERGED, pc, NULL,
                 "simdgroup %s reached by %d of %d lanes: the others returned, are elsewhere or do "
                 "not exist",
                 is_barrier ? "barrier" : "matrix function", __builtin_popcount(party),
                 __builtin_popcount(wanted));
}

/* One barrier in the text may be many: its function may be called from several places. */
static uint64_t hash_calls(const soft_checker *c, uintptr_t fp) {
    uint64_t hash = 0;
    uintptr_t at;
    for (int i = 0; i < CHECKER_FRAMES && next_frame(c, &fp, &at); i++)
        if (checker_is_kernel(c, at))
            hash = (hash ^ at) * UINT64_C(0x9E3779B97F4A7C15);
    return hash;
}

static void on_park(soft_worker *w, const void *pc) {
    soft_checker *c = checker_of(w);
    uint32_t t = checker_thread(w);
    c->parked_at[t] = pc;
    c->parked_by[t] = hash_calls(c, (uintptr_t)__builtin_frame_address(0));
}

static void on_leave(soft_worker *w, const void *pc) {
    checker_of(w)->left_at[checker_thread(w)] = pc;
}

/* Threads that take turns ---------------------------------------------------------------------- */

enum {
    MOST_TURNS = 1 << 20,   /* of a launch; then threads hand over more seldom */
    SELDOM = 64,            /* accesses of a thread */
    MORE_ATOMICS = 1 << 16, /* than in the first run are not an endless loop yet */
    MOST_SAVED_BYTES = 256 << 20
};

/* A lane that has not had its turn goes on; when all have, the next simdgroup. This lane comes back
 * also when another one returns or stops at a meeting, which is not its turn yet. */
static void hand_over(soft_checker *c, soft_worker *w) {
    soft_simdgroup *g = w->running;
    turn_state *t = &c->turns[g->index];
    const uint64_t pass = t->pass;
    const soft_u32 lane = g->current;
    t->had |= 1u << lane;
    while (t->pass == pass) {
        const soft_u32 others = g->todo & ~t->had;
        g->current = (soft_u32)__builtin_ctz(others ? others : g->todo);
        if (!others) {
            t->had = 0;
            t->pass++;
        }
        SOFT_SWITCH(&g->lane[lane], others ? &g->lane[g->current] : &w->scheduler);
    }
}

static void on_turn(soft_worker *w, const void *pc) {
    soft_checker *c = checker_of(w);
    c->atomics++;
    c->group_atomics++;
    if (!c->order.takes_turns)
        return;
    if (c->group_atomics > c->atomics_limit) {
        checker_tell(c, FINDING_ENDLESS, pc, NULL,
                     "still running after %llu atomic accesses of the threadgroup: an endless loop",
                     (unsigned long long)c->atomics_limit);
        w->given_up = 1;
        SOFT_SWITCH(&w->running->lane[w->running->current], &w->scheduler);
    }
    if (c->atomics < MOST_TURNS || c->atomics % SELDOM == 0)
        hand_over(c, w);
}

/* Of the next launch; one that takes turns is the last one again, and its limits and new findings are
 * seen against that. */
static void set_order(soft_checker *c, const soft_order *order) {
    c->order = *order;
    if (!order->takes_turns) {
        c->reported_count = 0;
        c->most_atomics = 0;
        return;
    }
    /* Each access may let every other thread's compare-and-exchange, or attempt to take a lock, fail
     * once. */
    const soft_u32 *n = c->worker->launch->group_nominal;
    c->atomics_limit = 4 * c->most_atomics * n[0] * n[1] * n[2] + MORE_ATOMICS;
}

static bool save_memory(soft_checker *c, void *at, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return false;
    memcpy(copy, at, bytes);
    c->saved_memory[c->saved_count++] = (saved_memory){at, bytes, copy};
    return true;
}

static void forget_memory(soft_checker *c) {
    while (c->saved_count > 0)
        free(c->saved_memory[--c->saved_count].copy);
}

/* Copies the memory that a launch may write, if it is not too much. */
static void save_all(soft_checker *c, const soft_bound bound[SOFT_BUFFERS]) {
    size_t bytes = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (bound[i].is_bound && bound[i].can_write)
            bytes += bound[i].bytes;
    bool ok = bytes <= MOST_SAVED_BYTES;
    for (int i = 0; i < SOFT_BUFFERS && ok; i++) {
        const soft_bound *b = &bound[i];
        if (b->is_bound && b->can_write)
            ok = save_memory(c, b->real, b->bytes) &&
                 (!b->written || save_memory(c, b->written, b->bytes));
    }
    if (!ok)
        forget_memory(c);
}

static void restore_memory(const soft_checker *c) {
    for (int i = 0; i < c->saved_count; i++)
        memcpy(c->saved_memory[i].at, c->saved_memory[i].copy, c->saved_memory[i].bytes);
}

/* Only if the launch that just ended used atomics and its memory was saved: its threads take turns. */
static bool runs_again(const soft_checker *c) {
    return c->saved_count > 0 && c->atomics > 0 && !c->order.takes_turns && !c->worker->given_up;
}

/* Launches ------------------------------------------------------------------------------------- */

soft_checker *soft_checker_new(soft_worker *w, bool is_traced, err *e) {
    soft_checker *c = array_new(1, sizeof *c);
    bool ok = checker_open_private(c) &&
              shadow_open(&c->threadgroup_shadow, (uintptr_t)w->threadgroup_memory,
                          sizeof w->threadgroup_memory, 4, false);
    c->rescue = soft_rescue_new(w, checker_rescue, c, e);
    if (!ok || !c->rescue) {
        soft_checker_free(c);
        return NULL;
    }
    const char *given = getenv("ASSAY_LOOP_SECONDS");
    double seconds = given ? atof(given) : 0;
    c->seconds = seconds > 0 && seconds < 1e6 ? seconds : (double)DEFAULT_SECONDS;
    c->worker = w;
    c->hooks.trace = c->hooks.pending = is_traced;
    c->hooks.access = checker_access;
    c->hooks.mishap = checker_mishap;
    c->hooks.reserve = checker_reserve;
    c->hooks.unset_variable = checker_unset;
    c->hooks.end = checker_end_variable;
    c->hooks.meet = on_meet;
    c->hooks.park = on_park;
    c->hooks.fence = checker_barrier;
    c->hooks.sync = checker_sync;
    c->hooks.leave = on_leave;
    c->hooks.turn = on_turn;
    w->checks = &c->hooks;
    return c;
}

void soft_checker_free(soft_checker *c) {
    if (!c)
        return;
    if (c->worker)
        c->worker->checks = NULL;
    soft_rescue_free(c->rescue);
    shadow_close(&c->threadgroup_shadow);
    forget_memory(c);
    checker_sync_free(c);
    checker_close_private(c);
    free(c);
}

static void find_image(soft_checker *c, const soft_kernel *k) {
    Dl_info info;
    c->image_begin = c->image_end = 0;
    c->nothing = (uintptr_t)k->nothing;
    c->tables = c->table = k->tables;
    if (dladdr((const void *)(uintptr_t)k->fiber, &info) == 0)
        return;
    c->image_begin = (uintptr_t)info.dli_fbase;
    c->image_end = c->image_begin + ((uintptr_t)1 << 24); /* far larger than any kernel's object */
}

static void begin(soft_checker *c, const soft_item *item, const soft_image *image) {
    c->kernel = image->name;
    c->object = image->object;
    find_image(c, image->kernel);
    memcpy(c->bound, item->bound, sizeof c->bound);
    memcpy(c->dynamic, item->dynamic, sizeof c->dynamic);
    memset(c->hooks.miscast, 0, sizeof c->hooks.miscast);
    c->hooks.inline_begin = (uintptr_t)item->inline_bytes;
    c->variable_count = 0;
    c->group_first = c->group;
    checker_open_regions(c);
    checker_sync_begin(c);
    c->looks = 0;
    c->atomics = 0;
    c->watched = item->watched;
    c->watched_bytes = item->watched_bytes;
    c->is_stored = false;
    soft_rescue_begin(c->rescue, c->seconds);
}

/* out: NULL for none */
static void end(soft_checker *c, finding_list *out) {
    soft_rescue_end(c->rescue);
    checker_tell_index(c, SOFT_LOAD);
    checker_settle_stores(c);
    /* The values that remain are those of the last run. */
    const report *last = c->is_stored && !runs_again(c) ? &c->last_store : NULL;
    report *r = last ? checker_add_report(c, last->row.what, last->pc, last->row.buffer) : NULL;
    if (r)
        *r = *last;
    checker_put_back(c);
    checker_end_private(c);
    checker_finish_reports(c, out);
    checker_close_regions(c);
}

void soft_checker_run(soft_checker *c, const soft_item *item, const soft_image *image,
                      uint64_t groups, checked_run *run, void *context, finding_list *out) {
    bool takes_turns = false, is_backwards = false;
    if (image->has_atomics)
        save_all(c, item->bound);
    for (;;) {
        set_order(c, &(soft_order){.takes_turns = takes_turns,
                                   .first = is_backwards ? (int64_t)groups - 1
                                            : item->only ? (int64_t)item->only - 1
                                                         : 0,
                                   .step = is_backwards ? -1 : 1});
        begin(c, item, image);
        run(context, is_backwards);
        const bool is_in_vain = is_backwards && c->worker->given_up;
        end(c, is_in_vain ? NULL : out);
        if (takes_turns ? !is_in_vain : !runs_again(c))
            break;
        restore_memory(c);
        is_backwards = !takes_turns && !item->only && groups > 1;
        takes_turns = true;
    }
    forget_memory(c);
}

void soft_checker_begin_group(soft_worker *w) {
    soft_checker *c = checker_of(w);
    c->group++;
    c->group_atomics = 0;
    memset(c->turns, 0, sizeof c->turns);
    soft_rescue_advance(c->rescue);
    if (c->hooks.trace)
        checker_forget_exceptions();
    memset(c->left_at, 0, sizeof c->left_at);
    for (int i = 0; i < c->variable_count; i++)
        memset((void *)c->variables[i].begin, 0xFF, c->variables[i].bytes);
    checker_empty_rooms(c);
    checker_sync_begin_group(c);
}

void soft_checker_add_variable(soft_worker *w, void *at, size_t bytes, const char *name,
                               uint32_t element_bytes) {
    soft_checker *c = checker_of(w);
    assert(c->variable_count < MAX_VARIABLES);
    variable *v = &c->variables[c->variable_count++];
    *v = (variable){.begin = (uintptr_t)at, .bytes = bytes, .element_bytes = element_bytes};
    snprintf(v->name, sizeof v->name, "%s", name);
}

void soft_checker_add_dynamic(soft_worker *w, int index, void *at, size_t bytes) {
    const soft_dynamic d = checker_of(w)->dynamic[index];
    soft_checker_add_variable(w, at, bytes, d.name, d.element_bytes ? d.element_bytes : 1);
}

/* A thread that is not there: the line of its return statement, and NULL if it had none. */
static const void *find_return(const soft_checker *c, uint32_t *thread) {
    const soft_worker *w = c->worker;
    for (uint32_t t = 0; t < w->group_total; t++) {
        const soft_simdgroup *g = &w->group[t / SOFT_LANES];
        if (!((g->parked | g->ended) >> t % SOFT_LANES & 1) && c->left_at[t]) {
            *thread = t;
            return c->left_at[t];
        }
    }
    return NULL;
}

/* A tensor operation of several simdgroups is one that all of them reach. */
static void check_tensor_runs(soft_checker *c) {
    soft_worker *w = c->worker;
    uint32_t groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES, least = w->tensor_runs[0];
    uint32_t most = least, missing = 0;
    for (uint32_t i = 1; i < groups; i++) {
        missing = w->tensor_runs[i] < least ? i : missing;
        least = w->tensor_runs[i] < least ? w->tensor_runs[i] : least;
        most = w->tensor_runs[i] > most ? w->tensor_runs[i] : most;
    }
    if (least < most)
        checker_tell(c, FINDING_BARRIER, w->tensor_site + 1, NULL,
                     "simdgroup %u does not reach a tensor operation of all simdgroups of the "
                     "threadgroup",
                     missing);
    memset(w->tensor_runs, 0, sizeof w->tensor_runs);
}

void soft_checker_end_group(soft_worker *w) {
    soft_checker *c = checker_of(w);
    check_tensor_runs(c);
    if (c->group_atomics > c->most_atomics && !c->order.takes_turns)
        c->most_atomics = c->group_atomics;
}

/* Every thread has returned or parked, and some have parked: all must have, and at one barrier. */
void soft_checker_end_phase(soft_worker *w) {
    soft_checker *c = checker_of(w);
    check_tensor_runs(c);
    uint32_t parked = 0, ended = 0, first = 0, elsewhere = 0;
    for (uint32_t t = 0; t < w->group_total; t++) {
        const soft_simdgroup *g = &w->group[t / SOFT_LANES];
        ended += g->ended >> t % SOFT_LANES & 1;
        if (!(g->parked >> t % SOFT_LANES & 1))
            continue;
        first = parked++ ? first : t;
        if (c->parked_at[t] != c->parked_at[first] || c->parked_by[t] != c->parked_by[first])
            elsewhere = t;
    }
    if (++c->phase < MAX_PHASES) /* a loop with barriers may take long, and must end */
        soft_rescue_advance(c->rescue);
    if (parked + ended == w->group_total && !elsewhere)
        return;
    uint32_t gone = 0;
    const void *left = elsewhere ? NULL : find_return(c, &gone);
    const void *barrier = c->parked_at[first];
    const uint32_t all = w->group_total - ended;
    report *r =
        elsewhere ? checker_tell(c, FINDING_BARRIER, barrier, NULL,
                                 "threads of one threadgroup wait at different barriers")
        : left    ? checker_tell(c, FINDING_BARRIER, left, NULL,
                                 "return before a barrier, which %u of %u threads of the threadgroup "
                                    "reach",
                                 parked, all)
                  : checker_tell(c, FINDING_BARRIER, barrier, NULL,
                                 "barrier reached by %u of %u threads of the threadgroup: the others "
                                    "have returned",
                                 parked, all);
    if (!r)
        return;
    const unsigned short *p = w->thread_position[left ? gone : elsewhere ? elsewhere : first];
    for (int i = 0; i < 3; i++)
        r->row.thread[i] = p[i];
    r->barrier = left ? barrier : elsewhere ? c->parked_at[elsewhere] : NULL;
}
