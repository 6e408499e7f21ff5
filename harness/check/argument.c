#include "argument.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "fill.h"
#include "harness/base/os.h"

enum { MAX_VALUE = 128 }; /* characters of an expression */

static const char *const content_names[] = {
    [CONTENT_UNWRITTEN] = "unwritten", [CONTENT_ZERO] = "zero", [CONTENT_ONE] = "one",
    [CONTENT_RAMP] = "ramp",           [CONTENT_NAN] = "nan",   [CONTENT_RANDOM] = "random",
    [CONTENT_VALUES] = "value",        [CONTENT_FILE] = "file",
};
enum { CONTENTS = sizeof content_names / sizeof *content_names };

bool argument_parse_number(const char *text, uint64_t max, uint64_t *out, const char **rest) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    *rest = end;
    return isdigit((unsigned char)text[0]) && !errno && *out <= max;
}

bool argument_parse_size(const char *option, const char *text, size3 *out, err *e) {
    uint32_t sizes[3] = {1, 1, 1};
    const char *p = text;
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        if (!argument_parse_number(p, UINT32_MAX, &value, &p) || value == 0 || (*p && *p != ','))
            break;
        sizes[i] = (uint32_t)value;
        if (!*p) {
            *out = (size3){sizes[0], sizes[1], sizes[2]};
            return true;
        }
        p++;
    }
    return err_set(
        e, EXIT_USAGE,
        "--%s takes one to three whole numbers above 0, such as 64 or 8,8,1, not '%.40s'", option,
        text);
}

/* Numbers -------------------------------------------------------------------------------------- */

static bool parse_float(elem type, const char *text, void *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)text[0]))
        return false;
    elem_write(type, out, 0, value);
    return true;
}

/* An expression over numbers, as descriptions have them (expression.h). */
static bool evaluate(const char *text, elem type, void *out) {
    number value;
    err why = {.code = EXIT_OK};
    return expression_evaluate(text, NULL, NULL, &value, &why) && number_store(value, type, out);
}

/* Half of the numbers of a u64 are more than an expression has. */
static bool parse_large(elem type, const char *text, void *out) {
    const char *end;
    return type == ELEM_U64 && argument_parse_number(text, UINT64_MAX, out, &end) && !*end;
}

/* One number, up to the next comma or the end. */
static bool parse_value(elem type, const char *text, void *out, const char **rest, err *e) {
    char copy[MAX_VALUE];
    size_t n = strcspn(text, ",");
    *rest = text + n;
    snprintf(copy, sizeof copy, "%.*s", n < sizeof copy ? (int)n : 0, text);
    if ((elem_is_float(type) && parse_float(type, copy, out)) || parse_large(type, copy, out) ||
        evaluate(copy, type, out))
        return true;
    return err_set(e, EXIT_USAGE, "'%.*s' is not a value of type %s", n < 60 ? (int)n : 60, text,
                   elem_get_name(type));
}

/* Texts ---------------------------------------------------------------------------------------- */

static bool refuse(const char *text, const char *why, err *e) {
    return err_set(e, EXIT_USAGE,
                   "--arg '%.60s': %s; it is written like 0=f32[1024]:ramp or 2=u32:576", text,
                   why);
}

/* "f32" up to '[' or ':'. */
static bool parse_type(const char **p, elem *type) {
    char name[8];
    size_t n = strcspn(*p, "[:");
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, *p);
    *p += n;
    return elem_find(name, type);
}

static bool parse_content(const char *text, const char *p, argument *out, err *e) {
    size_t n = strcspn(p, ":");
    for (int i = 0; i < CONTENTS; i++) {
        if (strlen(content_names[i]) != n || strncmp(content_names[i], p, n) != 0)
            continue;
        out->fill = (content)i;
        bool wants_text = i == CONTENT_VALUES || i == CONTENT_FILE;
        if (wants_text != (p[n] == ':' && p[n + 1]))
            return refuse(text,
                          wants_text ? "nothing follows its last ':'"
                                     : "something follows the name of the contents",
                          e);
        out->text = wants_text ? p + n + 1 : NULL;
        if (i == CONTENT_NAN && !elem_is_float(out->type))
            return refuse(text, "integers have no nan", e);
        return true;
    }
    return refuse(
        text, "the contents are unwritten, zero, one, ramp, nan, random, value:V or file:PATH", e);
}

