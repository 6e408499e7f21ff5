/* The oracle of repetition_penalty. */
#include <math.h>

#include "reference.h"

static bool is_among(const uint32_t *ids, size_t n, uint32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

void reference_repetition_penalty(const uint32_t *ids, size_t n, size_t vocab, double penalty,
                                  double *logits, double *magnitude) {
    for (size_t i = 0; i < vocab; i++)
        magnitude[i] = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = ids[i];
        if (id >= vocab || is_among(ids, i, id))
            continue;
        logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
        magnitude[id] = fabs(logits[id]);
    }
}
