/* timing_names: the words of timing.h, as spelled on the command line and in files. */
#include <stdio.h>
#include <string.h>

#include "timing.h"

static const char *const regimes[TIMING_REGIMES] = {"single", "chained", "independent"};
static const char *const caches[TIMING_CACHES] = {"warm", "cold"};
static const char *const clocks[CLOCK_COUNT] = {"gpu", "encode", "wall"};
static const char *const stops[STOP_COUNT] = {"steady", "budget", "max"};
static const char *const labels_by_bit[LABEL_COUNT] = {
    "emulated",   "virtual",   "throttled", "ramp",      "busy",    "gpu_is_wall", "unsteady",
    "above_roof", "validated", "hot",       "low_power", "battery", "overlap"};

static bool find_name(const char *const *names, int count, const char *name, int *out) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

const char *timing_get_regime_name(timing_regime r) {
    return regimes[r];
}

const char *timing_get_cache_name(timing_cache c) {
    return caches[c];
}

const char *timing_get_clock_name(timing_clock c) {
    return clocks[c];
}

const char *timing_get_stop_name(timing_stop s) {
    return stops[s];
}

bool timing_find_regime(const char *name, timing_regime *out) {
    int found = 0;
    bool ok = find_name(regimes, TIMING_REGIMES, name, &found);
    *out = (timing_regime)found;
    return ok;
}

bool timing_find_cache(const char *name, timing_cache *out) {
    int found = 0;
    bool ok = find_name(caches, TIMING_CACHES, name, &found);
    *out = (timing_cache)found;
    return ok;
}

double timing_get_clock(const timing_sample *s, timing_clock c) {
    return c == CLOCK_GPU ? s->gpu_ns : c == CLOCK_ENCODE ? s->encode_ns : s->wall_ns;
}

const char *timing_find_suspicion(const char *labels) {
    static const char *const suspect[] = {"busy", "throttled", "ramp"};
    for (size_t i = 0; i < sizeof suspect / sizeof *suspect; i++)
        if (strstr(labels, suspect[i]))
            return suspect[i];
    return NULL;
}

void timing_get_labels(unsigned labels, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < LABEL_COUNT; i++)
        if (labels >> i & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "",
                                     labels_by_bit[i]);
}
