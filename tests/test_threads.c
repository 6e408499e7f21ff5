/* Grids, threadgroups, barriers, threadgroup memory and atomics of the software device. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

SUITE_EXTERN(threads_suite);

typedef struct {
    uint32_t grid[3], local[3], group[3], size[3], nominal[3], groups[3], threads[3];
    uint32_t index, simd, lane, simds;
} place;

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Every thread of a 3-D grid is where a loop says it is. */
static const char *find_wrong_place(const place *p, const uint32_t threads[3],
                                    const uint32_t group[3], uint32_t x, uint32_t y, uint32_t z) {
    const uint32_t at[3] = {x, y, z};
    uint32_t size[3], index, total;
    for (int k = 0; k < 3; k++) {
        const uint32_t g = at[k] / group[k];
        size[k] = smaller(group[k], threads[k] - g * group[k]);
        if (p->grid[k] != at[k] || p->group[k] != g || p->local[k] != at[k] % group[k])
            return "a position is wrong";
        if (p->size[k] != size[k] || p->nominal[k] != group[k])
            return "a threadgroup size is wrong";
        if (p->groups[k] != (threads[k] + group[k] - 1) / group[k] || p->threads[k] != threads[k])
            return "a grid size is wrong";
    }
    index = (p->local[2] * size[1] + p->local[1]) * size[0] + p->local[0];
    total = size[0] * size[1] * size[2];
    if (p->index != index || p->simd != index / 32 || p->lane != index % 32)
        return "an index is wrong";
    return p->simds == (total + 31) / 32 ? NULL : "the number of simdgroups is wrong";
}

TEST every_thread_of_a_grid_knows_its_place(const uint32_t threads[3], const uint32_t group[3]) {
    const size_t count = (size_t)threads[0] * threads[1] * threads[2];
    slice out = support_buffer(NULL, count * sizeof(place));
    ASSERT_PLAYS("threads.metal", "places_3d", ((size3){threads[0], threads[1], threads[2]}),
                 ((size3){group[0], group[1], group[2]}), WRITES(out, ELEM_U32));
    const place *p = support_read(out);
    for (uint32_t z = 0; z < threads[2]; z++)
        for (uint32_t y = 0; y < threads[1]; y++)
            for (uint32_t x = 0; x < threads[0]; x++) {
                const char *wrong = find_wrong_place(p++, threads, group, x, y, z);
                if (wrong)
                    FAILm(wrong);
            }
    PASS();
}

TEST two_dimensions_of_short_positions_work(void) {
    uint16_t want[4];
    slice out = support_buffer(NULL, 7 * 5 * 8);
    ASSERT_PLAYS("threads.metal", "places_2d", ((size3){7, 5, 1}), ((size3){4, 2, 1}),
                 WRITES(out, ELEM_U16));
    for (uint16_t y = 0; y < 5; y++)
        for (uint16_t x = 0; x < 7; x++) {
            want[0] = x, want[1] = y, want[2] = x % 4, want[3] = y % 2;
            ASSERT_MEM_EQ(want, (const char *)support_read(out) + (y * 7 + x) * 8, 8);
        }
    PASS();
}

TEST one_dimension_covers_large_grids_exactly_once(void) {
    const uint32_t n = 1000003;
    slice out = support_buffer(NULL, n * 4);
    ASSERT_PLAYS("threads.metal", "places_1d", ((size3){n, 1, 1}), ((size3){256, 1, 1}),
                 WRITES(out, ELEM_U32));
    const uint32_t *got = support_read(out);
    for (uint32_t i = 0; i < n; i++)
        ASSERT_EQ(i * 3 + 1, got[i]);
    PASS();
}

TEST grids_can_be_tall(void) {
    enum { WIDTH = 3, HEIGHT = 70001 };
    slice out = support_buffer(NULL, WIDTH * HEIGHT * 4);
    ASSERT_PLAYS("threads.metal", "places_tall", ((size3){WIDTH, HEIGHT, 1}), ((size3){1, 1, 1}),
                 WRITES(out, ELEM_U32));
    const uint32_t *got = support_read(out);
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            ASSERT_EQ(y * 3 + x, got[y * WIDTH + x]);
    PASS();
}

