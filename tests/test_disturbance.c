/* Tests of harness/measure/disturbance: the rule on made-up facts, and spin loops on both clocks. */
#include <greatest.h>

#include "harness/measure/timing.h"

SUITE(disturbance_suite);

/* Facts of a second of which both cores were ours. */
static disturbance_facts make_calm(const disturbance_spin *spins, size_t count) {
    return (disturbance_facts){.seconds = 1,
                               .cpu_s = 2,
                               .switches = 4,
                               .wait_s = 0.004,
                               .cores = 2,
                               .spins = spins,
                               .spin_count = count,
                               .on_cpu = true};
}

TEST a_run_knows_by_itself_whether_it_was_disturbed(void) {
    disturbance_spin spins[10];
    for (int i = 0; i < 10; i++)
        spins[i] = (disturbance_spin){.wall_ns = 100500, .cpu_ns = 100000};
    const disturbance_facts calm = make_calm(spins, 10);
    disturbance_facts f = calm;
    ASSERT(!disturbance_judge(&f));
    f.switches = 300; /* other programs took the core */
    ASSERT(disturbance_judge(&f));
    f = calm;
    f.wait_s = 0.3; /* threads waited for one */
    ASSERT(disturbance_judge(&f));
    f = calm;
    f.steal_s = 0.1; /* another virtual machine had it */
    ASSERT(disturbance_judge(&f));
    f = calm;
    spins[3].wall_ns = 4e6; /* one interruption is no neighbour, three are */
    ASSERT(!disturbance_judge(&f));
    spins[5].wall_ns = spins[7].wall_ns = 4e6;
    ASSERT(disturbance_judge(&f));
    for (int i = 0; i < 10; i++)
        spins[i] =
            (disturbance_spin){.wall_ns = i < 5 ? 1e5 : 1.5e5, .cpu_ns = i < 5 ? 1e5 : 1.5e5};
    ASSERT(disturbance_judge(&f));
    f.on_cpu = false; /* a GPU does not care how fast the CPU is */
    ASSERT(!disturbance_judge(&f));
    PASS();
}

TEST spin_loops_are_timed_by_both_clocks(void) {
    disturbance d;
    disturbance_start(&d);
    for (int i = 0; i < 2 * DISTURBANCE_SPINS; i++)
        disturbance_probe(&d);
    ASSERT(d.count == DISTURBANCE_SPINS);
    for (size_t i = 0; i < d.count; i++)
        ASSERT(d.spins[i].wall_ns > 0 && d.spins[i].cpu_ns > 0);
    PASS();
}

SUITE(disturbance_suite) {
    RUN_TEST(a_run_knows_by_itself_whether_it_was_disturbed);
    RUN_TEST(spin_loops_are_timed_by_both_clocks);
}
