#include "toolchain.h"

#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Modules of older ones have pointers with types, which device/ir.h does not read. Apple counts otherwise. */
#if defined(__APPLE__)
enum { OLDEST_CLANG = 15 };
static const char advice[] = "install one: xcode-select --install";
#else
enum { OLDEST_CLANG = 16 };
static const char advice[] = "install one: apt-get install clang-19 (or any from 16)";
#endif
enum { NEWEST_CLANG = 99 }; /* of the names clang-NN that are looked for */
enum { VERSION_SECONDS = 10, PROBE_SECONDS = 60 };

/* The first line of `path --version` and the number in it; 0 if it is not clang. */
static int ask_version(const char *path, char *line, size_t size) {
    const char *argv[] = {path, "--version", NULL};
    const child_limits limits = {.seconds = VERSION_SECONDS, .leads_group = true};
    char *output = NULL;
    child_end end;
    int number = 0;
    line[0] = 0;
    if (child_run_within(argv, &limits, &output, &end, NULL) && end.status == 0 && output) {
        snprintf(line, size, "%.*s", (int)strcspn(output, "\n"), output);
        const char *at = strstr(line, "clang version ");
        if (at)
            number = atoi(at + strlen("clang version "));
    }
    free(output);
    return number;
}

/* ASSAY_CLANG as a path or a program of PATH; *given is false when it is not set. */
static bool find_given(char *path, size_t size, bool *given, err *e) {
    const char *name = getenv("ASSAY_CLANG");
    *given = name && *name;
    if (!*given || os_find_program(name, path, size))
        return true;
    return err_set(e, EXIT_CANNOT, "ASSAY_CLANG is %.120s, which is not a program; unset it or %s",
                   name, advice);
}

/* The newest clang along PATH, whatever its age; its version, or 0. */
static int ask_newest(char *path, size_t size, char *line, size_t line_size) {
    char plain[4096], plain_line[256], numbered[4096], name[32];
    int best = 0;
    if (os_find_program("clang", plain, sizeof plain))
        best = ask_version(plain, plain_line, sizeof plain_line);
    for (int n = NEWEST_CLANG; n > best; n--) {
        snprintf(name, sizeof name, "clang-%d", n);
        if (!os_find_program(name, numbered, sizeof numbered))
            continue;
        int version = ask_version(numbered, line, line_size);
        if (version > best)
            return path_print(path, size, NULL, "%s", numbered) ? version : 0;
    }
    if (!best)
        return 0;
    snprintf(line, line_size, "%s", plain_line);
    return path_print(path, size, NULL, "%s", plain) ? best : 0;
}

/* An answer is kept in the environment, for this process and for those that it starts: asking
 * takes longer than many a launch. It follows the question, the values of ASSAY_CLANG and PATH. */
static const char answer_variable[] = "ASSAY_CLANG_ANSWER";
enum { LONGEST_QUESTION = 8192 };

static bool make_question(char text[LONGEST_QUESTION]) {
    const char *given = getenv("ASSAY_CLANG"), *path = getenv("PATH");
    return snprintf(text, LONGEST_QUESTION, "%s\n%s\n", given ? given : "", path ? path : "") <
           LONGEST_QUESTION;
}

static int recall(char *path, size_t size, char *line, size_t line_size) {
    char asked[LONGEST_QUESTION];
    const char *answer = getenv(answer_variable);
    if (!answer || !make_question(asked) || strncmp(answer, asked, strlen(asked)) != 0)
        return 0;
    char *rest;
    long number = strtol(answer + strlen(asked), &rest, 10);
    size_t length = strcspn(rest, "\n");
    if (number <= 0 || *rest != ' ' || !rest[length] || length > size)
        return 0;
    snprintf(path, size, "%.*s", (int)length - 1, rest + 1);
    snprintf(line, line_size, "%s", rest + length + 1);
    return access(path, X_OK) == 0 ? (int)number : 0;
}

static void keep(int number, const char *path, const char *line) {
    char asked[LONGEST_QUESTION], answer[LONGEST_QUESTION + 5000];
    if (make_question(asked) && snprintf(answer, sizeof answer, "%s%d %s\n%s", asked, number, path,
                                         line) < (int)sizeof answer)
        setenv(answer_variable, answer, 1);
}

/* The version of ASSAY_CLANG, where that is given, or of the newest clang; 0 if there is none. */
static int find_clang(bool given, char *path, size_t size, char *line, size_t line_size) {
    int number = recall(path, size, line, line_size);
    if (number)
        return number;
    number = given ? ask_version(path, line, line_size) : ask_newest(path, size, line, line_size);
    if (number)
        keep(number, path, line);
    return number;
}

bool toolchain_find_clang(char *path, size_t size, char *version, size_t version_size, err *e) {
    char line[256];
    bool given;
    if (!find_given(path, size, &given, e))
        return false;
    int number = find_clang(given, path, size, line, sizeof line);
    if (given && number == 0)
        return err_set(e, EXIT_CANNOT,
                       "ASSAY_CLANG is %.100s, which does not say within %d s that it is clang; "
                       "unset it or %s",
                       path, VERSION_SECONDS, advice);
    if (number == 0)
        return err_set(e, EXIT_CANNOT, "no clang found; %s", advice);
    if (number < OLDEST_CLANG)
        return err_set(e, EXIT_CANNOT, "%.100s is clang %d, but at least %d is needed; %s", path,
                       number, OLDEST_CLANG, advice);
    if (version)
        snprintf(version, version_size, "%s", line);
    return true;
}

static bool is_empty(const char *path) {
    struct stat s;
    return stat(path, &s) != 0 || (S_ISREG(s.st_mode) && s.st_size == 0);
}

bool toolchain_has_worked(const char *clang, const char *made, int status, const char *messages,
                          err *e) {
    static const int disk_errors[] = {ENOSPC, EDQUOT, EROFS, EIO};
    const char *said = messages ? messages : "";
    if (status == 0)
        return !made || !is_empty(made) ||
               err_set(e, EXIT_CANNOT, "%.120s said that it was done, and wrote nothing", clang) ||
               err_blame_machine(e);
    for (size_t i = 0; i < sizeof disk_errors / sizeof *disk_errors; i++)
        if (strstr(said, strerror(disk_errors[i])))
            return os_refuse_write(made ? made : os_find_tmp(), disk_errors[i], e) ||
                   err_blame_machine(e);
    if (strstr(said, "error:") && !strstr(said, "PLEASE submit a bug report"))
        return true;
    const char *const probe[] = {clang, "-x", "c", "-c", "/dev/null", "-o", "/dev/null", NULL};
    int own = 1;
    return (child_run_for(probe, PROBE_SECONDS, NULL, &own, e) &&
            (own == 0 ||
             err_set(e, EXIT_CANNOT, "%.160s cannot compile even an empty file", clang))) ||
           err_blame_machine(e);
}

bool toolchain_find_preprocessor(char *path, size_t size, err *e) {
    char line[256];
    bool given;
    if (!find_given(path, size, &given, e))
        return false;
    if (given || find_clang(given, path, size, line, sizeof line))
        return true;
    static const char *const others[] = {"cc", "gcc", "c++", NULL};
    for (size_t i = 0; others[i]; i++)
        if (os_find_program(others[i], path, size))
            return true;
    return err_set(e, EXIT_CANNOT, "no compiler found to preprocess with; %s", advice);
}