static float *make_ramp(uint32_t n) {
    float *x = malloc(n * sizeof *x);
    for (uint32_t i = 0; x && i < n; i++)
        x[i] = (float)(i % 97);
    return x;
}

/* in, out over `groups` threadgroups of `size`; dynamic threadgroup memory where asked for. */
static bool run_groups(const char *kernel, uint32_t groups, uint32_t size, uint32_t dynamic,
                       slice in, slice out) {
    launch *l = support_launch("threads.metal", kernel);
    if (!l)
        return false;
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    l->threadgroup_bytes[0] = dynamic;
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){size, 1, 1});
    return support_play();
}

static float sum_range(const float *x, uint32_t first, uint32_t end) {
    float sum = 0;
    for (uint32_t i = first; i < end; i++)
        sum += x[i];
    return sum;
}

/* One barrier; barriers in a loop, which all simdgroups keep step in; barriers and simdgroup functions. */
enum { REVERSE, TREE, TWO_LEVELS };
static const struct {
    const char *kernel;
    uint32_t groups;
} exchanges[] = {{"reverse_group", 5}, {"tree_sum", 9}, {"two_level_sum", 4}};

TEST barriers_make_threadgroup_memory_visible(int which, uint32_t size) {
    const uint32_t groups = exchanges[which].groups, n = groups * size;
    const uint32_t results = which == TREE ? groups : n;
    float *x = make_ramp(n);
    slice in = support_buffer(x, n * 4), out = support_buffer(NULL, results * 4);
    ASSERTm(support_get_error()->text, run_groups(exchanges[which].kernel, groups, size,
                                                  which == TREE ? size * 4 : 0, in, out));
    const float *got = support_read(out);
    for (uint32_t i = 0; i < results; i++) {
        const uint32_t first = which == TREE ? i * size : i / size * size;
        const float want =
            which == REVERSE ? x[first + size - 1 - i % size] : sum_range(x, first, first + size);
        ASSERT_EQ_FMT((double)want, (double)got[i], "%g");
    }
    free(x);
    PASS();
}

TEST threads_that_returned_are_not_waited_for(void) {
    const uint32_t n = 45;
    float *x = make_ramp(64);
    slice in = support_buffer(x, 64 * 4), out = support_buffer(NULL, n * 4);
    ASSERT_PLAYS("threads.metal", "early_return", ((size3){64, 1, 1}), ((size3){64, 1, 1}),
                 READS(in, ELEM_F32), WRITES(out, ELEM_F32), NUMBER(n));
    const float *got = support_read(out);
    for (uint32_t i = 0; i < n; i++) {
        const float want = sum_range(x, i / 32 * 32, smaller(n, i / 32 * 32 + 32));
        ASSERT_EQ_FMT((double)want, (double)got[i], "%g");
    }
    free(x);
    PASS();
}

TEST threadgroup_memory_does_not_survive_its_threadgroup(void) {
    SKIP_ON_MAC();
    slice out = support_buffer(NULL, 64 * 4);
    launch *l = support_launch("threads.metal", "stale_threadgroup");
    ASSERTm(support_get_error()->text, l);
    if (strcmp(device_get_facts(support_get_device())->api, "cuda") == 0) {
        support_end();
        SKIPm("this GPU leaves threadgroup memory as the last threadgroup left it");
    }
    launch_bind(l, 0, out, ACCESS_WRITE, ELEM_F32);
    launch_set_groups(l, (size3){64, 1, 1}, (size3){1, 1, 1});
    ASSERT(support_play());
    const float *got = support_read(out);
    ASSERT_EQ(1.0f, got[0]);
    for (int i = 1; i < 64; i++)
        ASSERT(got[i] != got[i]);
    PASS();
}

