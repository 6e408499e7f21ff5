/* A kernel is code from somewhere: what MSL does not have is refused before anything of it runs,
 * and files are read and written with care. Also the options of `launch` for kernels of others. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/msl/msl.h"
#include "support.h"

SUITE_EXTERN(untrusted_suite);

#define LAUNCH(file) "\"$A\" launch \"$H/tests/kernels/untrusted/" file ".metal\" call "
#define ONE " --arg 0=f32[4] --grid 1 --group 4 "

/* Metal's own compiler takes none of it, and says so in its own words. */
static const char *choose_refusal(const char *ours) {
    return strcmp(support_get_device_name(), "metal") == 0 ? "'call' does not compile" : ours;
}

TEST calls_that_msl_does_not_have_are_refused_by_name(void) {
    ASSERT_RUN(LAUNCH("system") ONE, 1);
    ASSERT_SAYS(choose_refusal("uses 'system', which MSL does not have: it is not loaded"));
    ASSERT_RUN(LAUNCH("system") ONE "--validate", 1);
    ASSERT_SAYS(choose_refusal("uses 'system'"));
    PASS();
}

TEST code_that_would_run_at_loading_is_refused(const char *line) {
    ASSERT_RUN(line, 1);
    ASSERT_SAYS(
        choose_refusal("has code that runs when it is loaded (a constructor): it is not loaded"));
    PASS();
}

TEST attributes_for_linkers_are_refused_with_their_line(void) {
    ASSERT_RUN(LAUNCH("constructor") ONE, 1);
    ASSERT_SAYS("constructor.metal:6: the attribute 'constructor' is not part of MSL");
    PASS();
}

/* The text of a kernel with `line` as its third, and what is said of it; "" if it is taken. */
static const char *rewrite_with(const char *line) {
    static err e;
    char text[600];
    snprintf(text, sizeof text,
             "#include <metal_stdlib>\nusing namespace metal;\n%s\n"
             "kernel void call(device float *out [[buffer(0)]]) { out[0] = f(1); }\n",
             line);
    e = (err){.code = EXIT_OK};
    msl_unit *u = msl_from_text("k.metal", text, &e);
    char *rewritten = u ? msl_rewrite(u, "call", NULL, 0, &e) : NULL;
    free(rewritten);
    msl_free(u);
    return e.text;
}

/* Each would keep a variable or an access from checked mode. The right counterparts differ in a letter, or
 * have the word where it means nothing. */
