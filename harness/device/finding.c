#include "finding.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/macro_place.h"

static const char *const names[FINDING_CLASSES] = {
    [FINDING_LOAD_OUTSIDE] = "load outside",
    [FINDING_STORE_OUTSIDE] = "store outside",
    [FINDING_UNBOUND] = "unbound buffer",
    [FINDING_UNWRITTEN] = "unwritten memory",
    [FINDING_RACE_IN_GROUP] = "race in threadgroup",
    [FINDING_RACE_OF_GROUPS] = "race of threadgroups",
    [FINDING_READ_ONLY] = "store to read-only",
    [FINDING_MISALIGNED] = "misaligned",
    [FINDING_BARRIER] = "barrier not reached",
    [FINDING_DIVERGED] = "diverged simdgroup",
    [FINDING_DIVIDE] = "division by zero",
    [FINDING_SHIFT] = "shift out of range",
    [FINDING_CONVERT] = "float to int overflow",
    [FINDING_OVERFLOW] = "signed overflow",
    [FINDING_CLAMP] = "clamp range",
    [FINDING_NO_RETURN] = "no return value",
    [FINDING_ENDLESS] = "endless loop",
    [FINDING_FAULT] = "memory fault",
    [FINDING_NAN_BORN] = "not finite",
    [FINDING_WRONG] = "wrong value",
    [FINDING_SAME_STORE] = "same value stored",
};

const char *finding_get_name(finding_class what) {
    assert(what < FINDING_CLASSES);
    return names[what];
}

bool finding_is_mild(finding_class what) {
    return what == FINDING_SAME_STORE;
}

size_t finding_count_failing(const finding_list *list, bool is_strict) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += is_strict || !finding_is_mild(list->items[i].what);
    return count;
}

static bool is_equal(const finding *a, const finding *b) {
    return a->what == b->what && a->line == b->line && a->buffer == b->buffer &&
           strcmp(a->kernel, b->kernel) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->label, b->label) == 0 && strcmp(a->expanded, b->expanded) == 0;
}

void finding_append(finding *f, const char *format, ...) {
    const size_t used = strlen(f->text);
    va_list args;
    va_start(args, format);
    vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
}

/* Code of a macro: the place is that of its definition, and where it is expanded is added. */
static void name_macro(finding *f) {
    macro_place p;
    if (!macro_place_cut(f->file, &p))
        return;
    size_t used = strlen(f->text);
    macro_place_spell(&p, f->file, f->text + used, sizeof f->text - used);
    snprintf(f->macro, sizeof f->macro, "%s", p.macro);
    snprintf(f->expanded, sizeof f->expanded, "%s:%d", p.file, p.line);
}

void finding_add(finding_list *list, const finding *given) {
    finding f = *given;
    name_macro(&f);
    for (size_t i = 0; i < list->count; i++)
        if (is_equal(&list->items[i], &f)) {
            list->items[i].count += f.count;
            return;
        }
    *ARRAY_ADD(list->items, list->count, list->capacity) = f;
}

void finding_clear(finding_list *list) {
    list->count = 0;
}

void finding_free(finding_list *list) {
    free(list->items);
    *list = (finding_list){0};
}
