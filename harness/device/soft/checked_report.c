/* checked_report: the rows that checked mode fills, folded while the launch runs. Lines are looked
 * up only when it is over. */
#include "checked_internal.h"

#include <stdio.h>
#include <string.h>

#include "lines.h"

static report *find_report(soft_checker *c, finding_class what, const void *pc, int index) {
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        if (r->what == what && r->pc == pc && r->buffer == index)
            return r;
    }
    return NULL;
}

/* One more of what; the row to fill in if it is the first, else NULL. */
report *checker_add_report(soft_checker *c, finding_class what, const void *pc, int index) {
    report *r = find_report(c, what, pc, index);
    if (r) {
        r->row.count++;
        return NULL;
    }
    if (c->report_count == MAX_REPORTS)
        return NULL;
    r = &c->reports[c->report_count++];
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
    return r;
}

const char *checker_name_access(unsigned how) {
    return how & SOFT_ATOMIC ? "atomic access" : how & SOFT_STORE ? "store" : "load";
}

/* Element index of an address, also before the start. */
static int64_t count_elements(const soft_bound *b, uintptr_t at) {
    int64_t offset = (int64_t)(at - (uintptr_t)b->begin), size = b->element_bytes;
    return offset >= 0 ? offset / size : -((-offset + size - 1) / size);
}

void checker_describe(report *r, const soft_bound *b, uintptr_t at, size_t bytes, unsigned how,
                      const char *what) {
    finding *f = &r->row;
    size_t elements = b->bytes / b->element_bytes;
    uintptr_t begin = (uintptr_t)b->begin, end = begin + b->bytes;
    /* Of an access that begins inside, the first element outside is the one to name. */
    f->element = count_elements(b, at < end && at + bytes > end ? end : at);
    f->bytes = (uint32_t)bytes;
    snprintf(f->label, sizeof f->label, "%s", b->label);
    f->by = at + bytes > end ? (int64_t)(at + bytes - end) : at < begin ? (int64_t)(begin - at) : 0;
    char access[48];
    if (bytes > 0)
        snprintf(access, sizeof access, "%s of %zu bytes", checker_name_access(how), bytes);
    else
        snprintf(access, sizeof access, "access");
    snprintf(f->text, sizeof f->text,
             "%s %s: element %lld of buffer %d '%.40s' (%s), which has %zu", access, what,
             (long long)f->element, r->buffer, b->label, b->name, elements);
}

/* The line of an address of the kernel, from its debug information. */
void checker_find_line(const soft_checker *c, const void *pc, char *file, size_t size, int *line) {
    if (!pc || !c->image_begin)
        return;
    uint64_t offset = (uintptr_t)pc - 1 - c->image_begin; /* the call, not what follows it */
    soft_find_line(c->object, offset, file, size, line);
}

bool checker_is_same_line(const soft_checker *c, const void *a, const void *b) {
    char file[2][128] = {"", ""};
    int line[2] = {0, 0};
    checker_find_line(c, a, file[0], sizeof file[0], &line[0]);
    checker_find_line(c, b, file[1], sizeof file[1], &line[1]);
    return line[0] == line[1] && strcmp(file[0], file[1]) == 0;
}
