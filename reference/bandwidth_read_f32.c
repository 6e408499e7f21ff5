/* The oracle of bandwidth_read_f32. */
#include <math.h>

#include "reference.h"

void reference_read_sums(const float *data, size_t count, size_t groups, size_t group, double *sums,
                         double *magnitude) {
    for (size_t g = 0; g < groups; g++)
        sums[g] = magnitude[g] = 0;
    for (size_t i = 0; i < count; i++) {
        size_t thread = i % (groups * group), g = thread / group;
        for (size_t j = 0; j < 4; j++) {
            sums[g] += (double)data[4 * i + j];
            magnitude[g] += fabs((double)data[4 * i + j]);
        }
    }
}
