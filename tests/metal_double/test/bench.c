/* bench: see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

void double_start_over(void); /* its header, double.h, is Objective-C */

bench b;

bool bench_set_up(int launches) {
    char folder[1024], home[900];
    b = (bench){0};
    if (!os_find_home(home, sizeof home, &b.e) || !(b.device = device_open("metal", &b.e)))
        return false;
    snprintf(folder, sizeof folder, "%s/tests/kernels", home);
    b.library = library_new(b.device, folder, &b.e);
    b.tape = tape_new(b.library);
    b.x = device_new_buffer(b.device, N * 4, STORAGE_SHARED, "x", &b.e);
    b.step = device_new_buffer(b.device, 4, STORAGE_SHARED, "step", &b.e);
    if (!b.library || !b.x || !b.step)
        return false;
    memset(b.x->contents, 0, N * 4);
    *(float *)b.step->contents = 1;
    for (int i = 0; i < launches; i++) {
        tape_mark(b.tape, "step");
        launch *l = tape_add(b.tape, "tape.metal", "advance", &b.e);
        if (!l)
            return false;
        launch_bind(l, 0, slice_whole(b.x), ACCESS_BOTH, ELEM_F32);
        launch_set_f32(l, 1, 1);
        launch_bind(l, 2, slice_whole(b.step), ACCESS_READ, ELEM_F32);
        launch_set_u32(l, 3, N);
        launch_set_threads_rounded(l, N, 32);
        tape_barrier(b.tape);
    }
    return true;
}

void bench_tear_down(void *unused) {
    (void)unused;
    tape_free(b.tape);
    buffer_free(b.x);
    buffer_free(b.step);
    library_free(b.library);
    if (b.device)
        device_close(b.device);
    b = (bench){0};
    unsetenv("METAL_DOUBLE");
    double_start_over();
}