static bool parse_array(const char *text, const char *p, argument *out, err *e) {
    out->is_array = true;
    char copy[MAX_VALUE];
    uint64_t count = 0;
    const size_t n = strcspn(p + 1, "]");
    const char *close = p + 1 + n;
    snprintf(copy, sizeof copy, "%.*s", n < sizeof copy ? (int)n : 0, p + 1);
    if (*close != ']' || (close[1] && close[1] != ':'))
        return refuse(text, "the number of elements goes between [ and ]", e);
    if (n > 0 && (!evaluate(copy, ELEM_U64, &count) || count == 0 || count > SIZE_MAX / 16))
        return refuse(text, "the number of elements is a whole number above 0", e);
    out->count = (size_t)count;
    if (close[1] && !parse_content(text, close + 2, out, e))
        return false;
    if (n == 0 && out->fill != CONTENT_FILE && out->fill != CONTENT_VALUES)
        return refuse(text, "[] needs a file or a list of values that says how many there are", e);
    return true;
}

/* "1", "1+1024" or "1+1024:512" after the '@'. */
static bool parse_alias(const char *text, const char *p, argument *out, err *e) {
    uint64_t of, offset = 0, bytes = 0;
    bool ok = argument_parse_number(p, LAUNCH_BUFFERS - 1, &of, &p);
    if (ok && *p == '+')
        ok = argument_parse_number(p + 1, SIZE_MAX / 2, &offset, &p);
    if (ok && *p == ':')
        ok = argument_parse_number(p + 1, SIZE_MAX / 2, &bytes, &p) && bytes > 0;
    if (!ok || *p)
        return refuse(text, "a buffer of another argument is written like 3=@1 or 3=@1+1024:512",
                      e);
    out->is_alias = out->is_array = true;
    out->of = (int)of;
    out->offset = (size_t)offset;
    out->bytes = (size_t)bytes;
    return true;
}

bool argument_parse(const char *text, argument *out, err *e) {
    *out = (argument){.fill = CONTENT_UNWRITTEN};
    uint64_t index;
    const char *p;
    if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) || *p != '=')
        return refuse(text, "it begins with a buffer index from 0 to 30 and '='", e);
    out->index = (int)index;
    p++;
    if (*p == '@')
        return parse_alias(text, p + 1, out, e);
    if (!parse_type(&p, &out->type))
        return refuse(text, "the types are f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64", e);
    if (*p == '[')
        return parse_array(text, p, out, e);
    if (*p != ':' || !p[1])
        return refuse(text, "a scalar needs ':' and a value", e);
    uint64_t room;
    out->fill = CONTENT_VALUES;
    out->text = p + 1;
    out->count = 1;
    return parse_value(out->type, p + 1, &room, &p, e) &&
           (!*p || refuse(text, "a scalar has one value", e));
}

bool argument_parse_constant(const char *text, constant_value *out, err *e) {
    uint64_t index;
    const char *p;
    *out = (constant_value){0};
    if (!argument_parse_number(text, 65535, &index, &p) || *p++ != '=' ||
        !parse_type(&p, &out->type) || *p != ':')
        return err_set(e, EXIT_USAGE,
                       "--constant '%.60s': it is written INDEX=TYPE:VALUE, like 0=u32:64 (a bool "
                       "is u8:0 or u8:1)",
                       text);
    out->index = (uint32_t)index;
    uint8_t value[8] = {0};
    if (!parse_value(out->type, p + 1, value, &p, e))
        return false;
    for (size_t i = 0; i < elem_get_bytes(out->type); i++)
        out->bits |= (uint64_t)value[i] << 8 * i;
    return !*p || err_set(e, EXIT_USAGE, "--constant '%.60s': it takes one value", text);
}

