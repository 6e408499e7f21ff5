/* gguf: reads GGUF files, versions 2 and 3.
 *
 * The file is mapped, checked whole and then only looked at: texts, arrays and tensors point into
 * the map and live as long as the gguf. Nothing in a file is trusted: every length, count, offset
 * and product is checked against what is left of the file before it is used, and what is allocated
 * is bounded by the size of the file. A file that is wrong is one sentence and EXIT_USAGE.
 *
 * Nothing in the metadata is aligned, so arrays are read through functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "reference/quant.h"

/* Bytes in the file; not NUL-terminated, and any bytes at all. */
typedef struct {
    const char *data;
    size_t bytes;
} gguf_text;

typedef enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_VALUE_TYPES
} gguf_value_type;

typedef struct {
    gguf_text key;
    gguf_value_type type;
    gguf_value_type element; /* of an array; else the same as type */
    size_t count;            /* elements of an array; else 1 */
    const uint8_t *data;     /* the value, or the first element */
    size_t bytes;            /* of all of it in the file */
    const gguf_text *texts;  /* strings: `count` of them; else NULL */
} gguf_value;

/* Bytes of a number of this type; 0 for strings and arrays. */
size_t gguf_get_value_bytes(gguf_value_type type);
const char *gguf_get_value_type_name(gguf_value_type type); /* "u32" */

/* How a tensor's numbers are stored. Every type of the format is listed with its size. */
typedef struct {
    uint32_t id;
    const char *name;            /* "Q4_0" */
    size_t values, bytes;        /* of a block */
    const weight_format *format; /* NULL: no kernel reads it */
    const char *word;   /* on a command line, "q4_0"; NULL: `model convert` does not write it */
    uint32_t file_type; /* general.file_type of a model that is mostly of this type */
    const weight_format
        *instead; /* for rows that are not whole blocks, as llama-quantize has it; NULL: F16 */
} gguf_type;

const gguf_type *gguf_get_type(size_t i);     /* in the order of the table; NULL: no more */
const gguf_type *gguf_find_type(uint32_t id); /* NULL: there is no such type */
const gguf_type *gguf_find_format(const weight_format *f);
const gguf_type *gguf_find_type_name(const char *name); /* any case; NULL: none */

enum { GGUF_DIMS = 4, GGUF_NAME_BYTES = 64 };

typedef struct {
    char name[GGUF_NAME_BYTES];
    const gguf_type *type;
    uint32_t dims;
    uint64_t dim[GGUF_DIMS]; /* dim[0] runs fastest: the length of a row; those not given are 1 */
    uint64_t elements;
    size_t offset; /* in the file */
    size_t bytes;
    const void *data;
} gguf_tensor;

typedef struct {
    char path[512]; /* "" when it was read from memory */
    const uint8_t *map;
    size_t bytes;
    uint32_t version;
    uint32_t alignment;
    size_t data_at; /* where the tensors' bytes start */
    gguf_value *values;
    size_t value_count;
    gguf_tensor *tensors; /* in the order of the file */
    size_t tensor_count;
    void *impl;
} gguf;

/* The next multiple of an alignment, which is a power of 2. */
uint64_t gguf_round_up(uint64_t value, uint32_t alignment);

gguf *gguf_open(const char *path, err *e);
/* From memory that outlives the gguf; `name` is for messages. */
gguf *gguf_read(const void *data, size_t bytes, const char *name, err *e);
void gguf_free(gguf *g);

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name); /* NULL: none */
const gguf_value *gguf_find_value(const gguf *g, const char *key);    /* NULL: none */

/* A value of just this type. False with e set when it is missing or of another type; *found (may be
 * NULL) tells a value that may be missing: then a missing one leaves *out as it was and is no
 * error. */
bool gguf_get_u32(const gguf *g, const char *key, uint32_t *out, bool *found, err *e);
bool gguf_get_f32(const gguf *g, const char *key, float *out, bool *found, err *e);
bool gguf_get_bool(const gguf *g, const char *key, bool *out, bool *found, err *e);
bool gguf_get_text(const gguf *g, const char *key, gguf_text *out, bool *found, err *e);

/* Element i of a number or array of numbers, as a double or as bits of its own type. */
double gguf_value_get_number(const gguf_value *v, size_t i);
int64_t gguf_value_get_integer(const gguf_value *v, size_t i); /* integers and bools only */

gguf_text gguf_to_text(const char *text);
bool gguf_text_equals(gguf_text t, const char *text);

/* Bytes of a file as text for a message: what is not printable ASCII becomes '?'. Long ones are cut
 * to fit, with "..." at the end. Returns out. */
char *gguf_print_text(gguf_text t, char *out, size_t size);

/* --- texts, numbered in the order in which they are added ---
 *
 * They are not copied unless they are added with a copy: they must outlive the set. */

#define TEXT_NONE UINT32_MAX

typedef struct {
    gguf_text *items;
    uint32_t count;
    size_t capacity;
    uint32_t *slots; /* numbers, or TEXT_NONE where empty; at most half of them are taken */
    size_t slot_count;
    char **copies;
    size_t copy_count, copy_capacity;
} text_set;

void text_set_free(text_set *s); /* empty again */

uint32_t text_set_find(const text_set *s, gguf_text text); /* TEXT_NONE: not there */
/* The number of a text, which is added if it is not there. */
uint32_t text_set_add(text_set *s, gguf_text text);
uint32_t text_set_add_copy(text_set *s, gguf_text text);
