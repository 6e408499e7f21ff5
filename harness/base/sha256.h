/* sha256: content hashes for the pipeline cache and for naming kernel sources in results. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
} sha256;

void sha256_start(sha256 *h);
void sha256_add(sha256 *h, const void *data, size_t bytes);
void sha256_finish(sha256 *h, char hex[65]);
void sha256_of(const void *data, size_t bytes, char hex[65]);
