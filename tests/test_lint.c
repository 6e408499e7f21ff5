/* Tests of `assay lint` on the files of tests/kernels/lint, in which every line with a planted
 * mistake has a comment that says so. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "support.h"

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

TEST address_space_mistakes_are_found_at_their_lines(void) {
    ASSERT_FOUND(8, "address_space.metal", "// mistake", "[address-space]");
    ASSERT_SAYS("1 kernel, 1 compiles, 8 errors, 0 warnings, linted\n");
    ASSERT_SAYS("cannot pass pointer to address space 'device' as a pointer to address space "
                "'thread'");
    ASSERTm(command_get_output(), !command_says("__"));
    PASS();
}

TEST mistakes_that_only_msl_knows_are_found(void) {
    ASSERT_FOUND(4, "language.metal", "// mistake", " error: ");
    ASSERT_SAYS("'double' is not supported in Metal");
    ASSERT_SAYS("call to 'max' is ambiguous [language]");
    ASSERT_SAYS("program scope variable must reside in constant address space");
    PASS();
}

TEST cpp_that_is_not_msl_is_found(void) {
    static const struct {
        const char *rule;
        int count;
    } rules[] = {{"undefined", 2},         {"recursion", 3},    {"language", 4},
                 {"kernel-result", 1},     {"buffer-value", 2}, {"buffer-index", 1},
                 {"threadgroup-value", 1}, {"return-value", 1}, {"kernel-call", 2}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char sign[64], what[64];
        snprintf(sign, sizeof sign, "// rule: %s", rules[i].rule);
        snprintf(what, sizeof what, "[%s]", rules[i].rule);
        ASSERT_FOUND(rules[i].count, "language_of_msl.metal", sign, what);
    }
    ASSERTm(command_get_output(), !command_says("is a keyword"));
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

TEST what_the_strict_parse_refuses_is_an_error_at_its_line(void) {
    static const struct {
        const char *sign, *words;
        int count;
    } refused[] = {
        {"// variable length", "error: variable length arrays are not supported in Metal", 2},
        {"// zero", "error: zero-length arrays are not permitted in C++", 1},
        {"// thread_local", "error: 'thread_local' is not supported in Metal", 1},
        {"// register", "error: Metal does not support the 'register' storage class specifier", 1},
        {"// static", "error: variables in function scope cannot be declared static", 1},
        {"// main", "error: non-qualified function cannot be called 'main'", 1},
        {"// long double", "error: 'long double' is not supported in Metal", 1},
        {"// threadgroup", "error: scratch parameter must have threadgroup attribute", 1},
        {"// label", "error: labeled statements are not supported in Metal", 1},
        {"// ulong", "error: no matching function for call to 'atomic_fetch_add_explicit'", 1},
        {"// suffix", "error: invalid suffix 'h' on integer constant", 1},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ASSERT_FOUND(refused[i].count, "restrictions.metal", refused[i].sign, refused[i].words);
    ASSERT_SAYS("1 kernel, 1 compiles, 12 errors, 0 warnings, linted\n");
    PASS();
}

TEST positions_of_mixed_shapes_and_wrong_types_are_found(void) {
    ASSERT_FOUND(5, "positions.metal", "// mistake", " error: ");
    ASSERT_SAYS("[position-shape]");
    ASSERT_SAYS("lane is uint2");
    PASS();
}

TEST an_index_used_twice_is_found_unless_it_is_gated(void) {
    ASSERT_FOUND(2, "buffer_index.metal", "// mistake", "[buffer-index]");
    ASSERT_SAYS("y and z are both [[buffer(1)]]");
    PASS();
}

TEST too_much_threadgroup_memory_is_found(void) {
    ASSERT_FOUND(3, "threadgroup_memory.metal", "// mistake", "[threadgroup-memory]");
    ASSERT_SAYS("33024 bytes");
    ASSERT_SAYS("kernel fits\n");
    ASSERT_SAYS("kernel tile_of_64\n");
    ASSERT_SAYS("kernel tile_of_9000 does not compile\n");
    ASSERT_SAYS("kernel tile_of_halves\n");
    ASSERT_SAYS(" 1 warning, linted\n");
    PASS();
}

TEST stores_that_nothing_guards_are_warned_of(void) {
    ASSERT_FOUND(2, "guard.metal", "// mistake", "[missing-guard]");
    ASSERT_FOUND(2, "guard.metal", "// mistake", " warning: ");
    ASSERT_SAYS("8 kernels, 8 compile, 0 errors, 2 warnings, linted\n");
    ASSERT_RUN("\"$A\" lint \"$H/tests/kernels/lint/guard.metal\"", 0);
    PASS();
}

TEST tests_that_fast_math_may_leave_out_are_warned_of(void) {
    ASSERT_FOUND(5, "fast_math.metal", "// mistake", "[fast-math]");
    ASSERT_SAYS("0 errors, 5 warnings, linted\n");
    PASS();
}

TEST reserved_names_are_found(void) {
    ASSERT_FOUND(1, "reserved.metal", "// a warning", " warning: ");
    ASSERT_FOUND(2, "reserved.metal", "// mistake", " error: ");
    ASSERT_SAYS("'thread' is a keyword of MSL and cannot be a name [reserved-name]");
    PASS();
}

TEST texts_that_ask_who_reads_them_are_found(void) {
    ASSERT_FOUND(7, "environment.metal", "// mistake", "error: ");
    ASSERT_SAYS("'__ASSAY__' asks which harness runs it");
    ASSERT_SAYS("'__clang_major__' asks which compiler reads it");
    ASSERT_SAYS("environment.h:2:8: error: '__NVPTX__' asks which processor runs it");
    ASSERT_SAYS("environment.h:5:8: error: '__x86_64__' asks which processor runs it");
    ASSERT_SAYS("2 kernels, 2 compile, 10 errors, 0 warnings, linted\n");
    PASS();
}

TEST what_is_not_supported_is_named_and_the_rest_is_linted(void) {
    ASSERT_RUN("\"$A\" lint \"$H/tests/kernels/lint/unsupported.metal\"", 0);
    ASSERT_SAYS("is [[texture]], which is not supported");
    ASSERT_SAYS("kernel samples is not supported\n");
    ASSERT_SAYS("kernel multiplies uses tensors, which are of Metal 4: --language 4.0");
    ASSERT_SAYS("3 kernels, 1 compiles, 0 errors, 2 warnings, linted\n");
    PASS();
}

TEST the_kernels_that_do_not_compile_are_told_from_those_that_do(void) {
    ASSERT_FOUND(2, "broken.metal", "// mistake", "[compile]");
    ASSERT_SAYS("kernel fine\n");
    ASSERT_SAYS("kernel broken does not compile\n");
    ASSERT_SAYS("kernel generic_int\n");
    ASSERT_SAYS("kernel generic_float does not compile\n");
    ASSERT_SAYS("4 kernels, 2 compile, 2 errors, 0 warnings, not linted: it does not compile\n");
    PASS();
}

TEST right_kernels_get_no_message(void) {
    ASSERT_RUN("\"$A\" lint \"$H/tests/kernels/lint/right.metal\"", 0);
    ASSERT_SAYS("8 kernels, 8 compile, 0 errors, 0 warnings, linted\n");
    ASSERT_SAYS("kernel generic_half\n");
    PASS();
}

/* .ci/run lints all kernels, as Metal 3.0 and 4.0. */
TEST the_examples_are_clean(void) {
    ASSERT_RUN("\"$A\" lint --language 3.0 \"$H/kernels/buffer_copy.metal\" \"$H/examples\"", 0);
    ASSERTm(command_get_output(), !command_says("error:") && !command_says("warning:"));
    ASSERTm(command_get_output(), !command_says("not linted"));
    ASSERT_SAYS("buffer_copy.metal: 1 kernel, 1 compiles, 0 errors, 0 warnings, linted\n");
    PASS();
}

