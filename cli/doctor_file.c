#include "doctor_file.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/tar.h"

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
    bool ok =
        os_write_file(plain, data, bytes, e) && os_run_for(argv, GZIP_SECONDS, &output, &status, e);
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
