/* The MSL front end: includes, macros and lines, as one text. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/toolchain.h"
#include "harness/device/msl/msl.h"

SUITE(msl_source_suite);

static err why;
static msl_unit *unit; /* of the last test */

/* The line of `text` in which `part` begins, from 1. */
static int find_line(const char *text, const char *part) {
    const char *at = strstr(text, part);
    int line = 1;
    for (const char *p = text; at && p < at; p++)
        line += *p == '\n';
    return at ? line : -1;
}

TEST macros_are_expanded_by_a_preprocessor_that_keeps_lines(void) {
    char tool[4096];
    if (!toolchain_find_preprocessor(tool, sizeof tool, &why))
        SKIPm("no compiler to preprocess with");
    unit = msl_from_text(
        "test.metal",
        "#include <metal_stdlib>\n#define MAKE(T) kernel void copy_##T(device T *x) {}\n"
        "#if __METAL_VERSION__ >= 300\nMAKE(float)\n#else\nMAKE(half)\n#endif\n",
        &why);
    ASSERTm(why.text, unit);
    ASSERT_EQ_FMT((size_t)1, msl_count_kernels(unit), "%zu");
    const msl_signature *k = msl_find_kernel(unit, "copy_float", &why);
    ASSERT(k && k->line == 4);
    ASSERT_FALSE(msl_from_text("test.metal", "#if 1\nkernel void k(device int *x) {}\n", &why));
    ASSERT(strstr(why.text, "test.metal") && strstr(why.detail, "unterminated conditional"));
    PASS();
}

/* Writes outer.metal and inner.h to a folder and loads the first. */
static bool load_with_include(const char *folder, const char *outer, const char *inner) {
    char path[64];
    snprintf(path, sizeof path, "%s/inner.h", folder);
    if (!os_write_file(path, inner, strlen(inner), &why))
        return false;
    snprintf(path, sizeof path, "%s/outer.metal", folder);
    if (!os_write_file(path, outer, strlen(outer), &why))
        return false;
    msl_free(unit);
    why = (err){.code = EXIT_OK};
    unit = msl_load(path, &why);
    return unit != NULL;
}

TEST local_includes_are_read_beside_the_file(void) {
    char folder[] = "/tmp/assay-test-XXXXXX";
    ASSERT(mkdtemp(folder));
    ASSERT(load_with_include(folder,
                             "#include \"inner.h\"\n#include \"./inner.h\"\n"
                             "kernel void k(device point *p) {}\n",
                             "#pragma once\nstruct point { float x; };\n"));
    ASSERT(msl_find_kernel(unit, "k", &why));
    ASSERT_EQ(3, msl_find_kernel(unit, "k", &why)->line);
    char *cpp = msl_rewrite(unit, "k", NULL, 0, &why);
    ASSERT(cpp);
    const char *first = strstr(cpp, "struct point");
    ASSERT(first && !strstr(first + 1, "struct point"));
    ASSERT(strstr(cpp, "inner.h\"\n") && strstr(cpp, "#line 2 \""));
    free(cpp);
    os_remove_folder(folder);
    PASS();
}

TEST the_text_for_a_compiler_of_msl_has_its_includes_macros_and_lines(void) {
    char folder[] = "/tmp/assay-test-XXXXXX";
    ASSERT(mkdtemp(folder));
    ASSERT(load_with_include(folder,
                             "#include <metal_stdlib>\n#include \"inner.h\"\n"
                             "kernel void k(device TYPE *p) { p[0] = LIMIT; }\n",
                             "#pragma once\n#define TYPE float\n#define LIMIT 3\n"));
    const char *text = msl_get_text(unit);
    ASSERT(strstr(text, "#include <metal_stdlib>\n"));
    ASSERT(strstr(text, "#define LIMIT 3\n") && strstr(text, "device TYPE *p"));
    ASSERT(!strstr(text, "#include \"inner.h\""));
    /* Given to the compiler alone, it means the same, line by line. */
    msl_unit *again = msl_from_text("program_source", text, &why);
    ASSERTm(why.text, again);
    const msl_signature *k = msl_find_kernel(again, "k", &why);
    ASSERT(k && k->line == 3);
    ASSERT_STR_EQ("float *", k->params[0].type);
    char *here = msl_rewrite(unit, "k", NULL, 0, &why),
         *there = msl_rewrite(again, "k", NULL, 0, &why);
    ASSERT(here && there);
    ASSERT_EQ(find_line(strstr(here, "void k"), "p[0] ="),
              find_line(strstr(there, "void k"), "p[0] ="));
    free(here);
    free(there);
    msl_free(again);
    os_remove_folder(folder);
    PASS();
}

