/* contents: what buffers start with (description.h). Owns the formats of values and files. */
#include "description.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "harness/base/os.h"

#define MOST_BYTES ((size_t)1 << 36)

bool contents_find(const char *word, contents *out) {
    static const char *const names[] = {"drawn", "unwritten", "zero",  "one", "ramp",
                                        "nan",   "random",    "value", "from"};
    for (size_t i = CONTENTS_UNWRITTEN; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], word) == 0) {
            *out = (contents)i;
            return true;
        }
    return false;
}

/* Files --------------------------------------------------------------------------------------- */

typedef struct {
    char *text; /* all of the file */
    const char *data;
    size_t bytes, each; /* each: of an element */
    elem type;
    bool is_double; /* numpy's f8 has no element type here */
} array;

/* The text after 'key': in the dict of a .npy header. */
static const char *find_key(const char *header, const char *key) {
    const char *at = header ? strstr(header, key) : NULL;
    at = at ? strchr(at, ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : "";
}

/* "'<f4'" is f32. Big-endian files are not read. */
static bool read_descr(const char *text, array *a) {
    static const struct {
        const char *name;
        elem type;
    } names[] = {{"f2", ELEM_F16}, {"f4", ELEM_F32}, {"u1", ELEM_U8},  {"i1", ELEM_I8},
                 {"u2", ELEM_U16}, {"i2", ELEM_I16}, {"u4", ELEM_U32}, {"i4", ELEM_I32},
                 {"u8", ELEM_U64}, {"i8", ELEM_I64}, {"b1", ELEM_U8}};
    if (text[0] != '\'' || !strchr("<|=", text[1]))
        return false;
    a->is_double = strncmp(text + 2, "f8'", 3) == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(text + 2, names[i].name, 2) == 0 && text[4] == '\'') {
            a->type = names[i].type;
            return true;
        }
    return a->is_double;
}

/* The magic, the version, the length of the header, the header: a Python dict. */
static bool read_npy(const char *path, array *a, err *e) {
    const unsigned char *u = (const unsigned char *)a->text;
    size_t start = a->bytes > 7 && u[6] >= 2 ? 12 : 10, length = 0;
    if (a->bytes < start || memcmp(u, "\x93NUMPY", 6) != 0)
        return err_set(e, EXIT_USAGE, "%.160s is not a .npy file", path);
    for (size_t i = start - 1; i >= 8; i--)
        length = length << 8 | u[i];
    if (length > a->bytes - start)
        return err_set(e, EXIT_USAGE, "%.160s ends within its header", path);
    char *header = strndup(a->text + start, length);
    bool is_known = read_descr(find_key(header, "'descr'"), a);
    bool is_c = strncmp(find_key(header, "'fortran_order'"), "False", 5) == 0;
    free(header);
    a->data += start + length;
    a->bytes -= start + length;
    if (!is_known)
        return err_set(e, EXIT_USAGE,
                       "%.120s holds a type that is not read: use little-endian floats or integers",
                       path);
    return is_c ||
           err_set(e, EXIT_USAGE,
                   "%.120s is in Fortran order: save it with numpy.ascontiguousarray", path);
}

/* Free a->text, also after a failure. */
static bool read_array(const char *path, elem type, array *a, err *e) {
    const char *dot = strrchr(path, '.');
    *a = (array){.type = type};
    a->data = a->text = os_read_plain(path, MOST_BYTES, &a->bytes, e);
    if (!a->text || (dot && strcmp(dot, ".npy") == 0 && !read_npy(path, a, e)))
        return false;
    a->each = a->is_double ? sizeof(double) : elem_get_bytes(a->type);
    return a->bytes % a->each == 0 ||
           err_set(e, EXIT_USAGE, "%.120s has %zu bytes, which are not elements of %zu", path,
                   a->bytes, a->each);
}

static double get_double(const array *a, size_t i) {
    double value;
    if (!a->is_double)
        return elem_read(a->type, a->data, i);
    memcpy(&value, a->data + i * sizeof value, sizeof value);
    return value;
}

bool contents_read_doubles(const char *path, elem type, double *values, size_t count, err *e) {
    array a;
    bool ok = read_array(path, type, &a, e);
    if (ok && a.bytes / a.each != count)
        ok = err_set(e, EXIT_USAGE, "%.120s has %zu elements and the shape needs %zu", path,
                     a.bytes / a.each, count);
    for (size_t i = 0; ok && i < count; i++)
        values[i] = get_double(&a, i);
    free(a.text);
    return ok;
}