TEST what_hides_memory_from_checked_mode_is_refused_with_its_line(void) {
    static const struct {
        const char *line, *said; /* "": it is taken */
    } cases[] = {
        {"float f(int i) { __attribute__((uninitialized)) float x; return x; }",
         "the attribute 'uninitialized'"},
        {"float f(int i) { [[clang::uninitialized]] float x; return x; }",
         "the attribute 'uninitialized'"},
        {"__attribute__((nodebug)) float f(int i) { return 0; }", "the attribute 'nodebug'"},
        {"[[gnu::__nodebug__]] float f(int i) { return 0; }", "the attribute 'nodebug'"},
        {"__attribute__((no_sanitize(\"all\"))) float f(int i) { return 0; }",
         "the attribute 'no_sanitize'"},
        {"__attribute__((always_inline, __no_sanitize_thread__)) float f(int i) { return 0; }",
         "the attribute 'no_sanitize_thread'"},
        {"__attribute__((no_sanitize_hwaddress)) float f(int i) { return 0; }",
         "the attribute 'no_sanitize_hwaddress'"},
        {"__attribute__((disable_sanitizer_instrumentation)) float f(int i) { return 0; }",
         "the attribute 'disable_sanitizer_instrumentation'"},
        {"__attribute__((optnone)) float f(int i) { return 0; }", "the attribute 'optnone'"},
        {"float f(int i) { return *(__attribute__((address_space(257))) float *)8; }",
         "the attribute 'address_space'"},
        {"float f(int i) { return *(__seg_fs float *)8; }", "is not part of MSL"},
        {"float f(int i) { __builtin_ia32_sfence(); return 0; }",
         "'__builtin_ia32_sfence' is not part of MSL"},
        {"float f(int i) { __builtin_arm_dmb(0); return 0; }",
         "'__builtin_arm_dmb' is not part of MSL"},
        {"_Pragma(\"clang optimize off\") float f(int i) { return 0; }", "clang optimize off'"},
        {"_Pragma(\"clang attribute push(__attribute__((nodebug)), apply_to=function)\") float "
         "f(int);",
         "clang attribute push"},
        {"__attribute__((always_inline)) float f(int i) { return 0; }", ""},
        {"float f(int nodebug) { float uninitialized = 1; return uninitialized; }", ""},
        {"float no_sanitize(int i) { return 0; } float f(int i) { return no_sanitize(i); }", ""},
        {"_Pragma(\"clang fp contract(off)\") float f(int i) { return __builtin_fabsf(1); }", ""},
        {"float f(int optnone) { _Pragma(\"clang loop unroll(full)\") for (;;) break; return 0; }",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = rewrite_with(cases[i].line);
        bool is_taken = !*cases[i].said;
        char message[900];
        snprintf(message, sizeof message, "%s: '%s'", cases[i].line, got);
        ASSERTm(message, is_taken ? !*got : strstr(got, cases[i].said) != NULL);
        ASSERTm(message, is_taken || strstr(got, "k.metal:3: "));
    }
    PASS();
}

TEST assembly_is_refused_with_its_line(void) {
    ASSERT_RUN(LAUNCH("assembly") ONE, 1);
    ASSERT_SAYS("assembly.metal:5: assembly is not part of MSL");
    PASS();
}

TEST includes_without_end_are_one_sentence(void) {
    ASSERT_RUN(LAUNCH("loop") ONE, 2);
    ASSERT_SAYS("files include each other without end");
    PASS();
}

TEST only_plain_files_are_read(void) {
    ASSERT_RUN("rm -f \"$T.metal\"; mkfifo \"$T.metal\"; \"$A\" lint \"$T.metal\"", 2);
    ASSERT_SAYS("is not a plain file");
    ASSERT_RUN("rm -f \"$T.metal\"; printf '#include \"/dev/zero\"\\n' > \"$T.metal\"; "
               "\"$A\" launch \"$T.metal\" call --grid 1 --group 1",
               2);
    ASSERT_SAYS("/dev/zero is not in the kernel's folder and is not a source: it is not read");
    ASSERT_RUN(
        "rm -f \"$T.metal\"; \"$A\" launch \"$H/kernels/buffer_copy.metal\" buffer_copy --arg "
        "0=f32[]:file:/dev/zero --arg 1=f32[4] --arg 2=u32:4 --grid 1 --group 4",
        2);
    ASSERT_SAYS("/dev/zero is not a plain file");
    PASS();
}

TEST a_byte_order_mark_is_no_mistake(void) {
    ASSERT_RUN("printf '\\357\\273\\277#include <metal_stdlib>\\nkernel void one(device float *out "
               "[[buffer(0)]]) { out[0] = 1; }\\n' > \"$T.metal\"; \"$A\" launch \"$T.metal\" one "
               "--arg 0=f32[1] --grid 1 --group 1 && \"$A\" lint \"$T.metal\"",
               0);
    PASS();
}

#define WRITE(path)                                                                                \
    LAUNCH("plain")                                                                                \
    "-I \"$T.dir\" -D SHIFT=0 --arg 0=f32[4]:ramp --arg 1=f32[4] --arg 2=f32[4] --grid 1 "         \
    "--group 4 --save 1=" path
#define FOLDER "rm -rf \"$T.dir\"; mkdir \"$T.dir\"; echo '#define EXTRA 3' > \"$T.dir/extra.h\"; "

TEST results_follow_links_and_go_into_devices(void) {
    ASSERT_RUN(FOLDER "cd \"$T.dir\"; touch target; ln -s target link; " WRITE(
                   "link") " && test -L link && test $(wc -c < target) = 16",
               0);
    ASSERT_RUN(FOLDER "cd \"$T.dir\"; ln -s nowhere link; " WRITE(
                   "link") " && test -L link && test $(wc -c < nowhere) = 16",
               0);
    ASSERT_RUN(FOLDER "cd \"$T.dir\"; mkfifo pipe; (cat pipe | wc -c > count) & " WRITE(
                   "pipe") " ; wait; test -p pipe && test $(cat count) = 16",
               0);
    ASSERT_RUN(FOLDER WRITE("/dev/stdout") " | tail -c 4 | od -An -tf4; test -e /dev/stdout", 0);
    ASSERT_RUN("rm -rf \"$T.dir\"", 0);
    PASS();
}

TEST macros_folders_and_void_pointers_are_taken(void) {
    ASSERT_RUN(FOLDER LAUNCH("plain") "-I \"$T.dir\" -D SHIFT=1 --arg 0=f32[5]:ramp "
                                      "--arg 1=f32[8] --arg 2=@1+16 --grid 1 --group 4 --validate",
               0);
    ASSERT_SAYS("0:   3   6   9  12   0   1   2   3");
    PASS();
}

TEST an_index_that_leaves_one_binding_is_told_beside_another(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode knows it");
    ASSERT_RUN(FOLDER LAUNCH("plain") "-I \"$T.dir\" -D SHIFT=0 --arg 0=f32[8]:ramp "
                                      "--arg 1=@0+16:16 --arg 2=f32[4] --grid 1 --group 4 "
                                      "--validate",
               0);
    ASSERT_RUN(FOLDER LAUNCH("plain") "-I \"$T.dir\" -D SHIFT=0 --arg 3=f32[8]:ramp "
                                      "--arg 0=@3:12 --arg 1=f32[4] --arg 2=f32[4] --grid 1 "
                                      "--group 4 --validate",
               2); /* buffer 3 is no parameter of the kernel */
    ASSERT_RUN(FOLDER LAUNCH("plain") "-I \"$T.dir\" -D SHIFT=0 --arg 1=f32[8]:zero "
                                      "--arg 0=@1+16:12 --arg 2=f32[4] --grid 1 --group 4 "
                                      "--validate",
               1);
    ASSERT_SAYS("load of 4 bytes outside: element 3 of buffer 0");
    ASSERT_RUN(FOLDER LAUNCH("plain") "-I \"$T.dir\" -D SHIFT=0 --arg 1=f32[8]:zero "
                                      "--arg 0=@1+16:12 --arg 2=f32[4] --grid 1 --group 4 "
                                      "--validate --allow-overread 0",
               0);
    PASS();
}

TEST a_long_call_can_be_a_file(void) {
    ASSERT_RUN(FOLDER "printf '# what it takes\\n--arg 0=f32[4]:ramp --arg 1=f32[4]\\n-D SHIFT=0 "
                      "--arg 2=f32[4] --grid 1\\n' > \"$T.dir/call\"; " LAUNCH(
                          "plain") "-I \"$T.dir\" --args \"$T.dir/call\" --group 4; s=$?; rm -rf "
                                   "\"$T.dir\"; exit $s",
               0);
    ASSERT_SAYS("0:  0  3  6  9");
    PASS();
}

TEST the_same_value_from_many_threads_fails_only_a_strict_run(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only checked mode knows it");
#define SAME                                                                                       \
    "\"$A\" launch \"$H/tests/kernels/wrong.metal\" one_value_from_all --arg 0=f32[128]:ramp "     \
    "--arg 1=f32[128] --arg 2=u32:128 --grid 2 --group 64 --validate "
    ASSERT_RUN(SAME, 0);
    ASSERT_SAYS("same value stored");
    ASSERT_RUN(SAME "--strict", 1);
    PASS();
}

SUITE(untrusted_suite) {
    RUN_TEST(calls_that_msl_does_not_have_are_refused_by_name);
    RUN_TEST(attributes_for_linkers_are_refused_with_their_line);
    RUN_TESTp(code_that_would_run_at_loading_is_refused, LAUNCH("object") ONE);
    RUN_TESTp(code_that_would_run_at_loading_is_refused, LAUNCH("object") ONE "--validate");
    RUN_TEST(what_hides_memory_from_checked_mode_is_refused_with_its_line);
    RUN_TEST(assembly_is_refused_with_its_line);
    RUN_TEST(includes_without_end_are_one_sentence);
    RUN_TEST(only_plain_files_are_read);
    RUN_TEST(a_byte_order_mark_is_no_mistake);
    RUN_TEST(results_follow_links_and_go_into_devices);
    RUN_TEST(macros_folders_and_void_pointers_are_taken);
    RUN_TEST(an_index_that_leaves_one_binding_is_told_beside_another);
    RUN_TEST(a_long_call_can_be_a_file);
    RUN_TEST(the_same_value_from_many_threads_fails_only_a_strict_run);
}
