/* The oracles of activations: tanh is the library's. */
#include <math.h>

#include "reference.h"

double reference_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

double reference_squared_relu(double x) {
    return x < 0 ? 0 : x * x;
}

double reference_silu(double x) {
    return x * reference_sigmoid(x);
}

double reference_decay(double x) {
    return exp(-0.606531 * reference_sigmoid(x));
}
