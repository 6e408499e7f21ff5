/* types: sizes of the scalar, vector and matrix types of MSL, from their names. The
 * sizes of other arguments (structs, template parameters) only the compiler knows. */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
} scalars[] = {
    {"bool", 1},         {"char", 1},          {"uchar", 1},          {"int8_t", 1},
    {"uint8_t", 1},      {"short", 2},         {"ushort", 2},         {"int16_t", 2},
    {"uint16_t", 2},     {"half", 2},          {"bfloat", 2},         {"int", 4},
    {"uint", 4},         {"int32_t", 4},       {"uint32_t", 4},       {"float", 4},
    {"long", 8},         {"ulong", 8},         {"int64_t", 8},        {"uint64_t", 8},
    {"size_t", 8},       {"ptrdiff_t", 8},     {"atomic_int", 4},     {"atomic_uint", 4},
    {"atomic_bool", 4},  {"atomic_float", 4},  {"atomic_ulong", 8},   {"unsigned", 4},
    {"unsigned int", 4}, {"unsigned char", 1}, {"unsigned short", 2}, {"unsigned long", 8},
    {"signed char", 1},  {"uintptr_t", 8},     {"intptr_t", 8},
};

static uint32_t scalar_size(const char *name, size_t bytes) {
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (strlen(scalars[i].name) == bytes && memcmp(scalars[i].name, name, bytes) == 0)
            return scalars[i].bytes;
    return 0;
}

static const char *skip_namespace(const char *type) {
    return strncmp(type, "metal::", 7) == 0 ? type + 7 : type;
}

/* "float4" is float and 4, "packed_half3" half and 3, "half2x4" half, 2 and 4. */
static uint32_t vector_size(const char *type, bool packed, uint32_t *alignment) {
    size_t stem = strcspn(type, "0123456789");
    const char *p = type + stem;
    uint32_t element = scalar_size(type, stem);
    if (!element || *p < '2' || *p > '4')
        return 0;
    uint32_t columns = 1, rows = (uint32_t)(*p - '0');
    if (p[1] == 'x' && p[2] >= '2' && p[2] <= '4' && !p[3]) {
        columns = rows;
        rows = (uint32_t)(p[2] - '0');
    } else if (p[1]) {
        return 0;
    }
    uint32_t column = element * (rows == 3 && !packed ? 4 : rows);
    *alignment = packed ? element : column;
    return columns * column;
}

uint32_t type_size(const char *type, uint32_t *alignment) {
    type = skip_namespace(type);
    uint32_t bytes = scalar_size(type, strlen(type));
    *alignment = bytes;
    if (bytes)
        return bytes;
    bool packed = strncmp(type, "packed_", 7) == 0;
    bytes = vector_size(packed ? type + 7 : type, packed, alignment);
    if (!bytes)
        *alignment = 0;
    return bytes;
}

void type_get_pointee(const char *type, char *out, size_t size) {
    static const char *const noise[] = {"const ", "volatile ", "restrict ", NULL};
    bool again = true;
    while (again) {
        again = false;
        for (size_t i = 0; noise[i]; i++)
            if (strncmp(type, noise[i], strlen(noise[i])) == 0) {
                type += strlen(noise[i]);
                again = true;
            }
    }
    size_t n = strcspn(type, "*&[(");
    while (n > 0 && type[n - 1] == ' ')
        n--;
    if (n > 6 && strncmp(type + n - 6, " const", 6) == 0)
        n -= 6;
    /* A pointer to pointers, or to arrays: not a type whose size its name tells. */
    const char *mark = strpbrk(type, "*&[(");
    bool once = mark && (*mark == '*' || *mark == '&') && !strpbrk(mark + 1, "*&[(");
    snprintf(out, size, "%.*s", once ? (int)n : 0, type);
}

uint32_t type_count_dimensions(const char *type) {
    size_t n = strlen(type);
    char last = n > 1 && isdigit((unsigned char)type[n - 1]) ? type[n - 1] : '1';
    return last == '2' ? 2 : last == '3' ? 3 : 1;
}
