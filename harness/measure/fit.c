/* fit: see fit.h.
 *
 * At most 8 parts: every choice of parts that are not 0 is solved by itself, and the best solution
 * without a negative part is the answer. That is exact, and 255 small systems are nothing. */
#include "fit.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct {
    double at[FIT_PARTS][FIT_PARTS];
} matrix;

/* The columns of a choice, squared: row' row and row' 1, each row divided by its time. */
typedef struct {
    matrix squares;
    double target[FIT_PARTS];
    double scale[FIT_PARTS]; /* columns are made equally long, so that pivots can be judged */
} normal_form;

static normal_form make_normal_form(const double *rows, const double *times, size_t count,
                                    size_t parts) {
    normal_form n = {.squares = {{{0}}}};
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < parts; i++) {
            double x = rows[r * parts + i] / times[r];
            n.target[i] += x;
            for (size_t j = 0; j < parts; j++)
                n.squares.at[i][j] += x * rows[r * parts + j] / times[r];
        }
    for (size_t i = 0; i < parts; i++)
        n.scale[i] = n.squares.at[i][i] > 0 ? 1 / sqrt(n.squares.at[i][i]) : 0;
    for (size_t i = 0; i < parts; i++) {
        n.target[i] *= n.scale[i];
        for (size_t j = 0; j < parts; j++)
            n.squares.at[i][j] *= n.scale[i] * n.scale[j];
    }
    return n;
}

/* Cholesky of the chosen columns. False if one of them is made of the others. */
static bool factor(const normal_form *n, const size_t *chosen, size_t count, matrix *lower) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = n->squares.at[chosen[i]][chosen[j]];
            for (size_t k = 0; k < j; k++)
                sum -= lower->at[i][k] * lower->at[j][k];
            if (i == j && !(sum > 1e-10)) /* columns have length 1 */
                return false;
            lower->at[i][j] = i == j ? sqrt(sum) : sum / lower->at[j][j];
        }
    return true;
}

static void solve(const matrix *lower, size_t count, double *x) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= lower->at[i][k] * x[k];
        x[i] /= lower->at[i][i];
    }
    for (size_t i = count; i-- > 0;) {
        for (size_t k = i + 1; k < count; k++)
            x[i] -= lower->at[k][i] * x[k];
        x[i] /= lower->at[i][i];
    }
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

/* The parts of a choice; false if they cannot be told apart or one is negative. */
static bool try_choice(const normal_form *n, unsigned mask, size_t parts, fit *out) {
    size_t chosen[FIT_PARTS], count = 0;
    double x[FIT_PARTS];
    matrix lower;
    for (size_t i = 0; i < parts; i++)
        if (mask >> i & 1)
            chosen[count++] = i;
    if (!factor(n, chosen, count, &lower))
        return false;
    for (size_t i = 0; i < count; i++)
        x[i] = n->target[chosen[i]];
    solve(&lower, count, x);
    *out = (fit){.parts = parts};
    for (size_t i = 0; i < count; i++) {
        if (!(x[i] >= 0))
            return false;
        out->value[chosen[i]] = x[i] * n->scale[chosen[i]];
    }
    return true;
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
    normal_form n = make_normal_form(rows, times, count, parts);
    double best = INFINITY;
    *out = (fit){.parts = parts};
    for (unsigned mask = 1; mask < 1u << parts; mask++) {
        fit f;
        double squares =
            try_choice(&n, mask, parts, &f) ? sum_squares(&f, rows, times, count) : INFINITY;
        if (squares < best) {
            best = squares;
            *out = f;
        }
    }
    if (!isfinite(best))
        return err_set(e, EXIT_INCONCLUSIVE, "no parts above 0 explain the %zu times", count);
    out->relative_rms = sqrt(best / (double)count);
    return true;
}
