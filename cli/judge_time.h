/* judge_time: a candidate that is right, timed interleaved with its base. */
#pragma once

#include "harness/measure/bench.h"
#include "harness/measure/verdict.h"

typedef struct {
    bool is_timed;
    char refusal[256]; /* why the candidate has no time, and so is refused; "" if it has one */
    char name[256];    /* of the case: "rmsnorm_rows/17x4096/normal/chained/warm" */
    verdict_case test; /* medians, the interval of candidate / base, the verdict */
    size_t samples;
    char labels[128]; /* of the candidate's row */
} judge_time;

typedef struct {
    const char *shape, *launch; /* NULL: the last one that the base takes; as the base */
    bench_settings bench;
} judge_time_settings;

/* given: "path/FILE.metal:KERNEL". */
bool judge_time_run(const judge_time_settings *s, const device_facts *f, const char *given,
                    const kernel *base, judge_time *out, err *e);