TEST a_folder_is_searched_for_metal_files(void) {
    ASSERT_RUN(
        "mkdir -p \"$T/inner\" && cd \"$H/tests/kernels/lint\" && cp broken.metal \"$T\" && "
        "cp unsupported.metal \"$T/inner\" && "
        "\"$A\" lint --brief \"$T\" \"$H/kernels/rmsnorm.metal\"; s=$?; rm -r \"$T\"; exit $s",
        1);
    ASSERT_SAYS("broken.metal: ");
    ASSERT_SAYS("unsupported.metal: ");
    ASSERT_SAYS("rmsnorm.metal: ");
    ASSERTm(command_get_output(), !command_says(": kernel fine"));
    PASS();
}

TEST templates_over_vectors_are_compiled_and_not_linted(void) {
    ASSERT_RUN("printf '%s\\n' '#include <metal_stdlib>' 'using namespace metal;'"
               " 'template <typename V> V both(float a) { return V(a, a); }'"
               " 'kernel void k(device float2 *x [[buffer(0)]]) { x[0] = both<float2>(1.0f); }'"
               " > \"$T.metal\"; \"$A\" lint \"$T.metal\"; s=$?; rm -f \"$T.metal\"; exit $s",
               0);
    ASSERT_SAYS("1 kernel, 1 compiles, 0 errors, 0 warnings, compiled, not linted: ");
    ASSERT_SAYS(".metal:3: ");
    PASS();
}

