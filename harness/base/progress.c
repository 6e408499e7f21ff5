#include "progress.h"

#include <math.h>
#include <unistd.h>

#include "os.h"
#include "record.h"

enum { REDRAW_NS = 100000000 }; /* more often would be noise */

progress progress_new(FILE *out, const char *what, size_t total) {
    progress p = {.out = out, .what = what, .total = total, .start_ns = os_now_ns()};
    p.on = isatty(fileno(out)) == 1;
    return p;
}

/* What is left of what was expected, as much slower or faster as this has been so far. What takes longer
 * than expected takes as much longer again, for all that is known: it is never about to end for minutes. */
static double expect_rest(const progress *p, uint64_t now_ns) {
    double before = 0, rest = 0;
    uint64_t since = p->changed_ns ? p->changed_ns : p->start_ns;
    for (size_t i = 0; i < p->total; i++)
        *(i < p->done ? &before : &rest) += p->expected_s[i];
    double pace = before > 0 ? (double)(since - p->start_ns) * 1e-9 / before : 1;
    double current = p->expected_s[p->done] * pace;
    return rest * pace - current + fabs(current - (double)(now_ns - since) * 1e-9);
}

/* Each as long as those before took on average. */
static double expect_same(const progress *p, uint64_t now_ns) {
    uint64_t since = p->changed_ns ? p->changed_ns : now_ns;
    double each = (double)(since - p->start_ns) * 1e-9 / (double)p->done;
    return each * (double)(p->total - p->done - 1) + fabs(each - (double)(now_ns - since) * 1e-9);
}

void progress_get_estimate(const progress *p, uint64_t now_ns, char *text, size_t size) {
    text[0] = 0;
    if ((p->done == 0 && !p->expected_s) || p->done >= p->total)
        return;
    double left = p->expected_s ? expect_rest(p, now_ns) : expect_same(p, now_ns);
    if (left < 90)
        snprintf(text, size, ", about %.0f s left", left < 1 ? 1 : left);
    else
        snprintf(text, size, ", about %.0f min left", left / 60);
}

void progress_hide(progress *p) {
    if (!p || !p->visible)
        return;
    fputs("\r\033[K", p->out);
    fflush(p->out);
    p->visible = false;
}

void progress_update(progress *p, size_t done) {
    if (!p)
        return;
    uint64_t now = os_now_ns();
    done = done > p->uncounted ? done - p->uncounted : 0;
    if (done != p->done)
        p->changed_ns = now;
    p->done = done;
    if (!p->on || (p->visible && now - p->drawn_ns < REDRAW_NS))
        return;
    char estimate[48], line[400];
    int limit = table_find_limit(p->out);
    progress_get_estimate(p, now, estimate, sizeof estimate);
    bool is_named = p->names && p->done < p->total;
    snprintf(line, sizeof line, "%zu/%zu %s%s%.200s%s", p->done, p->total, p->what,
             is_named ? ", now " : "", is_named ? p->names[p->done] : "", estimate);
    fprintf(p->out, "\r\033[K%.*s", limit > 0 ? limit - 1 : (int)sizeof line, line);
    fflush(p->out);
    p->visible = true;
    p->drawn_ns = now;
}
