/* elem: see elem.h. Owns the bit patterns of every element type; the one place that knows how a
 * half and a bfloat are laid out.
 *
 * A double is converted to a 16-bit float through a float that is rounded to odd, because rounding
 * to nearest twice is not the same as rounding once. */
#include "elem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    double roundoff; /* 0 for integers */
} facts[ELEM_COUNT] = {
    [ELEM_U8] = {"u8", 1, 0},         [ELEM_I8] = {"i8", 1, 0},
    [ELEM_U16] = {"u16", 2, 0},       [ELEM_I16] = {"i16", 2, 0},
    [ELEM_U32] = {"u32", 4, 0},       [ELEM_I32] = {"i32", 4, 0},
    [ELEM_U64] = {"u64", 8, 0},       [ELEM_I64] = {"i64", 8, 0},
    [ELEM_F16] = {"f16", 2, 0x1p-11}, [ELEM_BF16] = {"bf16", 2, 0x1p-8},
    [ELEM_F32] = {"f32", 4, 0x1p-24},
};

const char *elem_get_name(elem type) {
    assert(type < ELEM_COUNT);
    return facts[type].name;
}

bool elem_find(const char *name, elem *type) {
    for (elem i = 0; i < ELEM_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0) {
            *type = i;
            return true;
        }
    return false;
}

size_t elem_get_bytes(elem type) {
    assert(type < ELEM_COUNT);
    return facts[type].bytes;
}

bool elem_is_float(elem type) {
    return elem_get_roundoff(type) > 0;
}

double elem_get_roundoff(elem type) {
    assert(type < ELEM_COUNT);
    return facts[type].roundoff;
}

static uint32_t get_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3FF;
    if (exponent == 31) /* infinity or NaN */
        return from_bits(sign | 0x7F800000 | mantissa << 13);
    if (exponent == 0) /* zero or denormal: a whole number of 2^-24 */
        return from_bits(sign | get_bits((float)mantissa * 0x1p-24f));
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/* bits >> shift, rounded to nearest even. A carry out of the mantissa lands in the exponent, which
 * is what rounding up to the next power of two (or to infinity) means. */
static uint32_t shift_rounded(uint32_t bits, uint32_t shift) {
    uint32_t kept = bits >> shift, lost = bits & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)));
}

uint16_t half_from_float(float value) {
    uint32_t bits = get_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint32_t sign = bits >> 16 & 0x8000, result;
    if (magnitude > 0x7F800000) /* NaN: keep the bits that fit, and keep it a NaN */
        result = 0x7E00 | (magnitude >> 13 & 0x3FF);
    else if (magnitude >= 0x47800000) /* 65536 and above, infinity too */
        result = 0x7C00;
    else if (magnitude >= 0x38800000) /* normal halves: 2^-14 and above */
        result = shift_rounded(magnitude - (112u << 23), 13);
    else if (magnitude >= 0x33000000) /* 2^-25 and above: the mantissa with its 1, as 2^-24ths */
        result = shift_rounded((magnitude & 0x7FFFFF) | 0x800000, 126 - (magnitude >> 23));
    else
        result = 0;
    return (uint16_t)(sign | result);
}

float bfloat_to_float(uint16_t bits) {
    return from_bits((uint32_t)bits << 16);
}

uint16_t bfloat_from_float(float value) {
    uint32_t bits = get_bits(value);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)shift_rounded(bits, 16);
}

/* The float next to value that has an odd last bit, or value itself if it is a float. */
static float round_to_odd(double value) {
    float nearest = (float)value;
    if (isnan(value) || (double)nearest == value)
        return nearest;
    if (fabs((double)nearest) > fabs(value))
        nearest = nextafterf(nearest, 0);
    return from_bits(get_bits(nearest) | 1);
}

/* Truncates into [low, high]; NaN becomes 0. */
static double clamp(double value, double low, double high) {
    return isnan(value) ? 0 : value < low ? low : value > high ? high : trunc(value);
}

