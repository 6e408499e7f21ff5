/* craft: see craft.h. */
#include "craft.h"

#include <assert.h>
#include <string.h>

void craft_bytes(crafted *c, const void *data, size_t bytes) {
    assert(bytes <= sizeof c->data - c->bytes);
    if (data)
        memcpy(c->data + c->bytes, data, bytes);
    else
        memset(c->data + c->bytes, 0, bytes);
    c->bytes += bytes;
}

void craft_u32(crafted *c, uint32_t value) {
    craft_bytes(c, &value, sizeof value);
}

void craft_u64(crafted *c, uint64_t value) {
    craft_bytes(c, &value, sizeof value);
}

void craft_text(crafted *c, const char *text) {
    craft_u64(c, strlen(text));
    craft_bytes(c, text, strlen(text));
}

void craft_header(crafted *c, uint32_t version, uint64_t tensors, uint64_t values) {
    c->bytes = 0;
    craft_bytes(c, "GGUF", 4);
    craft_u32(c, version);
    craft_u64(c, tensors);
    craft_u64(c, values);
}

void craft_key(crafted *c, const char *key, uint32_t type) {
    craft_text(c, key);
    craft_u32(c, type);
}

void craft_tensor(crafted *c, const char *name, uint32_t dims, const uint64_t *dim, uint32_t type,
                  uint64_t offset) {
    craft_text(c, name);
    craft_u32(c, dims);
    for (uint32_t i = 0; i < dims; i++)
        craft_u64(c, dim[i]);
    craft_u32(c, type);
    craft_u64(c, offset);
}

void craft_pad(crafted *c, size_t alignment, size_t more) {
    craft_bytes(c, NULL, (alignment - c->bytes % alignment) % alignment + more);
}

static const size_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Element k of a value of each type: bytes 1, 2, 3, ... so that a wrong place shows. */
static void craft_element(crafted *c, uint32_t type, int k) {
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    if (type == GGUF_STRING)
        craft_text(c, k ? "" : "two words");
    else
        craft_bytes(c, bytes + k, value_bytes[type]);
}

void craft_valid(crafted *c, uint32_t version) {
    const uint64_t row[] = {5}, matrix[] = {32, 3}, all[] = {2, 1, 3, 2};
    char key[32];
    craft_header(c, version, 3, 2 * (GGUF_VALUE_TYPES - 1) + 1);
    for (uint32_t t = 0; t < GGUF_VALUE_TYPES; t++) {
        if (t == GGUF_ARRAY)
            continue;
        strcpy(key, "one.?");
        key[4] = (char)('a' + t);
        craft_key(c, key, t);
        craft_element(c, t, 0);
        strcpy(key, "two.?");
        key[4] = (char)('a' + t);
        craft_key(c, key, GGUF_ARRAY);
        craft_u32(c, t);
        craft_u64(c, 2);
        craft_element(c, t, 0);
        craft_element(c, t, 1);
    }
    craft_key(c, "empty", GGUF_ARRAY);
    craft_u32(c, GGUF_F32);
    craft_u64(c, 0);
    craft_tensor(c, "row", 1, row, 0, 0);
    craft_tensor(c, "matrix", 2, matrix, 2, 32);
    craft_tensor(c, "all", 4, all, 1, 96);
    craft_pad(c, 32, 96 + 24);
}

/* --- wrong ones --- */

static void one_tensor(crafted *c, const char *name, uint32_t dims, const uint64_t *dim,
                       uint32_t type, uint64_t offset) {
    craft_header(c, 3, 1, 0);
    craft_tensor(c, name, dims, dim, type, offset);
    craft_pad(c, 32, 256);
}

static void one_dim(crafted *c, uint64_t dim, uint32_t type) {
    one_tensor(c, "t", 1, &dim, type, 0);
}

static void alignment(crafted *c, uint32_t type, uint32_t value) {
    craft_header(c, 3, 0, 1);
    craft_key(c, "general.alignment", type);
    craft_u32(c, value);
    craft_u32(c, 0); /* the rest, for types of 8 bytes */
}

