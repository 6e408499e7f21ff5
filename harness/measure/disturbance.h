/* disturbance: was the CPU taken away while something was timed?
 *
 * Judged by the run itself, because a load average notices a neighbour only after a minute: how often
 * threads had to give way, how long they waited for a core, what a hypervisor took, and a spin loop
 * before, between and after the samples whose wall time should be its CPU time. */
#pragma once

#include "harness/base/host.h"

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
