/* progress: see progress.h. */
#include "progress.h"

#include <unistd.h>

#include "os.h"

enum { REDRAW_NS = 100000000 }; /* more often would be noise */

progress progress_new(FILE *out, const char *what, size_t total) {
    progress p = {.out = out, .what = what, .total = total, .start_ns = os_now_ns()};
    p.on = isatty(fileno(out)) == 1;
    return p;
}

void progress_get_estimate(const progress *p, uint64_t now_ns, char *text, size_t size) {
    text[0] = 0;
    if (p->done == 0 || p->done >= p->total)
        return;
    double spent = (double)(now_ns - p->start_ns) * 1e-9;
    double left = spent / (double)p->done * (double)(p->total - p->done);
    if (left < 90)
        snprintf(text, size, ", about %.0f s left", left < 1 ? 1 : left);
    else
        snprintf(text, size, ", about %.0f min left", left / 60);
}

void progress_hide(progress *p) {
    if (!p->visible)
        return;
    fputs("\r\033[K", p->out);
    fflush(p->out);
    p->visible = false;
}

void progress_update(progress *p, size_t done) {
    p->done = done;
    uint64_t now = os_now_ns();
    if (!p->on || (p->visible && now - p->drawn_ns < REDRAW_NS))
        return;
    char estimate[48];
    progress_get_estimate(p, now, estimate, sizeof estimate);
    fprintf(p->out, "\r\033[K%zu/%zu %s%s", p->done, p->total, p->what, estimate);
    fflush(p->out);
    p->visible = true;
    p->drawn_ns = now;
}
