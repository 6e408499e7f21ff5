/* Products, loads and stores of simdgroup matrices against sums in double. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>

#include "support.h"

SUITE_EXTERN(simd_matrix_suite);

enum { N = 8, SIDE = 17, ALL = SIDE * SIDE, LANES = 32, WAYS = 16 };

static const struct {
    const char *kernel;
    elem a, b, d;
} products[] = {
    {"multiply_float", ELEM_F32, ELEM_F32, ELEM_F32},
    {"multiply_half", ELEM_F16, ELEM_F16, ELEM_F16},
    {"multiply_half_to_float", ELEM_F16, ELEM_F16, ELEM_F32},
    {"multiply_bfloat_to_float", ELEM_BF16, ELEM_BF16, ELEM_F32},
    {"multiply_float_by_half", ELEM_F32, ELEM_F16, ELEM_F32},
    {"multiply_half_by_float", ELEM_F16, ELEM_F32, ELEM_F32},
};

static const struct {
    const char *kernel;
    elem type;
} held[] = {
    {"elements_float", ELEM_F32}, {"elements_half", ELEM_F16}, {"elements_bfloat", ELEM_BF16}};

/* All bits of a number matter: products of fewer would be found out. */
static slice make_numbers(elem type, uint32_t seed, size_t count, void *copy) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        elem_write(type, copy, i, ldexp((double)seed, -31) - 1);
    }
    return support_buffer(copy, count * elem_get_bytes(type));
}

typedef struct {
    elem type;
    const void *at;
    int column, row; /* in memory */
    bool is_transposed;
} matrix;

static double get(const matrix *m, int row, int column) {
    int x = m->is_transposed ? row : column, y = m->is_transposed ? column : row;
    return elem_read(m->type, m->at, (size_t)((m->row + y) * SIDE + m->column + x));
}

/* An element of a b + c; c may be NULL. Its tolerance is that of 16 roundings of float, and one to the
 * result's type. */
static bool is_near(const matrix *a, const matrix *b, const matrix *c, elem type, double got,
                    int row, int column) {
    double want = c ? get(c, row, column) : 0, scale = fabs(want);
    for (int k = 0; k < N; k++) {
        double term = get(a, row, k) * get(b, k, column);
        want += term;
        scale += fabs(term);
    }
    return fabs(got - want) <= 16 * elem_get_roundoff(ELEM_F32) * scale +
                                   elem_get_roundoff(type) * fabs(want) + ldexp(1, -25);
}

static bool run_product(int which, slice *at, uint32_t how) {
    return support_run("simd_matrix.metal", products[which].kernel, ((size3){LANES, 1, 1}),
                       ((size3){LANES, 1, 1}), READS(at[0], products[which].a),
                       READS(at[1], products[which].b), READS(at[2], products[which].d),
                       WRITES(at[3], products[which].d), WRITES(at[4], products[which].d),
                       NUMBER(SIDE), NUMBER(how));
}

TEST products_agree_with_sums_in_double_however_they_are_loaded(int which) {
    const elem type = products[which].d;
    for (uint32_t how = 0; how < WAYS; how++) {
        float numbers[4][ALL];
        slice at[5] = {make_numbers(products[which].a, 1, ALL, numbers[0]),
                       make_numbers(products[which].b, 2, ALL, numbers[1]),
                       make_numbers(type, 3, ALL, numbers[2]),
                       make_numbers(type, 4, ALL, numbers[3]),
                       support_buffer(NULL, N * N * elem_get_bytes(type))};
        ASSERTm(support_get_error()->text, run_product(which, at, how));
        const matrix a = {products[which].a, numbers[0], 3, 2, how & 1},
                     b = {products[which].b, numbers[1], 1, 5, how & 2},
                     c = {type, numbers[2], 4, 0, how & 4},
                     d = {type, support_read(at[3]), 2, 7, how & 8};
        const void *square = support_read(at[4]);
        for (int row = 0; row < N; row++)
            for (int column = 0; column < N; column++) {
                ASSERT(is_near(&a, &b, &c, type, get(&d, row, column), row, column));
                ASSERT(is_near(&d, &d, NULL, type,
                               elem_read(type, square, (size_t)(row * N + column)), row, column));
            }
        /* What is around the matrix stays. */
        for (int i = 0; i < ALL; i++)
            if (i / SIDE < 7 || i / SIDE >= 15 || i % SIDE < 2 || i % SIDE >= 10)
                ASSERT_EQ(elem_read(type, numbers[3], (size_t)i), elem_read(type, d.at, (size_t)i));
        support_end();
    }
    PASS();
}

