/* gguf/value: texts, types of values and single numbers of a GGUF file. */
#include <assert.h>
#include <string.h>

#include "gguf.h"

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

#define READ(type)                                                                                 \
    do {                                                                                           \
        type x_;                                                                                   \
        memcpy(&x_, at, sizeof x_);                                                                \
        return (any_number){(int64_t)x_, (double)x_, true};                                        \
    } while (0)
#define READ_FLOAT(type)                                                                           \
    do {                                                                                           \
        type x_;                                                                                   \
        memcpy(&x_, at, sizeof x_);                                                                \
        return (any_number){0, (double)x_, false};                                                 \
    } while (0)

static any_number read_number(const gguf_value *v, size_t i) {
    assert(i < v->count);
    const uint8_t *at = v->data + i * gguf_get_value_bytes(v->element);
    switch (v->element) {
    case GGUF_U8:
        READ(uint8_t);
    case GGUF_I8:
        READ(int8_t);
    case GGUF_U16:
        READ(uint16_t);
    case GGUF_I16:
        READ(int16_t);
    case GGUF_U32:
        READ(uint32_t);
    case GGUF_I32:
        READ(int32_t);
    case GGUF_U64:
        READ(uint64_t);
    case GGUF_I64:
        READ(int64_t);
    case GGUF_F32:
        READ_FLOAT(float);
    case GGUF_F64:
        READ_FLOAT(double);
    case GGUF_BOOL:
        return (any_number){*at != 0, *at != 0, true};
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_VALUE_TYPES:
        break;
    }
    assert(false);
    return (any_number){0, 0, false};
}

double gguf_value_get_number(const gguf_value *v, size_t i) {
    return read_number(v, i).number;
}

int64_t gguf_value_get_integer(const gguf_value *v, size_t i) {
    any_number n = read_number(v, i);
    assert(n.is_integer);
    return n.integer;
}