static void text_longer(crafted *c, uint64_t bytes) {
    craft_header(c, 3, 0, 1);
    craft_u64(c, bytes);
    craft_bytes(c, "abcdefghijklmnop", 16);
}

static void array(crafted *c, uint32_t element, uint64_t count) {
    craft_header(c, 3, 0, 1);
    craft_key(c, "a", GGUF_ARRAY);
    craft_u32(c, element);
    craft_u64(c, count);
    craft_bytes(c, NULL, 64);
}

static void two_tensors(crafted *c, const char *second, uint64_t offset) {
    const uint64_t dim[] = {9};
    craft_header(c, 3, 2, 0);
    craft_tensor(c, "first", 1, dim, 0, 0);
    craft_tensor(c, second, 1, dim, 0, offset);
    craft_pad(c, 32, 256);
}

/* What is wrong, what the answer says, and how it is made. */
/* clang-format off */
#define WRONG(X) \
    X(empty, "an empty file", "ends", c->bytes = 0) \
    X(bad_magic, "a wrong magic", "not a GGUF file", craft_header(c, 3, 0, 0); c->data[3] = 'X') \
    X(version_0, "version 0", "version 0", craft_header(c, 0, 0, 0)) \
    X(version_1, "version 1", "version 1", craft_header(c, 1, 0, 0)) \
    X(version_4, "version 4", "version 4", craft_header(c, 4, 0, 0)) \
    X(swapped, "a byte-swapped version", "big-endian", craft_header(c, 0x03000000, 0, 0)) \
    X(negative_tensors, "-1 tensors", "18446744073709551615 tensors", craft_header(c, 3, UINT64_MAX, 0); craft_bytes(c, NULL, 512)) \
    X(absurd_tensors, "more tensors than bytes", "tensors, more than", craft_header(c, 3, UINT64_MAX / 24, 0); craft_bytes(c, NULL, 512)) \
    X(negative_values, "-1 values", "18446744073709551615 metadata", craft_header(c, 3, 0, UINT64_MAX); craft_bytes(c, NULL, 512)) \
    X(absurd_values, "more values than bytes", "metadata values, more", craft_header(c, 3, 0, 1u << 30); craft_bytes(c, NULL, 512)) \
    X(long_key, "a key beyond the end", "the key of metadata 1", text_longer(c, 1000)) \
    X(huge_key, "a key of 2^64 - 1 bytes", "the key of metadata 1", text_longer(c, UINT64_MAX)) \
    X(huge_key_that_wraps, "a key whose end wraps", "the key of metadata 1", text_longer(c, UINT64_MAX - 31)) \
    X(empty_key, "an empty key", "is empty", craft_header(c, 3, 0, 1); craft_key(c, "", GGUF_U32); craft_u32(c, 1)) \
    X(same_key, "a key twice", "k is there twice", craft_header(c, 3, 0, 2); craft_key(c, "k", GGUF_U32); craft_u32(c, 1); craft_key(c, "k", GGUF_U32); craft_u32(c, 1)) \
    X(unknown_value, "an unknown type of value", "type 13", craft_header(c, 3, 0, 1); craft_key(c, "k", 13); craft_bytes(c, NULL, 32)) \
    X(negative_value, "type -1", "unknown type", craft_header(c, 3, 0, 1); craft_key(c, "k", UINT32_MAX); craft_bytes(c, NULL, 32)) \
    X(nested, "an array of arrays", "array of arrays", array(c, GGUF_ARRAY, 1)) \
    X(unknown_element, "an unknown type of element", "type 99", array(c, 99, 1)) \
    X(long_array, "an array beyond the end", "17 elements", array(c, GGUF_U32, 17)) \
    X(huge_array, "an array whose bytes wrap", "more than the rest", array(c, GGUF_U64, UINT64_MAX / 8 + 2)) \
    X(huge_texts, "an array of 2^31 texts", "more than the rest", array(c, GGUF_STRING, 1u << 31)) \
    X(alignment_u64, "alignment of another type", "u64 where u32", alignment(c, GGUF_U64, 32)) \
    X(alignment_0, "alignment 0", "general.alignment is 0", alignment(c, GGUF_U32, 0)) \
    X(alignment_48, "alignment 48", "general.alignment is 48", alignment(c, GGUF_U32, 48)) \
    X(alignment_1, "alignment 1", "general.alignment is 1,", alignment(c, GGUF_U32, 1)) \
    X(alignment_huge, "alignment 2^31", "not a power of two from", alignment(c, GGUF_U32, 1u << 31)) \
    X(long_name, "a name of 64 bytes", "at most 63", char name[65]; memset(name, 'n', 64); name[64] = 0; one_tensor(c, name, 1, (uint64_t[]){1}, 0, 0)) \
    X(zero_in_name, "a zero byte in a name", "NUL byte", one_tensor(c, "ab", 1, (uint64_t[]){1}, 0, 0); c->data[33] = 0) \
    X(five_dims, "5 dimensions", "5 dimensions", one_tensor(c, "t", 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0)) \
    X(no_dims, "no dimension", "0 dimensions", one_tensor(c, "t", 0, NULL, 0, 0)) \
    X(many_dims, "2^32 - 1 dimensions", "4294967295 dimensions", craft_header(c, 3, 1, 0); craft_text(c, "t"); craft_u32(c, UINT32_MAX); craft_bytes(c, NULL, 64)) \
    X(zero_dim, "a dimension of 0", "dimension 1 of tensor t is 0", one_tensor(c, "t", 2, (uint64_t[]){32, 0}, 0, 0)) \
    X(negative_dim, "a dimension of -1", "is 18446744073709551615", one_dim(c, UINT64_MAX, 0)) \
    X(product, "too many elements", "2^63", one_tensor(c, "t", 4, (uint64_t[]){1u << 31, 1u << 31, 4, 1}, 0, 0)) \
    X(product_that_wraps, "a product that wraps to 0", "2^63", one_tensor(c, "t", 2, (uint64_t[]){(uint64_t)1 << 62, 4}, 0, 0)) \
    X(bytes_that_wrap, "bytes that wrap", "more bytes than fit", one_dim(c, (uint64_t)1 << 62, 0)) \
    X(unknown_type, "an unknown type of tensor", "type 43", one_dim(c, 32, 43)) \
    X(negative_type, "a type of tensor of -1", "type -1", one_dim(c, 32, UINT32_MAX)) \
    X(withdrawn_type, "a withdrawn type", "type 4", one_dim(c, 32, 4)) \
    X(withdrawn_type_too, "another withdrawn type", "type 36", one_dim(c, 32, 36)) \
    X(part_of_a_block, "a part of a block", "whole blocks of 32 (Q4_0)", one_dim(c, 33, 2)) \
    X(wrong_offset, "a first offset that is not 0", "starts at 32", one_tensor(c, "t", 1, (uint64_t[]){1}, 0, 32)) \
    X(huge_offset, "an offset that wraps", "not at 0", one_tensor(c, "t", 1, (uint64_t[]){1}, 0, UINT64_MAX - 31)) \
    X(past_the_end, "a tensor beyond the end", "cut off", one_dim(c, 65, 0)) \
    X(same_name, "a name twice", "first is there twice", two_tensors(c, "first", 64)) \
    X(overlap, "tensors that overlap", "starts at 32 of the data, not at 64", two_tensors(c, "second", 32)) \
    X(misaligned, "a misaligned tensor", "starts at 36", two_tensors(c, "second", 36)) \
    X(gap, "a gap between tensors", "starts at 96", two_tensors(c, "second", 96))
#define MAKE(function, name, answer, ...) static void function(crafted *c) { __VA_ARGS__; }
#define ROW(function, name, answer, ...) {name, answer, function},
WRONG(MAKE)
static const craft_case wrong[] = {WRONG(ROW)};
/* clang-format on */

const craft_case *craft_get_wrong(size_t i) {
    return i < sizeof wrong / sizeof *wrong ? &wrong[i] : NULL;
}
