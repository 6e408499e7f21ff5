#include "array_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

#define MOST_BYTES ((size_t)1 << 34)

/* The text after 'key': in the dict of a .npy header. */
static const char *find_key(const char *header, const char *key) {
    char quoted[40];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    at = at ? strchr(at, ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* "'<f4'" is f32. numpy's f8 has no element type here: *is_double. */
static bool read_descr(const char *text, elem *type, bool *is_double) {
    static const struct {
        const char *name;
        elem type;
    } names[] = {{"f2", ELEM_F16}, {"f4", ELEM_F32}, {"u1", ELEM_U8},  {"i1", ELEM_I8},
                 {"u2", ELEM_U16}, {"i2", ELEM_I16}, {"u4", ELEM_U32}, {"i4", ELEM_I32},
                 {"u8", ELEM_U64}, {"i8", ELEM_I64}, {"b1", ELEM_U8}};
    if (!text || text[0] != '\'' || !strchr("<|=", text[1]))
        return false; /* big-endian files are not read */
    *is_double = strncmp(text + 2, "f8'", 3) == 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(text + 2, names[i].name, 2) == 0 && text[4] == '\'') {
            *type = names[i].type;
            return true;
        }
    return *is_double;
}

typedef struct {
    const char *data;
    size_t bytes;
    elem type;
    bool is_double;
} array;

/* The magic, the version, the length of the header, the header: a Python dict. */
static bool read_npy(const char *path, const char *text, size_t bytes, array *a, err *e) {
    const unsigned char *u = (const unsigned char *)text;
    size_t start = bytes > 7 && u[6] >= 2 ? 12 : 10, length = 0;
    if (bytes < start || memcmp(text, "\x93NUMPY", 6) != 0)
        return err_set(e, EXIT_USAGE, "%.160s is not a .npy file", path);
    for (size_t i = start - 1; i >= 8; i--)
        length = length << 8 | u[i];
    if (length > bytes - start)
        return err_set(e, EXIT_USAGE, "%.160s ends within its header", path);
    char *header = strndup(text + start, length);
    const char *descr = header ? find_key(header, "descr") : NULL;
    const char *order = header ? find_key(header, "fortran_order") : NULL;
    bool is_known = read_descr(descr, &a->type, &a->is_double);
    bool is_c = order && strncmp(order, "False", 5) == 0;
    free(header);
    if (!is_known)
        return err_set(e, EXIT_USAGE,
                       "%.120s holds a type that is not read: use little-endian floats or integers",
                       path);
    if (!is_c)
        return err_set(e, EXIT_USAGE,
                       "%.120s is in Fortran order: save it with numpy.ascontiguousarray", path);
    a->data = text + start + length;
    a->bytes = bytes - start - length;
    return true;
}

bool array_file_read(const char *path, elem type, double *values, size_t count, err *e) {
    size_t bytes, length = strlen(path);
    char *text = os_read_plain(path, MOST_BYTES, &bytes, e);
    array a = {text, text ? bytes : 0, type, false};
    bool is_npy = length > 4 && strcmp(path + length - 4, ".npy") == 0;
    bool ok = text && (!is_npy || read_npy(path, text, bytes, &a, e));
    size_t each = a.is_double ? sizeof(double) : elem_get_bytes(a.type);
    if (ok && a.bytes != count * each)
        ok = err_set(e, EXIT_USAGE, "%.120s has %zu elements and the shape needs %zu", path,
                     a.bytes / each, count);
    for (size_t i = 0; ok && i < count; i++)
        if (a.is_double)
            memcpy(&values[i], a.data + i * sizeof(double), sizeof(double));
        else
            values[i] = elem_read(a.type, a.data, i);
    free(text);
    return ok;
}
