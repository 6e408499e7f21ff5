/* Tests of `assay lint` on the files of tests/kernels/lint, in which every line with a planted
 * mistake has a comment that says so. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "support.h"
#include "transcript.h"

SUITE(lint_suite);

static err e;
static const char *version = "3.2"; /* of the language that files are linted in */

/* Is there a line of output that has both texts? */
static bool has_line(const char *first, const char *second) {
    for (const char *p = command_get_output(); *p;) {
        size_t n = strcspn(p, "\n");
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)(n < 1000 ? n : 1000), p);
        if (strstr(line, first) && strstr(line, second))
            return true;
        p += n + (p[n] == '\n');
    }
    return false;
}

/* Unless the last run was of the same line: some files are asked for one rule after another. */
static bool run_lint(const char *line) {
    static char last[256];
    if (strcmp(last, line) != 0 && command_run(line) < 0)
        return false;
    snprintf(last, sizeof last, "%s", line);
    return true;
}

/* Lints a file of tests/kernels/lint. Every line with `sign` in it must have a message with `what`
 * ("error", "[rule]"), and no other line may. Returns how many lines are marked, -1 if not so. */
static int count_found(const char *file, const char *sign, const char *what) {
    char line[256], place[256], path[128];
    snprintf(line, sizeof line, "\"$A\" lint --language %s \"$H/tests/kernels/lint/%s\"", version,
             file);
    snprintf(path, sizeof path, "tests/kernels/lint/%s", file);
    char *text = os_read_file(support_get_path(path), NULL, &e);
    if (!text || !run_lint(line))
        return -1;
    int number = 1, count = 0;
    for (const char *p = text; *p && count >= 0; number++) {
        size_t n = strcspn(p, "\n");
        const char *found = strstr(p, sign);
        bool is_marked = found && found < p + n;
        snprintf(place, sizeof place, "%s:%d:", file, number);
        if (is_marked != has_line(place, what)) {
            fprintf(stderr, "line %d of %s\n", number, file);
            count = -1;
        } else {
            count += is_marked;
        }
        p += n + (p[n] == '\n');
    }
    free(text);
    return count;
}

#define ASSERT_FOUND(count, file, mark, what)                                                      \
    ASSERT_EQ_FMTm(command_get_output(), count, count_found(file, mark, what), "%d")

/* A file of tests/kernels/lint: which lines have which messages, and what else is said of it. */
typedef struct {
    const char *file;
    struct {
        int count;
        const char *sign, *what;
    } marked[12];
    const char *says[6], *unsaid;
} linted_file;

#define RULE(count, name)                                                                          \
    { count, "// rule: " name, "[" name "]" }