/* Is the header in the text that the preprocessor leaves of what a compiler of MSL is given? */
TEST a_header_left_out_in_one_branch_is_put_in_after_it(void) {
    static const char *const outers[] = {
        "#ifdef X\n#include \"inner.h\"\n#endif\n#include \"inner.h\"\n",
        "#ifndef X\n#include \"inner.h\"\n#endif\n#include \"inner.h\"\n",
        "#ifdef X\n#include \"inner.h\"\n#else\n#include \"./inner.h\"\n#endif\n"};
    char folder[] = "/tmp/assay-test-XXXXXX", outer[160];
    ASSERT(mkdtemp(folder));
    for (size_t i = 0; i < sizeof outers / sizeof *outers; i++) {
        snprintf(outer, sizeof outer, "%skernel void k(device point *p) {}\n", outers[i]);
        ASSERT(load_with_include(folder, outer, "#pragma once\nstruct point { float x; };\n"));
        msl_unit *again = msl_from_text("program_source", msl_get_text(unit), &why);
        ASSERTm(why.text, again);
        const char *first = strstr(msl_get_expanded(again), "struct point");
        ASSERTm(outer, first && !strstr(first + 1, "struct point"));
        ASSERT_EQ(4 + (i == 2 ? 2 : 1), msl_find_kernel(again, "k", &why)->line);
        msl_free(again);
    }
    os_remove_folder(folder);
    PASS();
}

TEST a_header_without_the_pragma_is_put_in_each_time(void) {
    char folder[] = "/tmp/assay-test-XXXXXX";
    ASSERT(mkdtemp(folder));
    ASSERT(load_with_include(folder,
                             "#include \"inner.h\"\n#include \"inner.h\"\n"
                             "kernel void k(device float *p) {}\n",
                             "// to be read more than once\nfloat get(int);\n"));
    const char *first = strstr(msl_get_text(unit), "float get");
    ASSERT(first && strstr(first + 1, "float get"));
    os_remove_folder(folder);
    PASS();
}

TEST the_language_and_the_reader_choose_what_the_preprocessor_sees(void) {
    static const char text[] = "#ifdef __ASSAY__\nkernel void ours(device float *p) {}\n#endif\n"
                               "kernel void k(device int *p) { p[0] = __METAL_VERSION__; }\n";
    for (int i = 0; i < MSL_LANGUAGES; i++) {
        char want[32];
        msl_extras extras = {.language = msl_languages[i], .is_apple = true};
        msl_unit *apple = msl_from_text_with("t.metal", text, &extras, &why);
        ASSERTm(why.text, apple);
        snprintf(want, sizeof want, "p[0] = %d;", msl_languages[i]);
        ASSERT(strstr(msl_get_expanded(apple), want));
        ASSERT_EQ(msl_languages[i], msl_get_language(apple));
        ASSERT_EQ((size_t)1, msl_count_kernels(apple));
        msl_free(apple);
    }
    msl_free(unit);
    unit = msl_from_text("t.metal", text, &why);
    ASSERT(unit && msl_count_kernels(unit) == 2 && msl_get_language(unit) == MSL_LANGUAGE);
    PASS();
}

TEST an_include_from_elsewhere_is_put_in_by_the_preprocessor(void) {
    char folder[] = "/tmp/assay-test-XXXXXX", apart[64], path[96];
    ASSERT(mkdtemp(folder));
    snprintf(apart, sizeof apart, "%s/apart", folder);
    ASSERT(os_make_folder(apart, &why));
    snprintf(path, sizeof path, "%s/far.h", apart);
    ASSERT(os_write_file(path, "#define TYPE half\n", 18, &why));
    setenv("CPATH", apart, 1);
    bool loaded = load_with_include(folder,
                                    "#include <metal_stdlib>\n#include \"far.h\"\n"
                                    "kernel void k(device TYPE *p) {}\n",
                                    "");
    unsetenv("CPATH");
    ASSERTm(why.text, loaded);
    const char *text = msl_get_text(unit);
    ASSERT_EQ(text, strstr(text, "#include <metal_stdlib>\n"));
    ASSERT(strstr(text, "device half *p") && !strstr(text, "far.h\"\nkernel"));
    os_remove_folder(folder);
    PASS();
}

SUITE(msl_source_suite) {
    RUN_TEST(macros_are_expanded_by_a_preprocessor_that_keeps_lines);
    RUN_TEST(local_includes_are_read_beside_the_file);
    RUN_TEST(the_text_for_a_compiler_of_msl_has_its_includes_macros_and_lines);
    RUN_TEST(a_header_left_out_in_one_branch_is_put_in_after_it);
    RUN_TEST(a_header_without_the_pragma_is_put_in_each_time);
    RUN_TEST(the_language_and_the_reader_choose_what_the_preprocessor_sees);
    RUN_TEST(an_include_from_elsewhere_is_put_in_by_the_preprocessor);
}
