/* Kernel texts that try to reach the host (tests/attack). The first lines of each say what must come
 * of it: after `fast:` and `checked:` the exit status and texts of which one must be said. No file may
 * be made, and nothing of another file may be printed. */
#include <dirent.h>
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(attack_suite);

enum { LEAST_TEXTS = 25 };

/* The rest of the line that begins with `// key:`; "" if there is none. */
static void read_line(const char *text, const char *key, char *out, size_t size) {
    char start[32];
    snprintf(start, sizeof start, "\n// %s: ", key);
    const char *p = strstr(text, start);
    out[0] = 0;
    if (p)
        snprintf(out, size, "%.*s", (int)strcspn(p + strlen(start), "\n"), p + strlen(start));
}

/* "1 one|other": the status, or one of the texts. */
static bool is_expected(const char *wanted, int status) {
    char rest[400];
    snprintf(rest, sizeof rest, "%s", wanted);
    int code = 0;
    for (char *part = strtok(rest, "|"); part; part = strtok(NULL, "|")) {
        if (part[0] >= '0' && part[0] <= '9') {
            code = part[0] - '0';
            part += 1 + (part[1] == ' ');
        }
        if (status == code && command_says(part))
            return true;
    }
    return false;
}

#ifdef __aarch64__
#define ON_HOST "-D ON_AARCH64 "
#else
#define ON_HOST ""
#endif

static enum greatest_test_res attack(const char *name, const char *options, const char *wanted) {
    char line[1200], message[4200];
    snprintf(
        line, sizeof line,
        "rm -f \"$T.witness\"; echo 'TEXT_OF_ANOTHER_FILE 4711' > \"$T.secret\"; \"$A\" launch "
        "\"$H/tests/attack/%s\" call --device soft --arg 0=f32[4] --grid 1 --group 4 "
        "-D \"WITNESS=\\\"$T.witness\\\"\" -D \"SECRET=\\\"$T.secret\\\"\" " ON_HOST "%s; s=$?; "
        "rm -f \"$T.secret\"; test ! -e \"$T.witness\" || exit 99; exit $s",
        name, options);
    int status = command_run(line);
    snprintf(message, sizeof message, "%s %s: exit %d, expected %s:\n%.3000s", name, options,
             status, wanted, command_get_output());
    ASSERTm(message, is_expected(wanted, status));
    ASSERTm(message, !command_says("TEXT_OF") && !command_says("4711") && !command_says("root:") &&
                         !command_says("84698884"));
    PASS();
}

TEST a_text_reaches_nothing(const char *name) {
    char path[300], fast[300], checked[300], more[100], options[120];
    snprintf(path, sizeof path, "tests/attack/%s", name);
    char *text = os_read_file(support_get_path(path), NULL, NULL);
    ASSERT(text);
    read_line(text, "fast", fast, sizeof fast);
    read_line(text, "checked", checked, sizeof checked);
    read_line(text, "more", more, sizeof more);
    free(text);
    ASSERTm(name, fast[0]);
    CHECK_CALL(attack(name, more, fast));
    if (!checked[0]) /* checked mode sees the first access, long before anything is reached */
        PASS();
    snprintf(options, sizeof options, "%s --validate", more);
    CHECK_CALL(attack(name, options, checked));
    PASS();
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

TEST there_are_texts(size_t count) {
    ASSERT(count >= LEAST_TEXTS);
    PASS();
}

SUITE(attack_suite) {
    char *names[256];
    size_t count = 0;
    DIR *folder = opendir(support_get_path("tests/attack"));
    for (struct dirent *d; folder && (d = readdir(folder)) && count < 256;)
        if (strstr(d->d_name, ".metal"))
            names[count++] = strdup(d->d_name);
    if (folder)
        closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    RUN_TESTp(there_are_texts, count);
    for (size_t i = 0; i < count; i++) {
        RUN_TESTp(a_text_reaches_nothing, names[i]);
        free(names[i]);
    }
}