static const linted_file linted_files[] = {
    {"address_space.metal",
     {{8, "// mistake", "[address-space]"}},
     {"1 kernel, 1 compiles, 8 errors, 0 warnings, linted\n",
      "cannot pass pointer to address space 'device' as a pointer to address space 'thread'"},
     "__"},
    {"language.metal",
     {{4, "// mistake", " error: "}},
     {"'double' is not supported in Metal", "call to 'max' is ambiguous [language]",
      "program scope variable must reside in constant address space"},
     NULL},
    {"language_of_msl.metal",
     {RULE(2, "undefined"), RULE(3, "recursion"), RULE(4, "language"), RULE(1, "kernel-result"),
      RULE(2, "buffer-value"), RULE(1, "buffer-index"), RULE(1, "threadgroup-value"),
      RULE(1, "return-value"), RULE(2, "kernel-call")},
     {NULL},
     "is a keyword"},
    {"restrictions.metal",
     {{2, "// variable length", "error: variable length arrays are not supported in Metal"},
      {1, "// zero", "error: zero-length arrays are not permitted in C++"},
      {1, "// thread_local", "error: 'thread_local' is not supported in Metal"},
      {1, "// register", "error: Metal does not support the 'register' storage class specifier"},
      {1, "// static", "error: variables in function scope cannot be declared static"},
      {1, "// main", "error: non-qualified function cannot be called 'main'"},
      {1, "// long double", "error: 'long double' is not supported in Metal"},
      {1, "// threadgroup", "error: scratch parameter must have threadgroup attribute"},
      {1, "// label", "error: labeled statements are not supported in Metal"},
      {1, "// ulong", "error: no matching function for call to 'atomic_fetch_add_explicit'"},
      {1, "// suffix", "error: invalid suffix 'h' on integer constant"}},
     {"1 kernel, 1 compiles, 12 errors, 0 warnings, linted\n"},
     NULL},
    {"positions.metal",
     {{5, "// mistake", " error: "}},
     {"[position-shape]", "lane is uint2"},
     NULL},
    {"buffer_index.metal", /* unless it is gated */
     {{2, "// mistake", "[buffer-index]"}},
     {"y and z are both [[buffer(1)]]"},
     NULL},
    {"threadgroup_memory.metal",
     {{3, "// mistake", "[threadgroup-memory]"}},
     {"33024 bytes", "kernel fits\n", "kernel tile_of_64\n",
      "kernel tile_of_9000 does not compile\n", "kernel tile_of_halves\n", " 1 warning, linted\n"},
     NULL},
    {"guard.metal",
     {{2, "// mistake", "[missing-guard]"}, {2, "// mistake", " warning: "}},
     {"8 kernels, 8 compile, 0 errors, 2 warnings, linted\n"},
     NULL},
    {"fast_math.metal",
     {{5, "// mistake", "[fast-math]"}},
     {"0 errors, 5 warnings, linted\n"},
     NULL},
    {"reserved.metal",
     {{1, "// a warning", " warning: "}, {2, "// mistake", " error: "}},
     {"'thread' is a keyword of MSL and cannot be a name [reserved-name]"},
     NULL},
    {"environment.metal",
     {{7, "// mistake", "error: "}},
     {"'__ASSAY__' asks which harness runs it", "'__clang_major__' asks which compiler reads it",
      "environment.h:2:8: error: '__NVPTX__' asks which processor runs it",
      "environment.h:5:8: error: '__x86_64__' asks which processor runs it",
      "2 kernels, 2 compile, 10 errors, 0 warnings, linted\n"},
     NULL},
    {"unsupported.metal",
     {{0, "// mistake", "error: "}},
     {"is [[texture]], which is not supported", "kernel samples is not supported\n",
      "kernel multiplies uses tensors, which are of Metal 4: --language 4.0",
      "3 kernels, 1 compiles, 0 errors, 2 warnings, linted\n"},
     NULL},
    {"broken.metal",
     {{2, "// mistake", "[compile]"}},
     {"kernel fine\n", "kernel broken does not compile\n", "kernel generic_int\n",
      "kernel generic_float does not compile\n",
      "4 kernels, 2 compile, 2 errors, 0 warnings, not linted: it does not compile\n"},
     NULL},
    {"right.metal",
     {{0, "// mistake", "error: "}},
     {"8 kernels, 8 compile, 0 errors, 0 warnings, linted\n", "kernel generic_half\n"},
     NULL},
};

TEST the_mistakes_of_a_file_are_found_at_their_lines(const linted_file *f) {
    for (size_t i = 0; i < 12 && f->marked[i].sign; i++)
        ASSERT_FOUND(f->marked[i].count, f->file, f->marked[i].sign, f->marked[i].what);
    for (size_t i = 0; i < 6 && f->says[i]; i++)
        ASSERT_SAYS(f->says[i]);
    ASSERTm(command_get_output(), !f->unsaid || !command_says(f->unsaid));
    ASSERTm(command_get_output(), !has_line("error: ", "threadgroup-value"));
    PASS();
}

/* In the words of Apple's compiler, up to the version that takes it. */
TEST what_apples_compiler_refuses_is_found_in_its_words(const char *language) {
    static const struct {
        const char *sign, *words;
        int count;
        const char *until;
    } refused[] = {
        {"// pointer", "error: pointer type must have explicit address space qualifier", 3, "9"},
        {"// reference", "error: reference type must have explicit address space qualifier", 4,
         "9"},
        {"// noexcept", "error: 'noexcept' is not supported in Metal", 1, "9"},
        {"// long long", "error: 'long long' is not supported in Metal", 1, "9"},
        {"// template", "error: use of class template 'pair_of' requires template arguments", 1,
         "4.0"},
        {"// lambda", "error: lambda expressions are not supported in Metal", 1, "3.2"},
        {"// fence", "error: use of undeclared identifier 'atomic_thread_fence'", 1, "3.2"},
        {"// bfloat", "error: unknown type name 'bfloat'", 1, "3.1"},
    };
    int errors = 0;
    version = language;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        bool is_refused = strcmp(language, refused[i].until) < 0;
        if (is_refused)
            ASSERT_FOUND(refused[i].count, "refused.metal", refused[i].sign, refused[i].words);
        errors += is_refused ? refused[i].count : 0;
    }
    version = "3.2";
    char total[32];
    snprintf(total, sizeof total, " %d errors, 0 warnings", errors);
    ASSERT_SAYS(total);
    PASS();
}

SUITE(lint_suite) {
    for (size_t i = 0; i < sizeof linted_files / sizeof *linted_files; i++)
        RUN_TESTp(the_mistakes_of_a_file_are_found_at_their_lines, &linted_files[i]);
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.0");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.1");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.2");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "4.0");
    transcript_run("lint");
}
