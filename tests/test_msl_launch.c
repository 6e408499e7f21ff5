/* The MSL front end: which launches it refuses, and what it says of them. No device, no compiler.
 */
#include <greatest.h>
#include <string.h>

#include "harness/device/launch.h"
#include "harness/device/msl/msl.h"

SUITE(msl_launch_suite);

static err why;
static msl_unit *unit;

/* A launch that fits `k` of the text below, to be spoilt by each test. */
static const char launched[] =
    "kernel void k(device const float4 *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
    "  constant uint &n [[buffer(2)]], threadgroup float *s [[threadgroup(0)]],\n"
    "  uint i [[thread_position_in_grid]]) {}\n"
    "[[kernel, max_total_threads_per_threadgroup(64)]] void small(device float *y) {}\n";

static launch make_launch(void) {
    static char memory; /* never touched: a launch is only described here */
    buffer *b = (buffer *)(void *)&memory;
    launch l = {.grid = {4, 1, 1}, .group = {32, 2, 1}};
    l.args[0] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_F32, {b, 16, 64}, 0, 0};
    l.args[1] = (binding){BIND_BUFFER, ACCESS_WRITE, ELEM_F32, {b, 4, 64}, 0, 0};
    l.args[2] = (binding){BIND_BYTES, ACCESS_READ, ELEM_U32, {0}, 0, 4};
    l.threadgroup_bytes[0] = 128;
    return l;
}

static bool check(const char *kernel, const launch *l) {
    const msl_signature *s = unit ? msl_find_kernel(unit, kernel, &why) : NULL;
    return s && launch_check_fit(l, s, 1024, 32768, &why);
}

static bool fits(const launch *l) {
    return check("k", l);
}

static bool says(const char *part) {
    return strstr(why.text, part) != NULL;
}

TEST a_launch_that_fits_is_accepted(void) {
    launch l = make_launch();
    ASSERT(fits(&l));
    l.args[2] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_U32, {l.args[0].at.buffer, 8, 16}, 0, 0};
    ASSERT(fits(&l));
    PASS();
}

TEST bindings_that_do_not_fit_are_refused_by_name_and_index(void) {
    launch l = make_launch();
    l.args[1].kind = BIND_NONE;
    ASSERT(!fits(&l) && says("kernel k: buffer 1 (y, float *) is not bound"));
    l = make_launch();
    l.args[5] = l.args[1];
    ASSERT(!fits(&l) && says("buffer 5 is bound"));
    l = make_launch();
    l.args[2].inline_bytes = 8;
    ASSERT(!fits(&l) && says("buffer 2 (n, uint &) is given 8 bytes and takes 4"));
    l.args[2] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_U32, {l.args[0].at.buffer, 0, 2}, 0, 0};
    ASSERT(!fits(&l) && says("buffer 2 (n, uint &) is bound to 2 bytes and takes 4"));
    l = make_launch();
    l.args[0].access = ACCESS_WRITE;
    ASSERT(!fits(&l) && says("buffer 0 (x, const float4 *)") && says("const in the kernel"));
    l = make_launch();
    l.args[0].at.offset = 8;
    ASSERT(!fits(&l) && says("buffer 0") && says("offset 8") && says("multiple of 16"));
    PASS();
}

TEST threadgroup_memory_must_be_what_the_kernel_asks_for(void) {
    launch l = make_launch();
    l.threadgroup_bytes[0] = 0;
    ASSERT(!fits(&l) && says("threadgroup 0 (s, float *) is given no memory"));
    l = make_launch();
    l.threadgroup_bytes[3] = 16;
    ASSERT(!fits(&l) && says("threadgroup 3 is given 16 bytes"));
    l = make_launch();
    l.threadgroup_bytes[0] = 32784;
    ASSERT(!fits(&l) && says("32784 bytes") && says("32768"));
    PASS();
}

TEST grids_and_groups_must_be_possible(void) {
    launch l = make_launch();
    l.grid.y = 0;
    ASSERT(!fits(&l) && says("kernel k: the grid is empty: 4 x 0 x 1"));
    l = make_launch();
    l.group.z = 0;
    ASSERT(!fits(&l) && says("threadgroup is empty: 32 x 2 x 0"));
    l = make_launch();
    l.group = (size3){1u << 31, 1u << 31, 4};
    ASSERT(!fits(&l) && says("1024 threads"));
    l = (launch){.grid = {1, 1, 1}, .group = {65, 1, 1}};
    l.args[0] = make_launch().args[1];
    ASSERT_FALSE(check("small", &l));
    ASSERT(says("small") && says("max_total_threads_per_threadgroup(64)"));
    PASS();
}

static void read_text(void *unused) {
    (void)unused;
    memset(&why, 0, sizeof why);
    unit = msl_from_text("test.metal", launched, &why);
}

static void free_text(void *unused) {
    (void)unused;
    msl_free(unit);
    unit = NULL;
}

SUITE(msl_launch_suite) {
    SET_SETUP(read_text, NULL);
    SET_TEARDOWN(free_text, NULL);
    RUN_TEST(a_launch_that_fits_is_accepted);
    RUN_TEST(bindings_that_do_not_fit_are_refused_by_name_and_index);
    RUN_TEST(threadgroup_memory_must_be_what_the_kernel_asks_for);
    RUN_TEST(grids_and_groups_must_be_possible);
}
