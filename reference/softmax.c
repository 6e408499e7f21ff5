/* The oracle of softmax. */
#include <float.h>
#include <math.h>

#include "reference.h"

/* The distance from the largest is rounded, and an exponential errs in proportion to it: hence the
 * 1 + distance. What leaves the normal floats may be lost. So may terms of the sum that are below its
 * roundoff: adding many of them one by one is not off by a random walk, but by all of them. */
void reference_softmax(const float *x, size_t rows, size_t n, double roundings, double *y,
                       double *magnitude) {
    const double roundoff = (double)FLT_EPSILON / 2;
    for (size_t r = 0; r < rows; r++, x += n, y += n, magnitude += n) {
        double largest = -INFINITY, sum = 0, lost = 0;
        for (size_t i = 0; i < n; i++)
            largest = fmax(largest, (double)x[i]);
        for (size_t i = 0; i < n; i++)
            sum += exp((double)x[i] - largest);
        for (size_t i = 0; i < n; i++) {
            double weight = exp((double)x[i] - largest) / sum;
            lost += weight <= roundoff ? weight / roundoff : 0;
        }
        for (size_t i = 0; i < n; i++) {
            double distance = largest - (double)x[i];
            y[i] = exp(-distance) / sum;
            magnitude[i] = y[i] * (1 + distance + lost / roundings);
            if (exp(-distance) < 2 * (double)FLT_MIN)
                magnitude[i] = y[i] / (double)FLT_EPSILON;
        }
    }
}
