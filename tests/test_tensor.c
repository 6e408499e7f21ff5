/* Metal 4 tensors on the software device: products of tiles with edges, of all types and ways round,
 * against sums in double precision; inputs in registers; and what kernels get wrong. Values are small
 * integers, so that every product is exact. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/elem.h"
#include "support.h"

SUITE_EXTERN(tensor_suite);

enum { ROWS = 16, COLUMNS = 32, DEPTH = 16 };

static buffer *result; /* of the test that runs */

static const char *why(void) {
    return support_get_error()->text;
}

/* layout: of ASSAY_TENSOR_LAYOUT; NULL: as it comes. */
static bool open_device(const char *layout, bool is_checked) {
    char variables[96];
    snprintf(variables, sizeof variables, "%s%s%s", is_checked ? "MTL_SHADER_VALIDATION=1 " : "",
             layout ? "ASSAY_TENSOR_LAYOUT=" : "", layout ? layout : "");
    return support_open(&(device_options){.language = 400}, variables);
}

static int value_at(uint32_t seed, size_t i) {
    uint32_t x = ((uint32_t)i + 1) * 2654435761u + seed * 40503u;
    return (int)((x >> 13) % 9) - 4;
}

static slice fill(elem type, uint32_t seed, size_t count) {
    slice at = support_buffer(NULL, count * elem_get_bytes(type));
    for (size_t i = 0; i < count; i++)
        elem_write(type, at.buffer->contents, i, value_at(seed, i));
    return at;
}

/* The result keeps what it had: zeros. */
static launch *prepare(const char *kernel, elem in, elem out, const int shape[3]) {
    size_t m = (size_t)shape[0], n = (size_t)shape[1], k = (size_t)shape[2];
    launch *l = support_launch("tensors.metal", kernel);
    if (!l)
        return NULL;
    result = support_buffer(NULL, m * n * elem_get_bytes(out)).buffer;
    memset(result->contents, 0, result->bytes);
    launch_bind(l, 0, fill(in, 1, m * k), ACCESS_READ, in);
    launch_bind(l, 1, fill(in, 2, k * n), ACCESS_READ, in);
    launch_bind(l, 2, slice_whole(result), ACCESS_BOTH, out);
    return l;
}

static double multiply(const int shape[3], bool is_left_turned, bool is_right_turned, int row,
                       int column) {
    double sum = 0;
    for (int k = 0; k < shape[2]; k++) {
        int a = is_left_turned ? k * shape[0] + row : row * shape[2] + k;
        int b = is_right_turned ? column * shape[2] + k : k * shape[1] + column;
        sum += (double)value_at(1, (size_t)a) * value_at(2, (size_t)b);
    }
    return sum;
}

static double read_result(elem type, size_t i) {
    return elem_read(type, result->contents, i);
}

/* Products of tiles --------------------------------------------------------------------------- */

static const struct {
    const char *kernel;
    elem in, out;
    bool is_left_turned, is_right_turned;
    const char *layout;
} products[] = {{"product_half", ELEM_F16, ELEM_F32, false, false, NULL},
                {"product_half", ELEM_F16, ELEM_F32, false, false, "m5"},
                {"product_bfloat", ELEM_BF16, ELEM_F32, false, true, "7"},
                {"product_float", ELEM_F32, ELEM_F32, true, false, "8"},
                {"product_char", ELEM_I8, ELEM_I32, true, true, "4000000000"}};
enum { PRODUCTS = sizeof products / sizeof *products };

TEST tiles_with_edges_are_multiplied_exactly(size_t i) {
    const int shape[3] = {70, 45, 37};
    launch *l = open_device(products[i].layout, false)
                    ? prepare(products[i].kernel, products[i].in, products[i].out, shape)
                    : NULL;
    ASSERTm(why(), l);
    launch_set_bytes(l, 3, shape, sizeof shape);
    launch_set_groups(l, (size3){2, 2, 1}, (size3){128, 1, 1});
    ASSERTm(why(), support_play());
    for (int row = 0; row < shape[0]; row++)
        for (int column = 0; column < shape[1]; column++) {
            double want = multiply(shape, products[i].is_left_turned, products[i].is_right_turned,
                                   row, column) +
                          row % 64 - column % 32;
            ASSERT_EQ_FMT(want, read_result(products[i].out, (size_t)(row * shape[1] + column)),
                          "%g");
        }
    PASS();
}