/* *count of them, or as many as there are. */
static void *make_from_file(elem type, const char *path, size_t *count, err *e) {
    array a;
    void *data = NULL;
    const size_t wanted = *count, each = elem_get_bytes(type);
    bool ok = read_array(path, type, &a, e);
    *count = ok ? a.bytes / a.each : 0;
    if (ok && (*count == 0 || (wanted > 0 && *count != wanted)))
        ok = err_set(e, EXIT_USAGE,
                     "%.120s has %zu elements and the shape needs %zu: it takes %zu bytes "
                     "(%s[%zu])",
                     path, *count, wanted, wanted * each, elem_get_name(type), wanted);
    if (ok && !(data = malloc(*count * each)))
        err_set(e, EXIT_CANNOT, "no memory for %zu elements of %.160s", *count, path);
    if (data && !a.is_double && a.type == type)
        memcpy(data, a.data, a.bytes); /* all bits of large integers */
    else
        for (size_t i = 0; data && i < *count; i++)
            elem_write(type, data, i, get_double(&a, i));
    free(a.text);
    return data;
}

bool contents_parse_value(const char *text, elem type, const expression_scope *scope, void *out,
                          err *e) {
    char *end;
    number value;
    errno = 0;
    if (elem_is_float(type)) {
        double real = strtod(text, &end);
        if (end > text && !*end && !isspace((unsigned char)text[0])) {
            elem_write(type, out, 0, real);
            return true;
        }
    }
    if (type == ELEM_U64 && isdigit((unsigned char)text[0])) { /* more than expressions have */
        uint64_t large = strtoull(text, &end, 10);
        if (!*end && !errno) {
            memcpy(out, &large, sizeof large);
            return true;
        }
    }
    return expression_evaluate(text, scope, &value, e) &&
           (number_store(&value, type, out) ||
            err_set(e, EXIT_USAGE, "'%.60s' is %.9g, which does not fit into %s", text, value.real,
                    elem_get_name(type)));
}

static bool fill_values(elem type, const char *text, void *data, size_t count, err *e) {
    static const expression_scope nothing;
    size_t bytes = elem_get_bytes(type), given = 0;
    char *copy = strdup(text), *at = copy;
    bool ok = copy != NULL;
    while (ok && at) {
        char *value = strsep(&at, ",");
        uint64_t bits = 0;
        ok = contents_parse_value(value, type, &nothing, &bits, e);
        if (ok && given < count)
            memcpy((char *)data + given * bytes, &bits, bytes);
        given += ok;
    }
    free(copy);
    if (ok && given != count && given != 1)
        ok = err_set(e, EXIT_USAGE, "there are %zu elements and %zu values", count, given);
    for (size_t i = given; ok && i < count; i++)
        memcpy((char *)data + i * bytes, data, bytes);
    return ok;
}

static size_t count_values(const char *text) {
    size_t count = 1;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* How many whole numbers from 0 on the type holds exactly. */
static uint64_t count_exact(elem type) {
    if (elem_is_float(type))
        return (uint64_t)(1 / elem_get_roundoff(type));
    unsigned bits = (unsigned)elem_get_bytes(type) * 8;
    bool is_signed = type == ELEM_I8 || type == ELEM_I16 || type == ELEM_I32 || type == ELEM_I64;
    return bits == 64 ? (uint64_t)1 << 53 : (uint64_t)1 << (bits - is_signed);
}

static void fill_random(elem type, rng random, void *data, size_t count) {
    size_t bytes = elem_get_bytes(type);
    for (size_t i = 0; i < count; i++) {
        if (elem_is_float(type)) {
            elem_write(type, data, i, 2 * rng_uniform(&random) - 1);
        } else {
            uint64_t bits = rng_next(&random) >> (64 - 8 * bytes); /* little-endian */
            memcpy((uint8_t *)data + i * bytes, &bits, bytes);
        }
    }
}

void *contents_make(contents c, elem type, const char *text, uint64_t seed, const char *name,
                    size_t *count, err *e) {
    if (c == CONTENTS_FILE)
        return make_from_file(type, text, count, e);
    if (*count == 0)
        *count = count_values(text);
    void *data = calloc(*count, elem_get_bytes(type));
    if (!data)
        return err_null(e, EXIT_CANNOT, "no memory for %s: %s[%zu]", name, elem_get_name(type),
                        *count);
    if (c == CONTENTS_VALUES && !fill_values(type, text, data, *count, e)) {
        free(data);
        return NULL;
    }
    const uint64_t exact = count_exact(type);
    if (c == CONTENTS_RANDOM)
        fill_random(type, rng_new(seed, name), data, *count);
    else if (c == CONTENTS_ONE || c == CONTENTS_RAMP || c == CONTENTS_NAN)
        for (size_t i = 0; i < *count; i++)
            elem_write(type, data, i,
                       c == CONTENTS_ONE    ? 1
                       : c == CONTENTS_RAMP ? (double)(i % exact)
                                            : (double)NAN);
    return data;
}
