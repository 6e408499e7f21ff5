#include "disturbance.h"

#include <math.h>

#include "harness/base/os.h"

enum {
    ROUNDS = 40000,  /* of a spin loop: about a tenth of a millisecond */
    AT_EACH_END = 4, /* spin loops before the first sample and after the last */
    FEWEST_SPINS = 5,
};

#define FEW_SWITCHES 5   /* involuntary ones that any run may have */
#define MOST_SWITCHES 20 /* per second of CPU time: beside a busy neighbour there are hundreds */
#define MOST_STEAL 0.02  /* of the cores' time */
#define MOST_WAIT 0.05   /* waiting for a core, per second of CPU time */
#define FEW_WAIT_S 0.005 /* that any run may wait */
#define MOST_LOST 1.1    /* wall time of a spin loop over its CPU time */
#define MOST_SLOWER 1.2  /* CPU time of a spin loop over the shortest */
#define MOST_BAD_SPINS 0.2

static disturbance_spin spin(void) {
    static volatile uint64_t sink;
    uint64_t x = sink | 1, start = os_now_ns(), cpu = os_thread_ns();
    for (int i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
    cpu = os_thread_ns() - cpu;
    return (disturbance_spin){(double)(os_now_ns() - start), (double)cpu};
}

void disturbance_probe(disturbance *d) {
    if (d->count < DISTURBANCE_SPINS)
        d->spins[d->count++] = spin();
}

void disturbance_start(disturbance *d) {
    d->count = 0;
    for (int i = 0; i < AT_EACH_END; i++)
        disturbance_probe(d);
    d->start_ns = os_now_ns();
    d->before = host_get_usage();
}

static bool has_bad_spins(const disturbance_facts *f) {
    double least = INFINITY, bad = 0;
    for (size_t i = 0; i < f->spin_count; i++)
        least = fmin(least, f->spins[i].cpu_ns);
    for (size_t i = 0; i < f->spin_count; i++) {
        const disturbance_spin *s = &f->spins[i];
        bool is_known = s->cpu_ns > 0;
        bad += is_known && (s->wall_ns > MOST_LOST * s->cpu_ns ||
                            (f->on_cpu && s->cpu_ns > MOST_SLOWER * least));
    }
    return f->spin_count >= FEWEST_SPINS && bad > MOST_BAD_SPINS * (double)f->spin_count;
}

bool disturbance_judge(const disturbance_facts *f) {
    return (f->switches > FEW_SWITCHES && f->switches > MOST_SWITCHES * f->cpu_s) ||
           (f->wait_s > FEW_WAIT_S && f->wait_s > MOST_WAIT * f->cpu_s) ||
           f->steal_s > MOST_STEAL * f->seconds * f->cores || has_bad_spins(f);
}

bool disturbance_end(disturbance *d, bool on_cpu) {
    host_usage after = host_get_usage();
    disturbance_facts f = {.seconds = (double)(os_now_ns() - d->start_ns) * 1e-9,
                           .cpu_s = after.cpu_s - d->before.cpu_s,
                           .switches = after.switches - d->before.switches,
                           .wait_s = after.wait_s - d->before.wait_s,
                           .steal_s = after.steal_s - d->before.steal_s,
                           .cores = os_count_cpus(),
                           .on_cpu = on_cpu};
    for (int i = 0; i < AT_EACH_END; i++)
        disturbance_probe(d);
    f.spins = d->spins;
    f.spin_count = d->count;
    return disturbance_judge(&f);
}
