/* fit: see fit.h. One part after the other is set to what is best beside the others, or to 0, until none moves: the
 * squares have one valley, so that this ends at its lowest place. */
#include "fit.h"

#include <assert.h>
#include <math.h>

enum { MOST_ROUNDS = 1000000 };

/* row' row and row' 1, each row divided by its time. */
typedef struct {
    double squares[FIT_PARTS][FIT_PARTS], target[FIT_PARTS];
} normal_form;

static normal_form make_normal_form(const double *rows, const double *times, size_t count,
                                    size_t parts) {
    normal_form n = {.squares = {{0}}};
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < parts; i++) {
            double x = rows[r * parts + i] / times[r];
            n.target[i] += x;
            for (size_t j = 0; j < parts; j++)
                n.squares[i][j] += x * rows[r * parts + j] / times[r];
        }
    return n;
}

double fit_predict(const fit *f, const double *row) {
    double sum = 0;
    for (size_t i = 0; i < f->parts; i++)
        sum += f->value[i] * row[i];
    return sum;
}

static double sum_squares(const fit *f, const double *rows, const double *times, size_t count) {
    double sum = 0;
    for (size_t r = 0; r < count; r++) {
        double left = fit_predict(f, rows + r * f->parts) / times[r] - 1;
        sum += left * left;
    }
    return sum;
}

/* What a part explains of all times together is at least this, or it is 0. */
#define LEAST_SHARE 1e-9

/* How far the part that moves most does, as a share of the times. */
static double improve(const normal_form *n, fit *f) {
    double most = 0;
    for (size_t i = 0; i < f->parts; i++) {
        double left = n->target[i], before = f->value[i], length = sqrt(n->squares[i][i]);
        for (size_t j = 0; j < f->parts; j++)
            left -= n->squares[i][j] * f->value[j];
        const double best = length > 0 ? before + left / n->squares[i][i] : 0;
        f->value[i] = best * length > LEAST_SHARE ? best : 0;
        most = fmax(most, fabs(f->value[i] - before) * length);
    }
    return most;
}

bool fit_parts(const double *rows, const double *times, size_t count, size_t parts, fit *out,
               err *e) {
    assert(parts >= 1 && parts <= FIT_PARTS);
    if (count < parts)
        return err_set(e, EXIT_INCONCLUSIVE, "%zu measured times are too few to find %zu parts",
                       count, parts);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < parts; i++)
            if (!(times[r] > 0) || !isfinite(times[r]) || !isfinite(rows[r * parts + i]))
                return err_set(e, EXIT_INCONCLUSIVE, "time %zu of the fit is %g: nothing to fit", r,
                               times[r]);
    const normal_form n = make_normal_form(rows, times, count, parts);
    double sum = 0;
    *out = (fit){.parts = parts};
    for (int round = 0; round < MOST_ROUNDS && improve(&n, out) > 1e-13; round++)
        ;
    for (size_t i = 0; i < parts; i++)
        sum += out->value[i];
    if (!(sum > 0))
        return err_set(e, EXIT_INCONCLUSIVE, "no parts above 0 explain the %zu times", count);
    out->relative_rms = sqrt(sum_squares(out, rows, times, count) / (double)count);
    return true;
}