TEST files_that_cannot_be_read_are_errors(void) {
    ASSERT_RUN("\"$A\" lint \"$T/none.metal\"", 2);
    ASSERT_SAYS("none.metal");
    ASSERT_RUN("\"$A\" lint", 2);
    ASSERT_RUN("mkdir \"$T\"; \"$A\" lint \"$T\"; s=$?; rmdir \"$T\"; exit $s", 2);
    ASSERT_SAYS("no .metal file");
    ASSERT_RUN("printf 'kernel void k( {\\n' > \"$T.metal\"; \"$A\" lint \"$T.metal\"; s=$?;"
               " rm -f \"$T.metal\"; exit $s",
               1);
    ASSERT_SAYS(" error: ");
    PASS();
}

SUITE(lint_suite) {
    RUN_TEST(address_space_mistakes_are_found_at_their_lines);
    RUN_TEST(mistakes_that_only_msl_knows_are_found);
    RUN_TEST(cpp_that_is_not_msl_is_found);
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.0");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.1");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "3.2");
    RUN_TESTp(what_apples_compiler_refuses_is_found_in_its_words, "4.0");
    RUN_TEST(what_the_strict_parse_refuses_is_an_error_at_its_line);
    RUN_TEST(positions_of_mixed_shapes_and_wrong_types_are_found);
    RUN_TEST(an_index_used_twice_is_found_unless_it_is_gated);
    RUN_TEST(too_much_threadgroup_memory_is_found);
    RUN_TEST(stores_that_nothing_guards_are_warned_of);
    RUN_TEST(tests_that_fast_math_may_leave_out_are_warned_of);
    RUN_TEST(reserved_names_are_found);
    RUN_TEST(texts_that_ask_who_reads_them_are_found);
    RUN_TEST(what_is_not_supported_is_named_and_the_rest_is_linted);
    RUN_TEST(the_kernels_that_do_not_compile_are_told_from_those_that_do);
    RUN_TEST(right_kernels_get_no_message);
    RUN_TEST(the_examples_are_clean);
    RUN_TEST(a_folder_is_searched_for_metal_files);
    RUN_TEST(templates_over_vectors_are_compiled_and_not_linted);
    RUN_TEST(files_that_cannot_be_read_are_errors);
}
