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

/* Ways that are not kernels. They have no file. */
static const kernel apart = {.name = "apart", .variant = "apart"};

/* rows, format, needs and the sizes that it takes are those of the kernel; end: of its name */
#define RANGES(n, end, format_)                                                                    \
    {                                                                                              \
        .name = "attention_ranges" end ":" #n, .variant = "ranges", .format = format_,             \
        .groups = n, .rows = 1, .multiple_of = 32, .most = ATTENTION_MAX_HEAD_DIM                  \
    }
#define SHARED(n, end, format_)                                                                    \
    {                                                                                              \
        .name = "attention_ranges_shared" end ":" #n, .variant = "shared", .format = format_,      \
        .groups = n, .rows = 8, .multiple_of = 64, .most = 128                                     \
    }
#define MMA(n, end, format_)                                                                       \
    {                                                                                              \
        .name = "attention_ranges_mma" end ":" #n, .variant = "mma", .format = format_,            \
        .groups = n, .rows = 8, .multiple_of = 64, .most = 128, .needs = FEATURE_BULK_COPIES       \
    }
#define WAYS(...)                                                                                  \
    RANGES(2, __VA_ARGS__), RANGES(4, __VA_ARGS__), RANGES(8, __VA_ARGS__),                        \
        RANGES(14, __VA_ARGS__), RANGES(16, __VA_ARGS__), RANGES(24, __VA_ARGS__),                 \
        RANGES(32, __VA_ARGS__), SHARED(4, __VA_ARGS__), SHARED(8, __VA_ARGS__),                   \
        SHARED(16, __VA_ARGS__), SHARED(32, __VA_ARGS__), SHARED(44, __VA_ARGS__),                 \
        MMA(4, __VA_ARGS__), MMA(8, __VA_ARGS__), MMA(16, __VA_ARGS__), MMA(32, __VA_ARGS__),      \
        MMA(44, __VA_ARGS__)
static const kernel ranges[] = {WAYS("", NULL), WAYS("_f16", &format_f16)};

const kernel *choice_find_apart(const choice *c) {
    static const op *const fused[] = {&qkv_rope_append_op, &qkv_rope_append_f16_op,
                                      &gate_up_silu_op,    &rmsnorm_matvec_op,
                                      &matvec_batched_op,  &matvec_split_op};
    for (size_t i = 0; i < COUNT_OF(fused); i++)
        if (fused[i] == c->op)
            return &apart;
    return NULL;
}

bool choice_is_apart(const kernel *way) {
    return !way->file;
}

const char *choice_get_file(const choice *c, const kernel *way) {
    return way->file                      ? way->file
           : choice_count_ranges(way) > 1 ? choice_find_ranges_kernel(way)->file
                                          : c->op->kernels[0].file;
}

uint32_t choice_count_ranges(const kernel *way) {
    return way->file || way->groups == 0 ? 1 : way->groups;
}

const kernel *choice_find_ranges(const weight_format *cache, const char *variant, uint32_t count) {
    const kernel *way = NULL;
    for (size_t i = 0; i < COUNT_OF(ranges) && !(way && way->groups >= count); i++)
        if (ranges[i].format == cache && strcmp(ranges[i].variant, variant) == 0)
            way = &ranges[i];
    assert(way);
    return way;
}

const kernel *choice_find_ranges_kernel(const kernel *way) {
    const op *o = &attention_ranges_op;
    size_t i = 0;
    while (i < o->kernel_count &&
           (o->kernels[i].rows != way->rows || o->kernels[i].format != way->format ||
            o->kernels[i].needs != way->needs))
        i++;
    assert(i < o->kernel_count);
    return &o->kernels[i];
}

/* Ways -------------------------------------------------------------------------------------- */

bool choice_takes(const choice *c, const kernel *way, err *e) {
    if (way == &apart)
        return true;
    if (way->format != c->format || way->accumulates != c->accumulates)
        return err_set(e, EXIT_CANNOT, "is for another format or accumulation");
    return op_takes(c->op, way, &c->shape, e);
}

/* The i-th of all ways of the op, whether they take the shape or not; NULL: no more. */
static const kernel *get_way(const choice *c, size_t i) {
    if (i < c->op->kernel_count)
        return &c->op->kernels[i];
    i -= c->op->kernel_count;
    if (c->op == &decode_attention_op)
        return i < COUNT_OF(ranges) ? &ranges[i] : NULL;
    return i == 0 ? choice_find_apart(c) : NULL;
}

size_t choice_list_ways(const choice *c, const kernel *ways[CHOICE_WAYS]) {
    size_t count = 0;
    const kernel *way;
    for (size_t i = 0; (way = get_way(c, i)); i++)
        if (choice_takes(c, way, NULL)) {
            assert(count < CHOICE_WAYS);
            ways[count++] = way;
        }
    return count;
}

const kernel *choice_find_way(const choice *c, const char *name, err *e) {
    char text[CHOICE_TEXT];
    err why = {.code = EXIT_OK};
    size_t i = 0;
    const kernel *way;
    while ((way = get_way(c, i)) && strcmp(way->name, name) != 0)
        i++;
    if (!way)
        return err_null(e, EXIT_USAGE, "%s has no kernel '%.60s'", c->op->name, name);
    choice_get_text(c, text, sizeof text);
    if (!choice_takes(c, way, &why))
        return err_null(e, EXIT_USAGE, "'%s' cannot do '%.70s': it %.80s", way->name, text,
                        why.text);
    return way;
}

/* Distance ---------------------------------------------------------------------------------- */

/* How far apart two sizes are, as a ratio of at least 1. */
static double find_ratio(uint32_t a, uint32_t b) {
    double more = a > b ? a : b, less = a > b ? b : a;
    return (more + 1) / (less + 1); /* a size may be 0 */
}

double choice_find_distance(const choice *row, const choice *asked) {
    static const struct {
        const char *name;
        bool is_tokens, is_keys;
    } near[] = {{"batch", true, false},  {"tokens", true, false}, {"rows", true, false},
                {"kv_len", false, true}, {"start", false, false}, {"pos", false, false}};
    choice moved = *asked;
    double distance = 1;
    for (size_t i = 0; i < COUNT_OF(near); i++) {
        int at = op_find_dim(row->op, near[i].name);
        if (at < 0)
            continue;
        uint32_t a = row->shape.dim[at], b = asked->shape.dim[at];
        if (near[i].is_tokens && (a == 1) != (b == 1))
            return INFINITY;
        distance *= near[i].is_keys && a == 0 ? CHOICE_NEAR : find_ratio(a, b);
        moved.shape.dim[at] = a;
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
#define FORMAT(f, ...) &format_##f,
    static const weight_format *const all[] = {FORMATS(FORMAT)};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char text[16];
        choice_get_format(all[i], text, sizeof text);
        if (strcmp(text, name) == 0)
            return all[i];
    }
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

int choice_compare(const choice *a, const choice *b) {
    char formats[2][16];
    size_t places[2] = {find_place(a->op), find_place(b->op)};
    choice_get_format(a->format, formats[0], sizeof formats[0]);
    choice_get_format(b->format, formats[1], sizeof formats[1]);
    int order = (places[0] > places[1]) - (places[0] < places[1]);
    order = order ? order : strcmp(formats[0], formats[1]);
    order = order ? order : a->accumulates - b->accumulates;
    for (size_t i = 0; order == 0 && i < SHAPE_DIMS; i++)
        order = (a->shape.dim[i] > b->shape.dim[i]) - (a->shape.dim[i] < b->shape.dim[i]);
    return order;
}