/* Bytes ---------------------------------------------------------------------------------------- */

/* How many whole numbers from 0 on the type holds exactly. */
static uint64_t count_exact(elem type) {
    if (elem_is_float(type))
        return (uint64_t)(1 / elem_get_roundoff(type));
    unsigned bits = (unsigned)elem_get_bytes(type) * 8;
    bool is_signed = type == ELEM_I8 || type == ELEM_I16 || type == ELEM_I32 || type == ELEM_I64;
    return bits == 64 ? (uint64_t)1 << 53 : (uint64_t)1 << (bits - is_signed);
}

static void fill_random(const argument *a, uint64_t seed, void *data, size_t count) {
    char name[32];
    snprintf(name, sizeof name, "argument %d", a->index);
    rng random = rng_new(seed, name);
    size_t bytes = elem_get_bytes(a->type);
    for (size_t i = 0; i < count; i++) {
        if (elem_is_float(a->type)) {
            elem_write(a->type, data, i, 2 * rng_uniform(&random) - 1);
        } else {
            uint64_t bits = rng_next(&random);
            for (size_t b = 0; b < bytes; b++)
                ((uint8_t *)data)[i * bytes + b] = (uint8_t)(bits >> (64 - 8 * bytes + 8 * b));
        }
    }
}

static bool fill_values(const argument *a, void *data, size_t count, err *e) {
    size_t bytes = elem_get_bytes(a->type), given = 0;
    for (const char *p = a->text;; p++, given++) {
        uint64_t value;
        if (!parse_value(a->type, p, &value, &p, e))
            return false;
        if (given < count)
            memcpy((char *)data + given * bytes, &value, bytes);
        if (!*p)
            break;
    }
    given++;
    if (given != count && given != 1)
        return err_set(e, EXIT_USAGE, "argument %d has %zu elements and is given %zu values",
                       a->index, count, given);
    for (size_t i = given; i < count; i++)
        memcpy((char *)data + i * bytes, data, bytes);
    return true;
}

static void *read_raw(const argument *a, size_t *count, err *e) {
    size_t bytes, size = elem_get_bytes(a->type);
    char *data = os_read_plain(a->text, (size_t)1 << 36, &bytes, e);
    if (!data)
        return NULL;
    *count = bytes / size;
    bool fits = a->count ? *count == a->count && bytes % size == 0 : *count && bytes % size == 0;
    if (fits)
        return data;
    if (a->count)
        err_set(e, EXIT_USAGE, "argument %d takes %zu bytes (%s[%zu]) and %.120s has %zu", a->index,
                a->count * size, elem_get_name(a->type), a->count, a->text, bytes);
    else
        err_set(e, EXIT_USAGE, "argument %d: %.120s has %zu bytes, which are not elements of %zu",
                a->index, a->text, bytes, size);
    free(data);
    return NULL;
}

static size_t count_values(const char *text) {
    size_t count = 1;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

void *argument_make_data(const argument *a, uint64_t seed, size_t *count, err *e) {
    if (a->fill == CONTENT_FILE)
        return read_raw(a, count, e);
    *count = a->count ? a->count : count_values(a->text);
    void *data = calloc(*count, elem_get_bytes(a->type));
    if (!data)
        return err_null(e, EXIT_CANNOT, "no memory for argument %d: %s[%zu]", a->index,
                        elem_get_name(a->type), *count);
    uint64_t exact = count_exact(a->type);
    if (a->fill == CONTENT_RANDOM) {
        fill_random(a, seed, data, *count);
    } else if (a->fill == CONTENT_VALUES) {
        if (!fill_values(a, data, *count, e)) {
            free(data);
            return NULL;
        }
    } else if (a->fill != CONTENT_ZERO && a->fill != CONTENT_UNWRITTEN) {
        for (size_t i = 0; i < *count; i++)
            elem_write(a->type, data, i,
                       a->fill == CONTENT_ONE    ? 1
                       : a->fill == CONTENT_RAMP ? (double)(i % exact)
                                                 : (double)NAN);
    }
    return data;
}
