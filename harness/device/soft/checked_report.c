/* checked_report: the rows that checked mode fills, folded while the launch runs. Lines are looked
 * up only when it is over. */
#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/macro_place.h"
#include "lines.h"

static report *find_report(soft_checker *c, finding_class what, const void *pc, int index) {
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        if (r->what == what && r->pc == pc && r->buffer == index)
            return r;
    }
    return NULL;
}

void checker_start_report(const soft_checker *c, report *r, finding_class what, const void *pc,
                          int index) {
    memset(r, 0, sizeof *r);
    r->what = what;
    r->pc = pc;
    r->buffer = index;
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
        snprintf(name, sizeof name, "buffer %d '%.40s' (%.60s)", r->buffer, b->label, b->name);
    else
        snprintf(name, sizeof name, "buffer %d '%.40s'", r->buffer, b->label);
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
bool checker_find_line(const soft_checker *c, const void *pc, char *file, size_t size, int *line) {
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
    char file[128] = "", who[96], rest[200];
    int line = 0;
    checker_find_line(c, (const char *)c->image_begin + r->other.pc, file, sizeof file, &line);
    name_thread(c, &r->other, who, sizeof who);
    finding *f = &r->row;
    char own[sizeof f->file];
    snprintf(own, sizeof own, "%s", f->file);
    macro_place_cut(own, &(macro_place){.line = 0});
    macro_place_cut(file, &(macro_place){.line = 0});
    bool elsewhere = line && strcmp(file, own) != 0;
    r->other_line = line;
    snprintf(rest, sizeof rest, "; the other is a %s of %u bytes by %s%s%s%s%s",
             checker_name_access(r->other.how), r->other.bytes, who, line ? " at " : "",
             elsewhere ? file : "", elsewhere ? " " : "", line ? "line " : "");
    size_t n = strlen(f->text);
    if (line)
        snprintf(f->text + n, sizeof f->text - n, "%s%d", rest, line);
    else
        snprintf(f->text + n, sizeof f->text - n, "%s", rest);
}

static void add_barrier(const soft_checker *c, report *r) {
    char file[128] = "";
    int line = 0;
    checker_find_line(c, r->barrier, file, sizeof file, &line);
    size_t n = strlen(r->row.text);
    snprintf(r->row.text + n, sizeof r->row.text - n, "; the barrier is at line %d", line);
}

/* Did the launch's first run tell it? Of two accesses that race, the second is told: in another order
 * of threads that may be the other one. */
static bool is_told(const soft_checker *c, const report *r) {
    for (int i = 0; i < c->told_count; i++) {
        const told_row *t = &c->told[i];
        if (t->what == r->what && t->buffer == r->buffer &&
            ((t->line == r->row.line && strcmp(t->file, r->row.file) == 0) ||
             (r->has_other && t->line == r->other_line && t->other_line == r->row.line)))
            return true;
    }
    return false;
}

static void hand_out(soft_checker *c, report *r, finding_list *out) {
    const size_t n = strlen(r->row.text);
    if (!c->order.takes_turns) {
        told_row *t = &c->told[c->told_count++];
        *t = (told_row){r->what, r->buffer, r->row.line, r->other_line, ""};
        snprintf(t->file, sizeof t->file, "%s", r->row.file);
    } else if (is_told(c, r)) {
        return;
    } else if (r->what != FINDING_WRONG) {
        snprintf(r->row.text + n, sizeof r->row.text - n, ", when threads take turns at atomics");
    }
    finding_add(out, &r->row);
}

void checker_finish_reports(soft_checker *c, finding_list *out) {
    for (int i = 0; i < c->report_count && out; i++) {
        report *r = &c->reports[i];
        checker_find_line(c, r->pc, r->row.file, sizeof r->row.file, &r->row.line);
        if (r->has_other)
            add_other(c, r);
        if (r->barrier)
            add_barrier(c, r);
        hand_out(c, r, out);
    }
    c->report_count = 0;
}
