/* timing: takes samples until the median is steady, and reports why it stopped.
 *
 * Owns when to sample: warm-up, steadiness, budget, order. What a sample is belongs to the source:
 * a tape in a regime and cache state (subject.h), or numbers out of a model in the tests. Several
 * sources are interleaved, A B B A B A A B, so that drift affects all of them equally.
 *
 * Nothing is ever dropped: a machine that throttles, ramps its clock or is busy puts labels on the
 * result. */
#pragma once

#include "harness/base/host.h"
#include "harness/base/stats.h"
#include "harness/device/device.h"

typedef enum { TIMING_SINGLE, TIMING_CHAINED, TIMING_INDEPENDENT, TIMING_REGIMES } timing_regime;
typedef enum { TIMING_WARM, TIMING_COLD, TIMING_CACHES } timing_cache;

const char *timing_get_regime_name(timing_regime r); /* "single", ... */
const char *timing_get_cache_name(timing_cache c);   /* "warm", "cold" */
bool timing_find_regime(const char *name, timing_regime *out);
bool timing_find_cache(const char *name, timing_cache *out);

/* The three clocks of one play; if a sample has many, its share. */
typedef struct {
    double gpu_ns, encode_ns, wall_ns;
    bool gpu_is_wall;
} timing_sample;

typedef enum { CLOCK_GPU, CLOCK_ENCODE, CLOCK_WALL, CLOCK_COUNT } timing_clock;
const char *timing_get_clock_name(timing_clock c);
double timing_get_clock(const timing_sample *s, timing_clock c);

typedef struct {
    bool (*take)(void *context, timing_sample *out, err *e);
    void *context;
} timing_source;

typedef struct {
    double target;    /* stop when the interquartile range of the median is below this part of it */
    double budget_s;  /* for each source, warm-up included */
    double warm_up_s; /* at least; at most a third of the budget */
    size_t min_samples, max_samples;
    double idle_s; /* after this long without work the device may be asleep: warm up again */
    bool on_cpu;   /* what is timed runs on the CPU: its clock matters */
    uint64_t (*now_ns)(void); /* NULL: the machine's own */
} timing_plan;

/* How long a sample of many plays should take: far above the resolution of clocks, and below the
 * few milliseconds after which a scheduler may interrupt it. */
#define TIMING_SAMPLE_S 0.002

/* The default: 0.5 percent within a second, 21 to 500 samples. */
timing_plan timing_plan_new(void);

typedef enum { STOP_STEADY, STOP_BUDGET, STOP_MAX, STOP_COUNT } timing_stop;
const char *timing_get_stop_name(timing_stop s);

/* States in which a number was taken. */
enum {
    LABEL_EMULATED = 1,     /* the software device: says nothing about a GPU */
    LABEL_VIRTUAL = 2,      /* a virtual GPU, under a hypervisor */
    LABEL_THROTTLED = 4,    /* became slower while it was timed */
    LABEL_RAMP = 8,         /* became faster: the clock was still rising */
    LABEL_BUSY = 16,        /* other programs took the CPU away while it was timed */
    LABEL_GPU_IS_WALL = 32, /* no clock of its own: GPU time is wall time */
    LABEL_UNSTEADY = 64,    /* the budget ended before the target was met */
    LABEL_ABOVE_ROOF = 128, /* more GB/s or GFLOP/s than the roof, within reason */
    LABEL_VALIDATED = 256,  /* under validation: times mean nothing */
    LABEL_HOT = 512,        /* the system reports heat */
    LABEL_LOW_POWER = 1024, /* the user asked for less speed */
    LABEL_BATTERY = 2048,   /* not on mains power */
    LABEL_OVERLAP = 4096,   /* sampled times of launches sum to more than the whole took */
    LABEL_COUNT = 13
};

/* The first of the labels of a row that says that its times may be off as a whole, so that more
 * samples of the same run do not help: busy, throttled or ramp. NULL if there is none. */
const char *timing_find_suspicion(const char *labels);

/* "emulated+busy", or "" for none. */
void timing_get_labels(unsigned labels, char *text, size_t size);

typedef struct {
    timing_sample *samples; /* in the order they were taken */
    size_t count;
    size_t discarded; /* of the warm-up */
    timing_stop stop;
    unsigned labels;
} timing_result;

/* Samples of count sources, interleaved if there is more than one: then all have the same number,
 * sample i of each was taken next to sample i of the others, and it is their ratio that must become
 * steady. The caller frees the results, also after a failure. */
bool timing_run(const timing_plan *plan, const timing_source *sources, size_t count,
                timing_result *results, err *e);
void timing_result_free(timing_result *r);

/* What the device and the machine say about numbers taken on them now. */
unsigned timing_find_labels(const device_facts *f);

/* One clock of all samples; caller frees. */
double *timing_list_clock(const timing_result *r, timing_clock c);
stats timing_compute_stats(const timing_result *r, timing_clock c);

/* Was the CPU taken away while something was timed?
 *
 * Judged by the run itself, because a load average notices a neighbour only after a minute: how often
 * threads had to give way, how long they waited for a core, what a hypervisor took, and a spin loop
 * before, between and after the samples whose wall time should be its CPU time. */
enum { DISTURBANCE_SPINS = 64 };

/* A spin loop of a fixed length. */
typedef struct {
    double wall_ns, cpu_ns;
} disturbance_spin;

typedef struct {
    host_usage before;
    uint64_t start_ns;
    disturbance_spin spins[DISTURBANCE_SPINS];
    size_t count;
} disturbance;

/* What was found, for judging and for showing. */
typedef struct {
    double seconds, cpu_s;
    double switches, wait_s, steal_s;
    int cores;
    const disturbance_spin *spins;
    size_t spin_count;
    bool on_cpu; /* the CPU is what is timed: a lower clock is a disturbance, too */
} disturbance_facts;

void disturbance_start(disturbance *d);
void disturbance_probe(
    disturbance *d); /* between samples: one spin loop, a tenth of a millisecond */
bool disturbance_end(disturbance *d, bool on_cpu);

/* The rule alone. */
bool disturbance_judge(const disturbance_facts *f);
