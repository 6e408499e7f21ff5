#include "bench_wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *wire_pack(const wire_answer *a, const timing_sample *const *samples, size_t *bytes) {
    *bytes = sizeof *a;
    for (size_t i = 0; i < a->sides; i++)
        *bytes += a->rows[i].gpu.count * sizeof **samples;
    char *all = malloc(*bytes), *at = all + sizeof *a;
    assert(all);
    memcpy(all, a, sizeof *a);
    for (size_t i = 0; i < a->sides; i++) {
        size_t size = a->rows[i].gpu.count * sizeof **samples;
        if (size > 0)
            memcpy(at, samples[i], size);
        at += size;
    }
    return all;
}

bool wire_unpack(const void *data, size_t bytes, wire_answer *a, timing_sample **samples) {
    if (bytes < sizeof *a)
        return false;
    memcpy(a, data, sizeof *a);
    size_t left = bytes - sizeof *a, each = sizeof **samples;
    bool ok = a->sides <= WIRE_SIDES;
    for (size_t i = 0; ok && i < a->sides; left -= a->rows[i++].gpu.count * each)
        ok = a->rows[i].gpu.count <= left / each;
    if (!ok || left > 0)
        return false;
    const char *at = (const char *)data + sizeof *a;
    for (size_t i = 0; i < a->sides; i++) {
        size_t count = a->rows[i].gpu.count;
        samples[i] = calloc(count + 1, each);
        assert(samples[i]);
        memcpy(samples[i], at, count * each);
        at += count * each;
    }
    return true;
}
