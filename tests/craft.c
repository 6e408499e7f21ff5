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

#define WRONG(function, ...)                                                                       \
    static void function(crafted *c) {                                                             \
        __VA_ARGS__;                                                                               \
    }
WRONG(empty, c->bytes = 0)
WRONG(bad_magic, craft_header(c, 3, 0, 0); c->data[3] = 'X')
WRONG(version_0, craft_header(c, 0, 0, 0))
WRONG(version_1, craft_header(c, 1, 0, 0))
WRONG(version_4, craft_header(c, 4, 0, 0))
WRONG(swapped, craft_header(c, 0x03000000, 0, 0))
WRONG(negative_tensors, craft_header(c, 3, UINT64_MAX, 0); craft_bytes(c, NULL, 512))
WRONG(absurd_tensors, craft_header(c, 3, UINT64_MAX / 24, 0); craft_bytes(c, NULL, 512))
WRONG(negative_values, craft_header(c, 3, 0, UINT64_MAX); craft_bytes(c, NULL, 512))
WRONG(absurd_values, craft_header(c, 3, 0, 1u << 30); craft_bytes(c, NULL, 512))
WRONG(long_key, text_longer(c, 1000))
WRONG(huge_key, text_longer(c, UINT64_MAX))
WRONG(huge_key_that_wraps, text_longer(c, UINT64_MAX - 31))
WRONG(empty_key, craft_header(c, 3, 0, 1); craft_key(c, "", GGUF_U32); craft_u32(c, 1))
WRONG(same_key, craft_header(c, 3, 0, 2); craft_key(c, "k", GGUF_U32); craft_u32(c, 1);
      craft_key(c, "k", GGUF_U32); craft_u32(c, 1))
WRONG(unknown_value, craft_header(c, 3, 0, 1); craft_key(c, "k", 13); craft_bytes(c, NULL, 32))
WRONG(negative_value, craft_header(c, 3, 0, 1); craft_key(c, "k", UINT32_MAX);
      craft_bytes(c, NULL, 32))
WRONG(nested, array(c, GGUF_ARRAY, 1))
WRONG(unknown_element, array(c, 99, 1))
WRONG(long_array, array(c, GGUF_U32, 17))
WRONG(huge_array, array(c, GGUF_U64, UINT64_MAX / 8 + 2))
WRONG(huge_texts, array(c, GGUF_STRING, 1u << 31))
WRONG(alignment_u64, alignment(c, GGUF_U64, 32))
WRONG(alignment_0, alignment(c, GGUF_U32, 0))
WRONG(alignment_48, alignment(c, GGUF_U32, 48))
WRONG(alignment_1, alignment(c, GGUF_U32, 1))
WRONG(alignment_huge, alignment(c, GGUF_U32, 1u << 31))
WRONG(long_name, char name[65]; memset(name, 'n', 64); name[64] = 0;
      one_tensor(c, name, 1, (uint64_t[]){1}, 0, 0))
WRONG(zero_in_name, one_tensor(c, "ab", 1, (uint64_t[]){1}, 0, 0); c->data[33] = 0)
WRONG(five_dims, one_tensor(c, "t", 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0))
WRONG(no_dims, one_tensor(c, "t", 0, NULL, 0, 0))
WRONG(many_dims, craft_header(c, 3, 1, 0); craft_text(c, "t"); craft_u32(c, UINT32_MAX);
      craft_bytes(c, NULL, 64))
WRONG(zero_dim, one_tensor(c, "t", 2, (uint64_t[]){32, 0}, 0, 0))
WRONG(negative_dim, one_dim(c, UINT64_MAX, 0))
WRONG(product, one_tensor(c, "t", 4, (uint64_t[]){1u << 31, 1u << 31, 4, 1}, 0, 0))
WRONG(product_that_wraps, one_tensor(c, "t", 2, (uint64_t[]){(uint64_t)1 << 62, 4}, 0, 0))
WRONG(bytes_that_wrap, one_dim(c, (uint64_t)1 << 62, 0))
WRONG(unknown_type, one_dim(c, 32, 43))
WRONG(negative_type, one_dim(c, 32, UINT32_MAX))
WRONG(withdrawn_type, one_dim(c, 32, 4))
WRONG(withdrawn_type_too, one_dim(c, 32, 36))
WRONG(part_of_a_block, one_dim(c, 33, 2))
WRONG(wrong_offset, one_tensor(c, "t", 1, (uint64_t[]){1}, 0, 32))
WRONG(huge_offset, one_tensor(c, "t", 1, (uint64_t[]){1}, 0, UINT64_MAX - 31))
WRONG(past_the_end, one_dim(c, 65, 0))