TEST a_destination_in_memory_is_added_to(void) {
    const int shape[3] = {32, 48, 80};
    launch *l = open_device(NULL, false) ? prepare("added", ELEM_F16, ELEM_F32, shape) : NULL;
    ASSERTm(why(), l);
    launch_set_bytes(l, 3, shape, sizeof shape);
    launch_set_groups(l, (size3){3, 2, 1}, (size3){32, 1, 1});
    for (size_t i = 0; i < 32 * 48; i++)
        ((float *)result->contents)[i] = (float)i;
    ASSERTm(why(), support_play());
    for (int i = 0; i < 32 * 48; i++)
        ASSERT_EQ_FMT(i + multiply(shape, false, false, i / 48, i % 48),
                      read_result(ELEM_F32, (size_t)i), "%g");
    PASS();
}

TEST every_thread_can_multiply_alone(void) {
    const int shape[3] = {40 * 4, 4, 4};
    launch *l = open_device(NULL, false) ? prepare("alone", ELEM_F32, ELEM_F32, shape) : NULL;
    ASSERTm(why(), l);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){40, 1, 1});
    ASSERTm(why(), support_play());
    for (int i = 0; i < 40 * 16; i++)
        ASSERT_EQ_FMT(multiply(shape, false, false, i / 4, i % 4), read_result(ELEM_F32, (size_t)i),
                      "%g");
    PASS();
}

/* Registers ----------------------------------------------------------------------------------- */

static const int small[3] = {ROWS, COLUMNS, DEPTH};

/* How many of the 512 values are wrong; -1: it did not run. findings: of checked mode, or NULL. */
static int run_small(const char *kernel, uint32_t threads, const char *layout, bool is_checked,
                     bool less_largest) {
    launch *l = open_device(layout, is_checked) ? prepare(kernel, ELEM_F16, ELEM_F32, small) : NULL;
    if (!l)
        return -1;
    launch_set_groups(l, (size3){1, 1, 1}, (size3){threads, 1, 1});
    if (!support_play())
        return -1;
    int wrong = 0;
    for (int row = 0; row < ROWS; row++) {
        double want[COLUMNS], largest = -1e9;
        for (int column = 0; column < COLUMNS; column++) {
            want[column] = multiply(small, false, false, row, column);
            largest = want[column] > largest ? want[column] : largest;
        }
        for (int column = 0; column < COLUMNS; column++)
            wrong += read_result(ELEM_F32, (size_t)(row * COLUMNS + column)) !=
                     want[column] - (less_largest ? largest : 0);
    }
    return wrong;
}

TEST inputs_in_registers_are_multiplied_and_reduced_in_any_layout(void) {
    static const char *const layouts[] = {"1", "2", "1000", "m5"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        ASSERT_EQ_FMTm(why(), 0, run_small("registers_of_one", 32, layouts[i], false, true), "%d");
        ASSERT_EQ_FMTm(why(), 0, run_small("registers_of_four", 128, layouts[i], false, true),
                       "%d");
    }
    PASS();
}

/* Not a few values: nearly all of them. */
TEST a_kernel_that_assumes_a_layout_is_wrong_in_every_other(void) {
    static const char *const layouts[] = {NULL, "2", "3", "1000"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        ASSERT(run_small("assumes", 32, layouts[i], false, false) > ROWS * COLUMNS / 2);
    }
    ASSERT_EQ_FMT(0, run_small("assumes", 32, "m5", false, false), "%d");
    PASS();
}

