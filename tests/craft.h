/* craft: GGUF files made by hand in memory, valid ones and one for every way to be wrong. The tests
 * of the reader use them, and the fuzzer starts from them. */
#ifndef ASSAY_TESTS_CRAFT_H
#define ASSAY_TESTS_CRAFT_H

#include <stddef.h>
#include <stdint.h>

#include "runner/gguf/gguf.h"

typedef struct {
    uint8_t data[8192];
    size_t bytes;
} crafted;

/* The pieces a file is put together from. */
void craft_bytes(crafted *c, const void *data, size_t bytes);
void craft_u32(crafted *c, uint32_t value);
void craft_u64(crafted *c, uint64_t value);
void craft_text(crafted *c, const char *text);
void craft_header(crafted *c, uint32_t version, uint64_t tensors, uint64_t values);
void craft_key(crafted *c, const char *key, uint32_t type);
void craft_tensor(crafted *c, const char *name, uint32_t dims, const uint64_t *dim, uint32_t type,
                  uint64_t offset);
void craft_pad(crafted *c, size_t alignment,
               size_t more); /* pads to a multiple, then adds the bytes */

/* A right file: every type of value, arrays of all of them, three tensors. */
void craft_valid(crafted *c, uint32_t version);

typedef struct {
    const char *name;   /* what is wrong with it */
    const char *answer; /* what the message must say */
    void (*make)(crafted *c);
} craft_case;

const craft_case *craft_get_wrong(size_t i); /* NULL: no more */

#endif