/* Where Apple's GPUs have them. */
TEST a_lane_addresses_two_neighbours_of_a_row(int which) {
    const elem type = held[which].type;
    float numbers[2][N * N];
    slice a = make_numbers(type, 5, N * N, numbers[0]),
          b = make_numbers(type, 6, N * N, numbers[1]),
          out = support_buffer(NULL, N * N * elem_get_bytes(type)),
          sums = support_buffer(NULL, N * N * sizeof(float));
    ASSERT_PLAYS("simd_matrix.metal", held[which].kernel, ((size3){LANES, 1, 1}),
                 ((size3){LANES, 1, 1}), READS(a, type), READS(b, type), WRITES(out, type),
                 WRITES(sums, ELEM_F32));
    const void *kept = support_read(out);
    const float *got = support_read(sums);
    for (int i = 0; i < 2 * LANES; i++) {
        int lane = i / 2, row = lane / 16 * 4 + lane / 2 % 4,
            column = lane / 8 % 2 * 4 + lane % 2 * 2 + i % 2;
        double want = row == column ? 3 : 0, scale = want;
        ASSERT_EQ(elem_read(type, numbers[0], (size_t)(row * N + column)),
                  elem_read(type, kept, (size_t)i));
        for (int k = 0; k < N; k++) {
            double term = elem_read(type, numbers[0], (size_t)(row * N + k)) *
                          elem_read(type, numbers[1], (size_t)(column * N + k));
            want += term;
            scale += fabs(term);
        }
        ASSERT(fabs((double)got[i] - want) <= 16 * elem_get_roundoff(ELEM_F32) * scale);
    }
    PASS();
}

static const struct {
    const char *kernel;
    elem type;
} tiles[] = {{"tiles_half", ELEM_F16}, {"tiles_bfloat", ELEM_BF16}, {"tiles_float", ELEM_F32}};
enum { TILE_ROWS = 24, TILE_COLUMNS = 16, DEPTH = 64 };

static bool is_near_sum(elem type, const float *a, const float *b, int row, int column, int depth,
                        double got) {
    double want = 0, scale = 0;
    for (int k = 0; k < depth; k++) {
        double term = elem_read(type, a, (size_t)(row * DEPTH + k)) *
                      elem_read(type, b, (size_t)(k * TILE_COLUMNS + column));
        want += term;
        scale += fabs(term);
    }
    return fabs(got - want) <= 16 * elem_get_roundoff(ELEM_F32) * scale;
}

/* A device may multiply several of them at a time (harness/device/cuda/ptx.c). */
TEST matrices_that_are_multiplied_together_have_their_own_sums(int which) {
    const elem type = tiles[which].type;
    float a[TILE_ROWS * DEPTH], b[DEPTH * TILE_COLUMNS];
    slice left = make_numbers(type, 7, TILE_ROWS * DEPTH, a),
          right = make_numbers(type, 8, DEPTH * TILE_COLUMNS, b),
          out = support_buffer(NULL, TILE_ROWS * TILE_COLUMNS * sizeof(float)),
          halfway = support_buffer(NULL, N * N * sizeof(float));
    ASSERT_PLAYS("simd_matrix.metal", tiles[which].kernel, ((size3){LANES, 1, 1}),
                 ((size3){LANES, 1, 1}), READS(left, type), READS(right, type),
                 WRITES(out, ELEM_F32), WRITES(halfway, ELEM_F32), NUMBER(DEPTH));
    const float *sums = support_read(out);
    for (int i = 0; i < TILE_ROWS * TILE_COLUMNS; i++)
        ASSERT(is_near_sum(type, a, b, i / TILE_COLUMNS, i % TILE_COLUMNS, DEPTH, (double)sums[i]));
    const float *first = support_read(halfway); /* after 16 more columns than the turn before */
    for (int i = 0; i < N * N; i++)
        ASSERT(is_near_sum(type, a, b, i / N, N + i % N, DEPTH - 16, (double)first[i]));
    PASS();
}

SUITE(simd_matrix_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    for (int i = 0; i < (int)(sizeof tiles / sizeof *tiles); i++)
        RUN_TESTp(matrices_that_are_multiplied_together_have_their_own_sums, i);
    for (int i = 0; i < (int)(sizeof products / sizeof *products); i++)
        RUN_TESTp(products_agree_with_sums_in_double_however_they_are_loaded, i);
    for (int i = 0; i < (int)(sizeof held / sizeof *held); i++)
        RUN_TESTp(a_lane_addresses_two_neighbours_of_a_row, i);
}