/* The layout of a launch is another than that of the one before it. */
TEST layouts_change_from_launch_to_launch(void) {
    float first[ROWS * COLUMNS];
    ASSERT(run_small("assumes", 32, NULL, false, false) > 0);
    memcpy(first, result->contents, sizeof first);
    ASSERT(support_play());
    ASSERT(memcmp(first, result->contents, sizeof first) != 0);
    PASS();
}

/* Checked mode -------------------------------------------------------------------------------- */

static const struct {
    const char *kernel;
    uint32_t threads;
    const char *says; /* "": there are no findings */
} checks[] = {
    {"registers_of_one", 32, ""},
    {"registers_of_four", 128, ""},
    {"registers_of_four", 64,
     "matmul2d is an operation of 4 simdgroups, and the threadgroup has 2"},
    {"skips_a_lane", 32, "31 of 32 lanes"},
    {"skips_a_simdgroup", 128, "simdgroup 2 does not reach a tensor operation"},
    {"overwrites", 128, "races"},
    {"reads_past_the_end", 32, "outside"},
};
enum { CHECKS = sizeof checks / sizeof *checks };

TEST checked_mode_says_what_a_tensor_operation_needs(size_t i) {
    char all[4096] = "";
    if (run_small(checks[i].kernel, checks[i].threads, NULL, true, true) < 0)
        FAILm(why());
    const finding_list *found = device_get_findings(support_get_device());
    for (size_t n = 0; n < found->count; n++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s:%d: %s: %s\n", found->items[n].file,
                 found->items[n].line, finding_get_name(found->items[n].what),
                 found->items[n].text);
    }
    ASSERTm(all, checks[i].says[0] ? strstr(all, checks[i].says) != NULL : found->count == 0);
    PASS();
}

/* What is refused ----------------------------------------------------------------------------- */

TEST tensors_need_a_version_of_the_language_that_has_them(void) {
    ASSERT_RUN(
        "\"$A\" launch \"$H/tests/kernels/tensors.metal\" assumes --language 3.2 --device soft "
        "--grid 1 --group 32",
        2);
    ASSERT_SAYS("kernel assumes uses tensors, which are of Metal 4: --language 4.0");
    PASS();
}

TEST a_tensor_that_the_host_makes_is_refused_in_a_sentence(void) {
    ASSERT_RUN("\"$A\" lint --language 4.0 \"$H/tests/kernels/lint/tensors.metal\"", 1);
    ASSERT_SAYS(
        "is a tensor that the host makes, and only those that a kernel makes from a pointer "
        "(tensor_inline) are supported");
    ASSERT_SAYS("cannot initialize a variable of type 'device half *' with an lvalue of type "
                "'threadgroup half *' [address-space]");
    ASSERT_SAYS("2 kernels, 1 compiles, 1 error, 1 warning, linted");
    ASSERT_RUN("\"$A\" lint --language 4.0 \"$H/tests/kernels/tensors.metal\"", 0);
    ASSERT_SAYS("13 kernels, 13 compile, 0 errors, 0 warnings, linted");
    PASS();
}

SUITE(tensor_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    for (size_t i = 0; i < PRODUCTS; i++)
        RUN_TESTp(tiles_with_edges_are_multiplied_exactly, i);
    RUN_TEST(a_destination_in_memory_is_added_to);
    RUN_TEST(every_thread_can_multiply_alone);
    RUN_TEST(inputs_in_registers_are_multiplied_and_reduced_in_any_layout);
    RUN_TEST(a_kernel_that_assumes_a_layout_is_wrong_in_every_other);
    RUN_TEST(layouts_change_from_launch_to_launch);
    for (size_t i = 0; i < CHECKS; i++)
        RUN_TESTp(checked_mode_says_what_a_tensor_operation_needs, i);
    RUN_TEST(tensors_need_a_version_of_the_language_that_has_them);
    RUN_TEST(a_tensor_that_the_host_makes_is_refused_in_a_sentence);
    support_close();
}
