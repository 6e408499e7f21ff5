#include "bench_against.h"

#include <string.h>

#include "axes.h"

bool bench_against_open(const option_list *against, const option_list *launches, bench_settings *s,
                        err *e) {
    static rival rivals[BENCH_OTHERS];
    if (launches->count > 0 && against->count == 0)
        return err_set(e, EXIT_USAGE,
                       "--launch describes the kernel of --against, which is missing");
    if (against->count > BENCH_OTHERS)
        return err_set(e, EXIT_USAGE, "--against is given %zu times, and %d is the limit",
                       against->count, BENCH_OTHERS);
    for (size_t i = 0; i < against->count; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(against->items[k], against->items[i]) == 0)
                return err_set(e, EXIT_USAGE, "--against %.100s is given twice", against->items[i]);
        if (!rival_open(&rivals[i], against->items[i], launches->items, launches->count, e))
            return false;
    }
    s->rivals = rivals;
    s->rival_count = against->count;
    return true;
}

static bool takes(const rival *r, const kernel_case *c) {
    char format[32];
    if (!r->op)
        return true;
    axes_get_format(c->kernel, format, sizeof format);
    return strcmp(r->op, c->op->name) == 0 && r->adds == c->kernel->accumulates &&
           (!r->format || strcmp(r->format, format) == 0);
}

bool bench_against_choose(const bench_settings *s, bench_list *cases, err *e) {
    size_t kept = 0;
    if (s->rival_count == 0)
        return true;
    for (size_t i = 0; i < cases->count; i++) {
        bench_case *c = &cases->items[i];
        for (size_t r = 0; r < s->rival_count; r++)
            c->rivals |= takes(&s->rivals[r], &c->timed) ? 1u << r : 0;
        if (c->rivals)
            cases->items[kept++] = *c;
    }
    cases->count = kept;
    const rival *first = &s->rivals[0];
    return kept > 0 ||
           err_set(e, EXIT_USAGE,
                   "none of the cases asked for is what %.80s computes: op %.40s%s%.20s, %s output",
                   first->kernel, first->op ? first->op : "any", first->format ? ", format " : "",
                   first->format ? first->format : "",
                   first->adds ? "added to its" : "replacing its");
}
