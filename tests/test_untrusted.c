/* A kernel is code from somewhere: what MSL does not have is refused before anything of it runs.
 * transcripts/untrusted.txt has the tests of commands. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/msl/msl.h"
#include "transcript.h"

SUITE_EXTERN(untrusted_suite);

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

SUITE(untrusted_suite) {
    RUN_TEST(what_hides_memory_from_checked_mode_is_refused_with_its_line);
    transcript_run("untrusted");
}
