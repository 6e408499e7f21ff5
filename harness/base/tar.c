#include "tar.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { BLOCK = 512 };

/* A header of ustar (POSIX pax, "ustar Interchange Format"): numbers are octal text. */
typedef struct {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
} header;

static void pad(FILE *out, size_t bytes) {
    static const char zeros[BLOCK];
    fwrite(zeros, 1, (BLOCK - bytes % BLOCK) % BLOCK, out);
}

void tar_add(FILE *out, const char *name, const void *data, size_t bytes, uint64_t seconds) {
    header h;
    _Static_assert(sizeof h == BLOCK, "the fields fill one block");
    assert(strlen(name) < sizeof h.name && bytes < (size_t)1 << 33);
    memset(&h, 0, sizeof h);
    strcpy(h.name, name);
    strcpy(h.mode, "0000644");
    strcpy(h.uid, "0000000");
    strcpy(h.gid, "0000000");
    snprintf(h.size, sizeof h.size, "%011zo", bytes);
    snprintf(h.time, sizeof h.time, "%011" PRIo64, seconds & ((UINT64_C(1) << 33) - 1));
    memset(h.checksum, ' ', sizeof h.checksum); /* counts as blanks in itself */
    h.type = '0';
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    fwrite(&h, sizeof h, 1, out);
    fwrite(data, 1, bytes, out);
    pad(out, bytes);
}

void tar_end(FILE *out) {
    static const char zeros[2 * BLOCK];
    fwrite(zeros, sizeof zeros, 1, out);
}
