#include "gate.h"

#include <math.h>
#include <stdio.h>

void gate_compare(gate *g, const char *name, const char *what, double was, double now) {
    if (isnan(was) || isnan(now) || now <= was * (1 + g->threshold / 100))
        return;
    printf("%s: %s grew from %.0f to %.0f (%+.1f %%)\n", name, what, was, now,
           was > 0 ? 100 * (now / was - 1) : INFINITY);
    g->grown++;
}

exit_code gate_end(const gate *g, const char *things, err *e) {
    if (g->compared == 0)
        return err_code(e, EXIT_INCONCLUSIVE, "%.160s has none of these %s", g->baseline, things);
    fprintf(stderr, "%zu compared with %s, %zu number%s grew by more than %g %%\n", g->compared,
            g->baseline, g->grown, g->grown == 1 ? "" : "s", g->threshold);
    return g->grown ? EXIT_REGRESSION : EXIT_OK;
}
