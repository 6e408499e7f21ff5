/* checked_mishap: mistakes that are not about memory: arithmetic, simdgroup functions, faults of the CPU
 * and loops that do not end. */
#include "checker.h"
#include "lines.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* An index outside of an array is told only if the access it leads to is not told as such: that
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
        return; /* the access itself is told */
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

static void tell(char *out, size_t size, soft_u32 what, soft_u64 value, const char *text) {
    long long n = (long long)value;
    switch (what) {
    case SOFT_DIVIDE:
        snprintf(out, size, "integer division by zero");
        break;
    case SOFT_SHIFT:
        snprintf(out, size, "shift by %lld, which is outside the width of its type", n);
        break;
    case SOFT_CONVERT:
        snprintf(out, size, "float that the integer type cannot hold");
        break;
    case SOFT_OVERFLOW:
        snprintf(out, size, "signed integer %s overflows", text);
        break;
    case SOFT_CLAMP:
        snprintf(out, size, "clamp to a range whose minimum is above its maximum");
        break;
    case SOFT_EDGES:
        snprintf(out, size, "smoothstep whose first edge is not below its second");
        break;
    case SOFT_FIELD:
        snprintf(out, size, "bit field up to bit %lld, which is outside the width of its type", n);
        break;
    case SOFT_NO_RETURN:
        snprintf(out, size, "the end of a function that must return a value and does not");
        break;
    case SOFT_VARIES:
        snprintf(out, size, "%s whose lane, delta or mask is not the same for all threads", text);
        break;
    case SOFT_INACTIVE:
        snprintf(out, size,
                 "%s takes the value of lane %lld, which is not active here: it returned, is "
                 "elsewhere or does not exist",
                 text, n);
        break;
    case SOFT_SCOPE:
        snprintf(out, size, "%s is an operation of %lld simdgroups, and the threadgroup has %lld",
                 text, n & 0xFFFF, n >> 16);
        break;
    default:
        snprintf(out, size, "%s takes the value of lane %lld, outside of the simdgroup", text, n);
    }
}

void checker_mishap(soft_worker *w, soft_u32 what, soft_u64 value, const char *text,
                    const void *pc) {
    static const finding_class classes[] = {
        [SOFT_DIVIDE] = FINDING_DIVIDE,    [SOFT_SHIFT] = FINDING_SHIFT,
        [SOFT_CONVERT] = FINDING_CONVERT,  [SOFT_OVERFLOW] = FINDING_OVERFLOW,
        [SOFT_CLAMP] = FINDING_CLAMP,      [SOFT_EDGES] = FINDING_CLAMP,
        [SOFT_FIELD] = FINDING_SHIFT,      [SOFT_NO_RETURN] = FINDING_NO_RETURN,
        [SOFT_VARIES] = FINDING_DIVERGED,  [SOFT_INACTIVE] = FINDING_DIVERGED,
        [SOFT_NO_LANE] = FINDING_DIVERGED, [SOFT_SCOPE] = FINDING_DIVERGED};
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
    report *r = checker_add_report(c, classes[what], pc, -1);
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
    for (int i = 0;
         i < CHECKER_FRAMES && !(at && is_of_file(c, at)) && checker_next_frame(c, &fp, &from); i++)
        at = checker_is_kernel(c, from) ? (const void *)from : at;
    return at;
}

/* An endless loop is told at its line: where the timer finds the kernel in code that is not of its
 * files (the checks it calls), it is let go on for a moment, a few hundred times at most. */
static rescue_action stop_loop(soft_checker *c, const void *pc) {
    const void *at = checker_is_kernel(c, (uintptr_t)pc) ? (const char *)pc + 1 : NULL;
    if (!is_of_file(c, at) && c->looks++ < MAX_LOOKS)
        return RESCUE_GO_ON;
    checker_tell(c, FINDING_ENDLESS, at, NULL, "still running after %g s: an endless loop",
                 c->seconds);
    return RESCUE_GIVE_UP;
}

rescue_action checker_rescue(void *context, int signal_number, const void *pc, uintptr_t fp,
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