static void two_tensors(crafted *c, const char *second, uint64_t offset) {
    const uint64_t dim[] = {9};
    craft_header(c, 3, 2, 0);
    craft_tensor(c, "first", 1, dim, 0, 0);
    craft_tensor(c, second, 1, dim, 0, offset);
    craft_pad(c, 32, 256);
}
WRONG(same_name, two_tensors(c, "first", 64))
WRONG(overlap, two_tensors(c, "second", 32))
WRONG(misaligned, two_tensors(c, "second", 36))
WRONG(gap, two_tensors(c, "second", 96))

static const craft_case wrong[] = {
    {"an empty file", "ends", empty},
    {"a wrong magic", "not a GGUF file", bad_magic},
    {"version 0", "version 0", version_0},
    {"version 1", "version 1", version_1},
    {"version 4", "version 4", version_4},
    {"a byte-swapped version", "big-endian", swapped},
    {"-1 tensors", "18446744073709551615 tensors", negative_tensors},
    {"more tensors than bytes", "tensors, more than", absurd_tensors},
    {"-1 values", "18446744073709551615 metadata", negative_values},
    {"more values than bytes", "metadata values, more", absurd_values},
    {"a key beyond the end", "the key of metadata 1", long_key},
    {"a key of 2^64 - 1 bytes", "the key of metadata 1", huge_key},
    {"a key whose end wraps", "the key of metadata 1", huge_key_that_wraps},
    {"an empty key", "is empty", empty_key},
    {"a key twice", "k is there twice", same_key},
    {"an unknown type of value", "type 13", unknown_value},
    {"type -1", "unknown type", negative_value},
    {"an array of arrays", "array of arrays", nested},
    {"an unknown type of element", "type 99", unknown_element},
    {"an array beyond the end", "17 elements", long_array},
    {"an array whose bytes wrap", "more than the rest", huge_array},
    {"an array of 2^31 texts", "more than the rest", huge_texts},
    {"alignment of another type", "u64 where u32", alignment_u64},
    {"alignment 0", "general.alignment is 0", alignment_0},
    {"alignment 48", "general.alignment is 48", alignment_48},
    {"alignment 1", "general.alignment is 1,", alignment_1},
    {"alignment 2^31", "not a power of two from", alignment_huge},
    {"a name of 64 bytes", "at most 63", long_name},
    {"a zero byte in a name", "NUL byte", zero_in_name},
    {"5 dimensions", "5 dimensions", five_dims},
    {"no dimension", "0 dimensions", no_dims},
    {"2^32 - 1 dimensions", "4294967295 dimensions", many_dims},
    {"a dimension of 0", "dimension 1 of tensor t is 0", zero_dim},
    {"a dimension of -1", "is 18446744073709551615", negative_dim},
    {"too many elements", "2^63", product},
    {"a product that wraps to 0", "2^63", product_that_wraps},
    {"bytes that wrap", "more bytes than fit", bytes_that_wrap},
    {"an unknown type of tensor", "type 43", unknown_type},
    {"a type of tensor of -1", "type -1", negative_type},
    {"a withdrawn type", "type 4", withdrawn_type},
    {"another withdrawn type", "type 36", withdrawn_type_too},
    {"a part of a block", "whole blocks of 32 (Q4_0)", part_of_a_block},
    {"a first offset that is not 0", "starts at 32", wrong_offset},
    {"an offset that wraps", "not at 0", huge_offset},
    {"a tensor beyond the end", "cut off", past_the_end},
    {"a name twice", "first is there twice", same_name},
    {"tensors that overlap", "starts at 32 of the data, not at 64", overlap},
    {"a misaligned tensor", "starts at 36", misaligned},
    {"a gap between tensors", "starts at 96", gap},
};

const craft_case *craft_get_wrong(size_t i) {
    return i < sizeof wrong / sizeof *wrong ? &wrong[i] : NULL;
}
