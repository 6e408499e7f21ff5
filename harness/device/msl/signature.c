/* signature: a kernel as a launch sees it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static void list_kernels(const msl_unit *u, text *out) {
    for (size_t i = 0; i < u->entry_count; i++)
        text_print(out, "%s%s", i ? ", " : "", u->entries[i]->signature.host_name);
}

const entry *entry_find(const msl_unit *u, const char *host_name, err *e) {
    for (size_t i = 0; i < u->entry_count; i++) {
        const entry *w = u->entries[i];
        if (strcmp(w->signature.host_name, host_name) != 0)
            continue;
        if (!w->problem)
            return w;
        err_set(e, EXIT_USAGE, "%s", w->problem);
        return NULL;
    }
    if (!u->entry_count)
        return err_null(e, EXIT_USAGE, "there is no kernel %.80s in %.100s, which has none",
                        host_name, u->name);
    text names = {0};
    list_kernels(u, &names);
    err_set(e, EXIT_USAGE, "there is no kernel %.60s in %.60s; it has %.100s%s", host_name, u->name,
            names.data, names.used > 100 ? "..." : "");
    err_set_detail(e, names.data);
    free(names.data);
    return NULL;
}

const msl_signature *msl_find_kernel(const msl_unit *u, const char *host_name, err *e) {
    const entry *w = entry_find(u, host_name, e);
    return w ? &w->signature : NULL;
}

bool entry_is_param_on(const msl_unit *u, const entry *w, const msl_param *p,
                       const msl_constant_text *given, size_t count, bool *on, err *e) {
    *on = true;
    if (!p->gate[0])
        return true;
    scope s = {.unit = u, .given = given, .given_count = count};
    int64_t value;
    if (constant_evaluate_name(&s, p->gate, &value)) {
        *on = value != 0;
        return true;
    }
    if (s.missing)
        return err_set(
            e, EXIT_USAGE,
            "kernel %.80s: parameter %.60s needs the function constant %.60s (index %d), "
            "which is not given",
            w->signature.host_name, p->name, s.missing->constant.name, s.missing->constant.index);
    return err_set(e, EXIT_USAGE,
                   "kernel %.80s: parameter %.60s is switched by %.60s, whose value is unknown",
                   w->signature.host_name, p->name, p->gate);
}

/* Two parameters may share an index as long as one of them is always off. */
static bool check_indices(const msl_signature *s, err *e) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->params[i].index >= 0 && s->params[i].kind == s->params[k].kind &&
                s->params[i].index == s->params[k].index)
                return err_set(e, EXIT_USAGE, "kernel %.80s: %.50s and %.50s are both %s %d",
                               s->host_name, s->params[k].name, s->params[i].name,
                               param_spell_kind(s->params[i].kind), s->params[i].index);
    return true;
}

bool msl_specialise(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                    size_t count, msl_signature *out, err *e) {
    const entry *w = entry_find(u, host_name, e);
    if (!w)
        return false;
    *out = w->signature;
    out->count = 0;
    for (size_t i = 0; i < w->signature.count; i++) {
        bool on;
        if (!entry_is_param_on(u, w, &w->signature.params[i], constants, count, &on, e))
            return false;
        if (on)
            out->params[out->count++] = w->signature.params[i];
    }
    return check_indices(out, e);
}

uint32_t msl_get_alignment(const msl_param *p) {
    char pointee[sizeof p->type];
    uint32_t alignment;
    type_get_pointee(p->type, pointee, sizeof pointee);
    if (type_size(pointee, &alignment) == p->value_bytes && alignment)
        return alignment;
    uint32_t low = p->value_bytes & (0 - p->value_bytes);
    return !low ? 1 : low < 4 ? low : 4;
}
