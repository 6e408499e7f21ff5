/* gguf/type: the tables of the types of values and of the ways in which a file stores a tensor's numbers.
 *
 * Owns sizes and names; what a block means is reference/quant. Ids that are not listed were never
 * given or have been withdrawn: files with them are refused. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "gguf.h"

/* Those that can be written come first, in the order in which messages list them. */
static const gguf_type types[] = {
    {2, "Q4_0", 32, 18, &format_q4_0, "q4_0", 2, NULL},
    {3, "Q4_1", 32, 20, &format_q4_1, "q4_1", 3, NULL},
    {6, "Q5_0", 32, 22, &format_q5_0, "q5_0", 8, NULL},
    {7, "Q5_1", 32, 24, &format_q5_1, "q5_1", 9, NULL},
    {8, "Q8_0", 32, 34, &format_q8_0, "q8_0", 7, NULL},
    {12, "Q4_K", 256, 144, &format_q4_k, "q4_k", 14, &format_q5_0},
    {13, "Q5_K", 256, 176, &format_q5_k, "q5_k", 16, &format_q5_1},
    {14, "Q6_K", 256, 210, &format_q6_k, "q6_k", 18, &format_q8_0},
    {1, "F16", 1, 2, &format_f16, "f16", 1, NULL},
    {0, "F32", 1, 4, &format_f32, "f32", 0, NULL},
    {9, "Q8_1", 32, 36, .format = NULL},
    {10, "Q2_K", 256, 84, .format = NULL},
    {11, "Q3_K", 256, 110, .format = NULL},
    {15, "Q8_K", 256, 292, .format = NULL},
    {16, "IQ2_XXS", 256, 66, .format = NULL},
    {17, "IQ2_XS", 256, 74, .format = NULL},
    {18, "IQ3_XXS", 256, 98, .format = NULL},
    {19, "IQ1_S", 256, 50, .format = NULL},
    {20, "IQ4_NL", 32, 18, .format = NULL},
    {21, "IQ3_S", 256, 110, .format = NULL},
    {22, "IQ2_S", 256, 82, .format = NULL},
    {23, "IQ4_XS", 256, 136, .format = NULL},
    {24, "I8", 1, 1, .format = NULL},
    {25, "I16", 1, 2, .format = NULL},
    {26, "I32", 1, 4, .format = NULL},
    {27, "I64", 1, 8, .format = NULL},
    {28, "F64", 1, 8, .format = NULL},
    {29, "IQ1_M", 256, 56, .format = NULL},
    {30, "BF16", 1, 2, .format = &format_bf16},
    {34, "TQ1_0", 256, 54, .format = NULL},
    {35, "TQ2_0", 256, 66, .format = NULL},
    {39, "MXFP4", 32, 17, .format = NULL},
    {40, "NVFP4", 64, 36, .format = NULL},
    {41, "Q1_0", 128, 18, .format = NULL},
    {42, "Q2_0", 64, 18, .format = NULL},
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

const gguf_type *gguf_get_type(size_t i) {
    return i < TYPE_COUNT ? &types[i] : NULL;
}

const gguf_type *gguf_find_type(uint32_t id) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

const gguf_type *gguf_find_format(const weight_format *f) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (f && types[i].format == f)
            return &types[i];
    return NULL;
}

static bool equals_any_case(const char *a, const char *b) {
    while (*a && toupper((unsigned char)*a) == toupper((unsigned char)*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

const gguf_type *gguf_find_type_name(const char *name) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (equals_any_case(types[i].name, name))
            return &types[i];
    return NULL;
}

/* --- values --- */

static const struct {
    const char *name;
    size_t bytes;
} value_types[GGUF_VALUE_TYPES] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},     [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},     [GGUF_U32] = {"u32", 4},   [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},     [GGUF_BOOL] = {"bool", 1}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8},   [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

size_t gguf_get_value_bytes(gguf_value_type type) {
    return value_types[type].bytes;
}

const char *gguf_get_value_type_name(gguf_value_type type) {
    return value_types[type].name;
}

uint64_t gguf_round_up(uint64_t value, uint32_t alignment) {
    return (value + alignment - 1) & ~(uint64_t)(alignment - 1);
}

gguf_text gguf_to_text(const char *text) {
    return (gguf_text){text, strlen(text)};
}

bool gguf_text_equals(gguf_text t, const char *text) {
    return t.bytes == strlen(text) && memcmp(t.data, text, t.bytes) == 0;
}

char *gguf_print_text(gguf_text t, char *out, size_t size) {
    size_t shown = t.bytes < size ? t.bytes : size - 1;
    for (size_t i = 0; i < shown; i++)
        out[i] = t.data[i] >= ' ' && t.data[i] <= '~' ? t.data[i] : '?';
    out[shown] = 0;
    if (shown < t.bytes && shown > 3)
        memcpy(out + shown - 3, "...", 3);
    return out;
}

/* Any number, as the three things it can be. */
typedef struct {
    int64_t integer;
    double number;
    bool is_integer;
} any_number;

#define INTEGER(x) ((any_number){(int64_t)(x), (double)(x), true})

static any_number read_number(const gguf_value *v, size_t i) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } x;
    size_t bytes = gguf_get_value_bytes(v->element);
    assert(i < v->count && bytes > 0);
    memcpy(&x, v->data + i * bytes, bytes);
    switch (v->element) {
    case GGUF_U8:
        return INTEGER(x.u8);
    case GGUF_I8:
        return INTEGER(x.i8);
    case GGUF_U16:
        return INTEGER(x.u16);
    case GGUF_I16:
        return INTEGER(x.i16);
    case GGUF_U32:
        return INTEGER(x.u32);
    case GGUF_I32:
        return INTEGER(x.i32);
    case GGUF_U64:
        return INTEGER(x.u64);
    case GGUF_I64:
        return INTEGER(x.i64);
    case GGUF_BOOL:
        return INTEGER(x.u8 != 0);
    case GGUF_F32:
        return (any_number){0, (double)x.f32, false};
    default: /* strings and arrays have no bytes */
        return (any_number){0, x.f64, false};
    }
}

double gguf_value_get_number(const gguf_value *v, size_t i) {
    return read_number(v, i).number;
}

int64_t gguf_value_get_integer(const gguf_value *v, size_t i) {
    any_number n = read_number(v, i);
    assert(n.is_integer);
    return n.integer;
}
