/* sha256: FIPS 180-4, straightforward. */
#include "sha256.h"

#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static void add_block(sha256 *h, const uint8_t *p) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    const uint32_t *s = h->state;
    uint32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5], s6 = s[6], s7 = s[7];
    for (int i = 0; i < 64; i++) {
        uint32_t choose = (s4 & s5) ^ (~s4 & s6);
        uint32_t majority = (s0 & s1) ^ (s0 & s2) ^ (s1 & s2);
        uint32_t t1 = s7 + (rotate(s4, 6) ^ rotate(s4, 11) ^ rotate(s4, 25)) + choose +
                      round_constant[i] + w[i];
        uint32_t t2 = (rotate(s0, 2) ^ rotate(s0, 13) ^ rotate(s0, 22)) + majority;
        s7 = s6, s6 = s5, s5 = s4, s4 = s3 + t1;
        s3 = s2, s2 = s1, s1 = s0, s0 = t1 + t2;
    }
    const uint32_t after[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    for (int i = 0; i < 8; i++)
        h->state[i] += after[i];
}

void sha256_start(sha256 *h) {
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, initial, sizeof initial);
    h->bytes = 0;
}

void sha256_add(sha256 *h, const void *data, size_t bytes) {
    const uint8_t *p = data;
    while (bytes > 0) {
        size_t used = h->bytes % 64, n = 64 - used;
        if (n > bytes)
            n = bytes;
        memcpy(h->block + used, p, n);
        h->bytes += n;
        p += n;
        bytes -= n;
        if (used + n == 64)
            add_block(h, h->block);
    }
}

void sha256_finish(sha256 *h, char hex[65]) {
    uint64_t bits = h->bytes * 8;
    uint8_t tail[8];
    for (int i = 0; i < 8; i++)
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, "\x80", 1);
    while (h->bytes % 64 != 56)
        sha256_add(h, "", 1);
    sha256_add(h, tail, 8);
    for (int i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

void sha256_of(const void *data, size_t bytes, char hex[65]) {
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, data, bytes);
    sha256_finish(&h, hex);
}