TEST atomics_in_threadgroup_and_device_memory_lose_nothing(void) {
    enum { N = 20011 };
    static uint32_t x[N];
    uint32_t want[16] = {0};
    for (uint32_t i = 0; i < N; i++) {
        x[i] = i * 2654435761u >> 7;
        want[x[i] % 16]++;
    }
    const uint32_t zeros[16] = {0};
    slice in = support_buffer(x, sizeof x), bins = support_buffer(zeros, sizeof zeros);
    launch *l = support_launch("threads.metal", "histogram");
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, in, ACCESS_READ, ELEM_U32);
    launch_bind(l, 1, bins, ACCESS_BOTH, ELEM_U32);
    launch_set_u32(l, 2, N);
    launch_set_threads_rounded(l, N, 128);
    ASSERT(support_play());
    ASSERT_MEM_EQ(want, support_read(bins), sizeof want);
    PASS();
}

TEST every_kind_of_atomic_gives_the_right_result(void) {
    enum { N = 4096 };
    static int32_t x[N];
    int32_t lowest = 0, highest = 0, sum = 0;
    uint32_t odd = 0;
    for (int32_t i = 0; i < N; i++) {
        x[i] = (i * 37) % 1009 - 500;
        lowest = x[i] < lowest ? x[i] : lowest;
        highest = x[i] > highest ? x[i] : highest;
        sum += x[i];
        odd ^= (uint32_t)x[i];
    }
    const int32_t start[5] = {0, 0, N, 0, 0};
    const uint32_t bits[3] = {0, ~0u, 0};
    const float zero = 0;
    slice in = support_buffer(x, sizeof x), result = support_buffer(start, sizeof start);
    slice words = support_buffer(bits, sizeof bits), total = support_buffer(&zero, 4);
    ASSERT_PLAYS("threads.metal", "atomics", ((size3){N / 64 * 64, 1, 1}), ((size3){64, 1, 1}),
                 READS(in, ELEM_I32), UPDATES(result, ELEM_I32), UPDATES(words, ELEM_U32),
                 UPDATES(total, ELEM_F32));
    const int32_t want[5] = {lowest, highest, 0, sum, 7};
    const uint32_t want_bits[3] = {~0u, 0, odd};
    ASSERT_MEM_EQ(want, support_read(result), sizeof want);
    ASSERT_MEM_EQ(want_bits, support_read(words), sizeof want_bits);
    ASSERT_EQ((float)N / 2.0f, *(const float *)support_read(total));
    PASS();
}

SUITE(threads_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    static const uint32_t grids[][2][3] = {
        {{1, 1, 1}, {1, 1, 1}},     {{100, 1, 1}, {32, 1, 1}},    {{65, 1, 1}, {64, 1, 1}},
        {{9, 7, 1}, {4, 4, 1}},     {{5, 6, 7}, {2, 3, 4}},       {{3, 3, 33}, {1, 1, 32}},
        {{40, 40, 2}, {32, 32, 1}}, {{1, 1025, 1}, {1, 1024, 1}},
    };
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        RUN_TESTp(every_thread_of_a_grid_knows_its_place, grids[i][0], grids[i][1]);
    RUN_TEST(two_dimensions_of_short_positions_work);
    RUN_TEST(one_dimension_covers_large_grids_exactly_once);
    RUN_TEST(grids_can_be_tall);
    static const uint32_t sizes[] = {1, 2, 31, 32, 33, 96, 256, 1000, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RUN_TESTp(barriers_make_threadgroup_memory_visible, REVERSE, sizes[i]);
        RUN_TESTp(barriers_make_threadgroup_memory_visible, TWO_LEVELS, sizes[i]);
    }
    static const uint32_t powers[] = {1, 2, 16, 32, 64, 512, 1024};
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        RUN_TESTp(barriers_make_threadgroup_memory_visible, TREE, powers[i]);
    RUN_TEST(threads_that_returned_are_not_waited_for);
    RUN_TEST(threadgroup_memory_does_not_survive_its_threadgroup);
    RUN_TEST(atomics_in_threadgroup_and_device_memory_lose_nothing);
    RUN_TEST(every_kind_of_atomic_gives_the_right_result);
}
