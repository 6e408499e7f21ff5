/* What a kernel takes: of every kernel of the registry and of shapes that its list does not have, either
 * op_takes says yes and the case passes its check, or it says no and so does the record function. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/check.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "support.h"

SUITE(takes_suite);

static library *kernels;
static char problem[640];
static size_t taken, refused;
static bool
    is_checked; /* is what is taken checked, too? Of every fourth kernel, or with TAKES=all of each. */

/* As case_open, but without asking: the record function has to. */
static bool can_record(const op *o, const kernel *k, const shape *s, err *why) {
    kernel_case c = case_new(o, k, s, INPUT_NORMAL);
    c.random = rng_new(1, c.name);
    c.device = library_get_device(kernels);
    c.tape = tape_new(kernels);
    bool ok = o->build(&c, why);
    case_close(&c);
    return ok;
}

/* Does the format's block have as many values? Then both formats divide a row alike. */
static bool is_cut_alike(const kernel *a, const kernel *b) {
    return a->format && b->format && a->format->values == b->format->values &&
           a->multiple_of == b->multiple_of && a->most == b->most && a->rows == b->rows;
}

/* The kernel of the same template that is compiled and checked in the place of this one, if there is one,
 * because both take the same shapes: of one that adds to its output the one that does not, and of those in
 * formats with blocks of the same length the first. run_all.sh checks all of them. */
static const kernel *find_twin(const op *o, const kernel *k) {
    for (size_t i = 0; i < o->kernel_count && k->variant; i++) {
        const kernel *t = &o->kernels[i];
        if (!t->variant || strcmp(t->variant, k->variant) != 0 || strcmp(t->file, k->file) != 0 ||
            t->tokens != k->tokens)
            continue;
        if (t->format == k->format
                ? k->accumulates && !t->accumulates
                : t < k && t->accumulates == k->accumulates && is_cut_alike(t, k))
            return t;
    }
    return NULL;
}

static bool is_consistent(const op *o, const kernel *k, const shape *s) {
    kernel_case c = case_new(o, k, s, INPUT_NORMAL);
    const kernel *twin = find_twin(o, k);
    err why = {.code = EXIT_OK};
    check_result result = {.verdict = CHECK_FAIL};
    if (!op_takes(o, k, s, &why)) {
        refused++;
        if (!can_record(o, k, s, &why))
            return true;
        snprintf(problem, sizeof problem, "%s is refused, but it is recorded: %.200s", c.name,
                 why.text);
        return false;
    }
    if (twin) {
        snprintf(problem, sizeof problem, "%s is taken, but not by %s", c.name, twin->name);
        return op_takes(o, twin, s, &why);
    }
    taken++;
    if (!is_checked ||
        (check_case(kernels, &c, NULL, 1, &result, &why) && result.verdict == CHECK_PASS))
        return true;
    snprintf(problem, sizeof problem, "%s is taken, but its check says: %.120s %.120s", c.name,
             why.text, result.message);
    return false;
}

/* Each dimension in turn becomes something else: one more, one less, and sizes that are whole blocks of
 * one format and of no other. */
static bool try_shapes(const op *o, const kernel *k, const shape *base) {
    static const uint32_t sizes[] = {1, 3, 48, 96, 160, 576, 768, 2049, 4352, 8192};
    enum { SIZES = COUNT_OF(sizes), MOST_VALUES = 1 << 16, MOST_OTHERS = 100 };
    int inner = o->inner ? op_find_dim(o, o->inner) : -1;
    for (size_t i = 0; i < SHAPE_DIMS; i++)
        for (size_t v = 0; v < SIZES + 2 && base->dim[i] != 0; v++) {
            shape s = *base;
            s.dim[i] = v < SIZES ? sizes[v] : v == SIZES ? base->dim[i] + 1 : base->dim[i] - 1;
            bool is_long = s.dim[i] > MOST_OTHERS && base->dim[i] < s.dim[i] / 2;
            if (s.dim[i] == 0 || shape_count_values(&s) > (double)MOST_VALUES ||
                (is_long && (int)i != inner))
                continue;
            if (!is_consistent(o, k, &s))
                return false;
        }
    return true;
}

TEST every_kernel_takes_a_shape_or_its_record_refuses_it(void) {
    err e = {.code = EXIT_OK};
    kernels = support_get_device() ? library_new(support_get_device(), NULL, &e) : NULL;
    ASSERTm(e.text, kernels);
    size_t count = 0;
    for (size_t o = 0; o < registry_count; o++)
        for (size_t k = 0; k < registry[o]->kernel_count; k++) {
            const kernel *one = &registry[o]->kernels[k];
            if (!device_offers(device_get_facts(support_get_device()), one->needs, NULL))
                continue;
            const shape_list *list = op_get_shapes(registry[o], one);
            is_checked = getenv("TAKES") || find_twin(registry[o], one) || count++ % 4 == 0;
            ASSERTm(problem, try_shapes(registry[o], one, &list->any_input));
        }
    printf("%zu taken, %zu refused\n", taken, refused);
    ASSERT(taken > 1000 && refused > 500);
    library_free(kernels);
    PASS();
}

/* Kernels that this device does not offer, too: a kernel whose listed shapes are all skipped is never
 * checked. The inputs that only any_input is run with have to reach it as well. */
TEST every_kernel_takes_a_listed_shape(void) {
    size_t missed = 0;
    for (size_t o = 0; o < registry_count; o++)
        for (size_t k = 0; k < registry[o]->kernel_count; k++) {
            const kernel *one = &registry[o]->kernels[k];
            const shape_list *list = op_get_shapes(registry[o], one);
            bool has_any = shape_count_dims(&list->any_input) > 0;
            size_t i = 0;
            while (i < list->count && !op_takes(registry[o], one, &list->items[i], NULL))
                i++;
            if (i < list->count && (!has_any || op_takes(registry[o], one, &list->any_input, NULL)))
                continue;
            printf("%s takes %s\n", one->name,
                   i < list->count ? "no shape for any input" : "no listed shape");
            missed++;
        }
    ASSERT_EQ_FMT((size_t)0, missed, "%zu");
    PASS();
}

/* The shape with which an experiment once launched a kernel that does not take it. */
TEST a_shape_between_the_tiles_of_a_kernel_is_refused_by_everyone(void) {
    const kernel *k = op_find_kernel(&matvec_op, "multi_token_matvec_q4_0_tiled_bulk");
    const shape s = {{576, 576, 1}};
    static buffer memory = {.label = "memory", .bytes = 1 << 20};
    slice w = slice_part(&memory, 0, 576 * 18 * 18), x = slice_part(&memory, 0, 4 * 576);
    err e = {.code = EXIT_OK};
    ASSERT_FALSE(op_takes(&matvec_op, k, &s, &e));
    ASSERT_STR_EQ("needs 'in' to be a multiple of 256, not 576", e.text);
    ASSERT_FALSE(matvec_record(NULL, k, w, x, x, 576, 576, 1, &e));
    ASSERT_STR_EQ("multi_token_matvec_q4_0_tiled_bulk needs 'in' to be a multiple of 256, not 576",
                  e.text);
    PASS();
}

SUITE(takes_suite) {
    RUN_TEST(every_kernel_takes_a_listed_shape);
    RUN_TEST(a_shape_between_the_tiles_of_a_kernel_is_refused_by_everyone);
    RUN_TEST(every_kernel_takes_a_shape_or_its_record_refuses_it);
}
