#include "choice.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/attention_case.h"
#include "kernels/formats/formats.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

/* Ways that are not kernels. They have no file; what they launch is in steps.c. */
#define APART(f, shapes) {.name = "apart", .variant = "apart", .format = &format_##f, .tokens = 1},
static const kernel apart[] = {FORMATS(APART)};

#define RANGES(n)                                                                                  \
    {                                                                                              \
        .name = "attention_ranges:" #n, .variant = "ranges", .groups = n, .multiple_of = 32,       \
        .most = ATTENTION_MAX_HEAD_DIM                                                             \
    }
static const kernel ranges[] = {RANGES(2),  RANGES(4),  RANGES(8), RANGES(14),
                                RANGES(16), RANGES(24), RANGES(32)};

static const op *const fused[] = {&qkv_rope_append_op, &gate_up_silu_op, &rmsnorm_matvec_op,
                                  &matvec_batched_op};

static bool is_fused(const op *o) {
    size_t i = 0;
    while (i < COUNT_OF(fused) && fused[i] != o)
        i++;
    return i < COUNT_OF(fused);
}

const kernel *choice_find_apart(const choice *c) {
    for (size_t i = 0; i < COUNT_OF(apart) && is_fused(c->op); i++)
        if (apart[i].format == c->format)
            return &apart[i];
    return NULL;
}

bool choice_is_apart(const kernel *way) {
    return !way->file;
}

const char *choice_get_file(const choice *c, const kernel *way) {
    return way->file                      ? way->file
           : choice_count_ranges(way) > 1 ? attention_ranges_op.kernels[0].file
                                          : c->op->kernels[0].file;
}

uint32_t choice_count_ranges(const kernel *way) {
    return way->file || way->groups == 0 ? 1 : way->groups;
}

const kernel *choice_find_ranges(uint32_t count) {
    size_t i = 0;
    while (i + 1 < COUNT_OF(ranges) && ranges[i].groups < count)
        i++;
    return &ranges[i];
}

/* Ways -------------------------------------------------------------------------------------- */

bool choice_takes(const choice *c, const kernel *way, err *e) {
    if (way->format != c->format || way->accumulates != c->accumulates)
        return err_set(e, EXIT_CANNOT, "is for another format or accumulation");
    return op_takes(c->op, way, &c->shape, e);
}

static void add_way(const kernel *ways[CHOICE_WAYS], size_t *count, const kernel *way) {
    assert(*count < CHOICE_WAYS);
    ways[(*count)++] = way;
}

size_t choice_list_ways(const choice *c, const kernel *ways[CHOICE_WAYS]) {
    size_t count = 0;
    const kernel *separate = choice_find_apart(c);
    for (size_t i = 0; i < c->op->kernel_count; i++)
        if (choice_takes(c, &c->op->kernels[i], NULL))
            add_way(ways, &count, &c->op->kernels[i]);
    if (separate)
        add_way(ways, &count, separate);
    for (size_t i = 0; i < COUNT_OF(ranges) && c->op == &decode_attention_op; i++)
        if (choice_takes(c, &ranges[i], NULL))
            add_way(ways, &count, &ranges[i]);
    return count;
}

static const kernel *find_named(const choice *c, const char *name) {
    const kernel *separate = choice_find_apart(c), *k = op_find_kernel(c->op, name);
    if (separate && strcmp(name, separate->name) == 0)
        return separate;
    for (size_t i = 0; i < COUNT_OF(ranges) && c->op == &decode_attention_op; i++)
        if (strcmp(name, ranges[i].name) == 0)
            return &ranges[i];
    return k;
}

const kernel *choice_find_way(const choice *c, const char *name, err *e) {
    const kernel *k = find_named(c, name);
    char text[CHOICE_TEXT];
    err why = {.code = EXIT_OK};
    choice_get_text(c, text, sizeof text);
    if (!k)
        err_set(e, EXIT_USAGE, "%s has no kernel '%.60s'", c->op->name, name);
    else if (!choice_takes(c, k, &why)) {
        err_set(e, EXIT_USAGE, "'%s' cannot do '%.70s': it %.80s", k->name, text, why.text);
        k = NULL;
    }
    return k;
}

/* How far apart two sizes are, as a ratio of at least 1. */
static double find_ratio(uint32_t a, uint32_t b) {
    double more = a > b ? a : b, less = a > b ? b : a;
    return (more + 1) / (less + 1); /* a size may be 0 */
}

/* Is dimension `at` called one of these? */
static bool is_named(const op *o, size_t at, const char *const names[]) {
    const char *p = o->dims;
    for (; at > 0 && p; at--)
        p = strstr(p, " x ") ? strstr(p, " x ") + 3 : NULL;
    size_t length = p ? strcspn(p, " ") : 0;
    for (; length && *names; names++)
        if (strlen(*names) == length && strncmp(p, *names, length) == 0)
            return true;
    return false;
}

double choice_find_distance(const choice *row, const choice *asked) {
    static const char *const tokens[] = {"batch", "tokens", "rows", NULL},
                             *const keys[] = {"kv_len", NULL},
                             *const starts[] = {"start", "pos", NULL};
    choice moved = *asked;
    double distance = 1;
    for (size_t i = 0; i < SHAPE_DIMS; i++) {
        uint32_t a = row->shape.dim[i], b = asked->shape.dim[i];
        bool is_tokens = is_named(row->op, i, tokens), is_keys = is_named(row->op, i, keys);
        if (!is_tokens && !is_keys && !is_named(row->op, i, starts))
            continue;
        if (is_tokens && (a == 1) != (b == 1))
            return INFINITY;
        distance *= is_keys && a == 0 ? CHOICE_NEAR : find_ratio(a, b);
        moved.shape.dim[i] = a;
    }
    return choice_compare(&moved, row) == 0 ? distance : INFINITY;
}

/* Texts ------------------------------------------------------------------------------------- */

void choice_get_format(const weight_format *f, char *text, size_t size) {
    snprintf(text, size, "%s", f ? f->name : "");
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

const weight_format *choice_find_format(const char *name) {
#define NAMED(f, shapes) {#f, &format_##f},
    static const struct {
        const char *name;
        const weight_format *format;
    } all[] = {FORMATS(NAMED)};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].format;
    return NULL;
}

void choice_get_text(const choice *c, char *text, size_t size) {
    char sizes[64], format[16];
    shape_get_text(&c->shape, sizes, sizeof sizes);
    choice_get_format(c->format, format, sizeof format);
    snprintf(text, size, "%s%s%s%s %s", c->op->name, *format ? " " : "", format,
             c->accumulates ? " +=" : "", sizes);
}

/* Order ------------------------------------------------------------------------------------- */

static size_t find_place(const op *o) {
    size_t i = 0;
    while (i < registry_count && registry[i] != o)
        i++;
    return i;
}

static int compare_sizes(size_t a, size_t b) {
    return (a > b) - (a < b);
}

int choice_compare(const choice *a, const choice *b) {
    char a_format[16], b_format[16];
    choice_get_format(a->format, a_format, sizeof a_format);
    choice_get_format(b->format, b_format, sizeof b_format);
    int order = compare_sizes(find_place(a->op), find_place(b->op));
    order = order ? order : strcmp(a_format, b_format);
    order = order ? order : a->accumulates - b->accumulates;
    for (size_t i = 0; order == 0 && i < SHAPE_DIMS; i++)
        order = compare_sizes(a->shape.dim[i], b->shape.dim[i]);
    return order;
}
