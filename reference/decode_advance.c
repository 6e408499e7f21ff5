/* The oracle of decode_advance. */
#include "reference.h"

void reference_decode_advance(uint32_t next, const uint32_t before[4], uint32_t ring,
                              double after[4], double *history) {
    history[before[3] % ring] = next;
    after[0] = next;
    for (int i = 1; i < 4; i++) /* pos, kv_len, step: each wraps at 32 bits */
        after[i] = before[i] + 1u;
}