static uint64_t to_u64(double value) {
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)clamp(value, 0, 0x1p64);
}

static int64_t to_i64(double value) {
    return value >= 0x1p63 ? INT64_MAX : (int64_t)clamp(value, -0x1p63, 0x1p63);
}

/* Of each type: what it is in memory, how that is read, and how a value is written. */
#define ELEMENTS(X)                                                                                \
    X(ELEM_U8, uint8_t, stored, clamp(value, 0, UINT8_MAX))                                        \
    X(ELEM_I8, int8_t, stored, clamp(value, INT8_MIN, INT8_MAX))                                   \
    X(ELEM_U16, uint16_t, stored, clamp(value, 0, UINT16_MAX))                                     \
    X(ELEM_I16, int16_t, stored, clamp(value, INT16_MIN, INT16_MAX))                               \
    X(ELEM_U32, uint32_t, stored, clamp(value, 0, UINT32_MAX))                                     \
    X(ELEM_I32, int32_t, stored, clamp(value, INT32_MIN, INT32_MAX))                               \
    X(ELEM_U64, uint64_t, stored, to_u64(value))                                                   \
    X(ELEM_I64, int64_t, stored, to_i64(value))                                                    \
    X(ELEM_F16, uint16_t, half_to_float(stored), half_from_float(round_to_odd(value)))             \
    X(ELEM_BF16, uint16_t, bfloat_to_float(stored), bfloat_from_float(round_to_odd(value)))        \
    X(ELEM_F32, float, stored, value)

#define READ(kind, type, read, written)                                                            \
    case kind: {                                                                                   \
        const type stored = ((const type *)array)[i];                                              \
        return (double)(read);                                                                     \
    }
double elem_read(elem type, const void *array, size_t i) {
    switch (type) {
        ELEMENTS(READ)
    case ELEM_COUNT:
        break;
    }
    assert(type < ELEM_COUNT);
    return NAN;
}

#define WRITE(kind, type, read, written)                                                           \
    case kind:                                                                                     \
        ((type *)array)[i] = (type)(written);                                                      \
        return;
void elem_write(elem type, void *array, size_t i, double value) {
    switch (type) {
        ELEMENTS(WRITE)
    case ELEM_COUNT:
        break;
    }
    assert(type < ELEM_COUNT);
}

bool elem_find_msl(const char *type, elem *out) {
    static const struct {
        const char *name;
        elem type;
    } names[] = {
        {"bool", ELEM_U8},          {"char", ELEM_I8},         {"int8_t", ELEM_I8},
        {"uchar", ELEM_U8},         {"uint8_t", ELEM_U8},      {"short", ELEM_I16},
        {"int16_t", ELEM_I16},      {"ushort", ELEM_U16},      {"uint16_t", ELEM_U16},
        {"int", ELEM_I32},          {"int32_t", ELEM_I32},     {"uint", ELEM_U32},
        {"uint32_t", ELEM_U32},     {"long", ELEM_I64},        {"int64_t", ELEM_I64},
        {"ulong", ELEM_U64},        {"uint64_t", ELEM_U64},    {"size_t", ELEM_U64},
        {"half", ELEM_F16},         {"bfloat", ELEM_BF16},     {"float", ELEM_F32},
        {"atomic_int", ELEM_I32},   {"atomic_uint", ELEM_U32}, {"atomic_float", ELEM_F32},
        {"atomic_ulong", ELEM_U64},
    };
    static const char *const prefixes[] = {"const ", "volatile ", "metal::", "packed_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(type, prefixes[i], strlen(prefixes[i])) == 0)
            return elem_find_msl(type + strlen(prefixes[i]), out);
    size_t n = strcspn(type, " *&");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t stem = strlen(names[i].name);
        bool is_vector = n == stem + 1 && type[stem] >= '2' && type[stem] <= '4';
        if (stem <= n && strncmp(type, names[i].name, stem) == 0 && (n == stem || is_vector)) {
            *out = names[i].type;
            return true;
        }
    }
    return false;
}
