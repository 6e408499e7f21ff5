#include "doctor_file.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

enum { MOST_BYTES = 16 << 20, GZIP_SECONDS = 120, RULES = 4 };

/* Private text ----------------------------------------------------------------------------------- */

typedef struct {
    const char *from, *to;
    bool in_path; /* only as a whole part of a path */
} rule;

static bool ends_word(char c) {
    return !isalnum((unsigned char)c) && c != '_' && c != '-';
}

static const rule *find_rule(const rule *rules, const char *text, const char *at) {
    for (size_t i = 0; i < RULES; i++) {
        size_t n = rules[i].from ? strlen(rules[i].from) : 0;
        if (n > 1 && strncmp(at, rules[i].from, n) == 0 && ends_word(at[n]) &&
            (!rules[i].in_path || (at > text && at[-1] == '/')))
            return &rules[i];
    }
    return NULL;
}

/* The caller frees it. */
static char *redact(const char *text, size_t *bytes, const char *folder) {
    const struct passwd *user = getpwuid(getuid());
    const rule rules[RULES] = {{folder, "TMP", false},
                               {getenv("HOME"), "~", false},
                               {user ? user->pw_dir : NULL, "~", false},
                               {user ? user->pw_name : NULL, "USER", true}};
    char *out = NULL;
    size_t used = 0;
    FILE *to = open_memstream(&out, &used);
    assert(to);
    for (const char *p = text, *end = text + *bytes; p < end;) {
        const rule *r = find_rule(rules, text, p);
        if (r)
            fputs(r->to, to);
        else
            fputc(*p, to);
        p += r ? strlen(r->from) : 1;
    }
    fclose(to);
    *bytes = used;
    return out;
}

/* An archive in the ustar format, which every tar reads. Nothing about the machine goes in: files belong to
 * user and group 0 without names. */

enum { BLOCK = 512 };

/* A header (POSIX pax, "ustar Interchange Format"): numbers are octal text. */
typedef struct {
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
} tar_header;

static void tar_pad(FILE *out, size_t bytes) {
    static const char zeros[BLOCK];
    fwrite(zeros, 1, (BLOCK - bytes % BLOCK) % BLOCK, out);
}

static void tar_add(FILE *out, const char *name, const void *data, size_t bytes, uint64_t seconds) {
    tar_header h;
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
    tar_pad(out, bytes);
}

static void tar_end(FILE *out) {
    static const char zeros[2 * BLOCK];
    fwrite(zeros, sizeof zeros, 1, out);
}

/* The archive ------------------------------------------------------------------------------------ */

static int is_plain(const struct dirent *d) {
    return d->d_name[0] != '.';
}

static void add_file(FILE *out, const char *path, const char *name, const char *folder) {
    char inside[100];
    err why;
    size_t bytes = 0;
    char *raw = os_read_plain(path, MOST_BYTES, &bytes, &why);
    if (!raw)
        bytes = strlen(why.text);
    char *text = redact(raw ? raw : why.text, &bytes, folder);
    snprintf(inside, sizeof inside, "assay-doctor/%.80s", name);
    tar_add(out, inside, text, bytes, (uint64_t)time(NULL));
    free(text);
    free(raw);
}

/* below: the folders in it, and their files as reports; else its files. */
static void add_folder(FILE *out, const char *folder, const char *root, bool below,
                       const char *prefix) {
    struct dirent **entries;
    int n = scandir(folder, &entries, is_plain, alphasort);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX], name[PATH_MAX];
        err ignored;
        if (path_print(path, sizeof path, &ignored, "%s/%s", folder, entries[i]->d_name) &&
            path_print(name, sizeof name, &ignored, "%s%s", prefix, entries[i]->d_name)) {
            bool is_folder = os_is_folder(path);
            if (is_folder && below) {
                snprintf(name, sizeof name, "%s%.40s-", prefix, entries[i]->d_name);
                add_folder(out, path, root, false, name);
            } else if (!is_folder && !below)
                add_file(out, path, name, root);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

bool doctor_pack(const char *folder, const char *path, err *e) {
    char tmp[PATH_MAX], plain[PATH_MAX], packed[PATH_MAX], *data = NULL, *output = NULL;
    size_t bytes = 0;
    if (!path_print(tmp, sizeof tmp, e, "%s/tmp", folder) ||
        !path_print(plain, sizeof plain, e, "%s/tmp/all.tar", folder) ||
        !path_print(packed, sizeof packed, e, "%s/tmp/all.tar.gz", folder))
        return false;
    FILE *out = open_memstream(&data, &bytes);
    assert(out);
    add_folder(out, folder, folder, false, "");
    add_folder(out, tmp, folder, true, "reports/");
    tar_end(out);
    fclose(out);
    const char *const argv[] = {"gzip", "-n", "-9", plain, NULL};
    int status = 0;
    bool ok = os_write_file(plain, data, bytes, e) &&
              child_run_for(argv, GZIP_SECONDS, &output, &status, e);
    if (ok && status != 0) {
        ok = err_set(e, EXIT_CANNOT, "gzip failed with status %d", status);
        err_set_detail(e, output);
    }
    free(data);
    free(output);
    data = ok ? os_read_file(packed, &bytes, e) : NULL;
    ok = data && os_write_file(path, data, bytes, e);
    free(data);
    return ok;
}
