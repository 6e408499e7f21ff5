/* lines: from an address of compiled code to a line of its text, in the files of Linux and macOS.
 * clang writes objects of macOS everywhere; where lld is, they are linked as well. */
#include <greatest.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/base/toolchain.h"
#include "harness/device/soft/object.h"

SUITE_EXTERN(lines_suite);

/* FRONT moves everything after it to other addresses. */
static const char source[] =
    "#if FRONT\n"
    "extern \"C\" int front(int *p) { return p[0] / p[1] + p[2] % p[3]; }\n"
    "#endif\n"
    "#line 10 \"lines.metal\"\n"
    "__attribute__((noinline)) static int twice(int *p, int i) {\n"
    "    int value = p[i];\n"
    "    return value * 2 + p[value];\n"
    "}\n"
    "extern \"C\" int sum(int *p, int n) {\n"
    "    int all = 0;\n"
    "    for (int i = 0; i < n; i++)\n"
    "        all += twice(p, i);\n"
    "    return all;\n"
    "}\n"
    "#if CALLS\n"
    "extern \"C\" int system(const char *);\n"
    "extern \"C\" int call(void) { return system(\"true\"); }\n"
    "#endif\n"
    "#if MATHS\n"
    "extern \"C\" float maths(float x) { return __builtin_expf(x) + __builtin_sinf(x); }\n"
    "#endif\n"
    "#if INSTRUMENTED\n"
    "extern \"C\" void __assay_end(void *, unsigned long);\n"
    "extern \"C\" void ends(void *p) { __assay_end(p, 4); }\n"
    "#endif\n"
    "#if STARTS\n"
    "__attribute__((constructor)) static void first(void) { __asm__ volatile(\"\"); }\n"
    "#endif\n"
    "#if OPTIONS\n"
    "__asm__(\".linker_option \\\"-lz\\\"\");\n"
    "#endif\n";
enum { FIRST = 10, LAST = 19, MOST_BYTES = 65536 };

static char folder[PATH_MAX - 64], clang[PATH_MAX];

/* Good until it is called three more times. */
static const char *name_file(const char *name) {
    static char path[4][PATH_MAX];
    static size_t next;
    char *p = path[next++ % 4];
    snprintf(p, PATH_MAX, "%s/%s", folder, name);
    return p;
}

static void leave(void *unused) {
    (void)unused;
    os_remove_folder(folder);
}

static bool compile(const char *target, const char *define, const char *object, err *e) {
    static char line[4 * PATH_MAX];
    snprintf(line, sizeof line,
             "\"%s\" %s -x c++ -O1 -fPIC -gdwarf-4 -gline-tables-only %s -c \"%s\" -o \"%s\"",
             clang, target, define, name_file("lines.cpp"), object);
    return os_write_file(name_file("lines.cpp"), source, strlen(source), e) &&
           (command_run(line) == 0 ||
            err_set(e, EXIT_WRONG, "clang: %.200s", command_get_output()));
}

static bool start(err *e) {
    return os_make_scratch(folder, sizeof folder, e) &&
           toolchain_find_clang(clang, sizeof clang, NULL, 0, e);
}

/* How many bytes of the code come from each line of the text, asked of every address. */
static size_t count_bytes(const char *path, size_t bytes[LAST + 1]) {
    size_t all = 0;
    memset(bytes, 0, (LAST + 1) * sizeof *bytes);
    for (uint64_t at = 0; at < MOST_BYTES / 16; at++) {
        char file[64] = "";
        int line = 0;
        if (!soft_find_line(path, at, file, sizeof file, &line) ||
            strcmp(file, "lines.metal") != 0 || line == 0) /* of no line: the compiler's own */
            continue;
        if (line < FIRST || line > LAST)
            return 0;
        bytes[line]++;
        all++;
    }
    return all;
}

TEST every_address_of_an_object_of_macos_has_its_line(const char *target) {
    err e = {.code = EXIT_OK};
    size_t bytes[LAST + 1];
    ASSERTm(e.text, start(&e) && compile(target, "-DFRONT=0", name_file("lines.o"), &e));
    ASSERT(count_bytes(name_file("lines.o"), bytes) > 40);
    static const int code[] = {11, 12, 17, 18}; /* lines that load, add, call and return */
    for (size_t i = 0; i < sizeof code / sizeof *code; i++)
        ASSERT(bytes[code[i]] > 0);
    PASS();
}

/* The object with something in front stands for a linked image: the same code elsewhere. Its own
 * line table says what the right answers are. */
TEST addresses_are_translated_by_the_names_of_functions(const char *target) {
    err e = {.code = EXIT_OK};
    ASSERTm(e.text, start(&e) && compile(target, "-DFRONT=0", name_file("object.o"), &e) &&
                        compile(target, "-DFRONT=1", name_file("image.o"), &e));
    size_t object_bytes, image_bytes, same = 0, front = 0;
    char *a = os_read_file(name_file("object.o"), &object_bytes, &e);
    char *b = os_read_file(name_file("image.o"), &image_bytes, &e);
    macho_file object, image;
    ASSERT(a && b && macho_read((const uint8_t *)a, object_bytes, &object) &&
           macho_read((const uint8_t *)b, image_bytes, &image));
    for (uint64_t at = 0; at < MOST_BYTES; at++) {
        char want[64], got[64];
        int want_line, got_line;
        uint64_t there;
        if (!dwarf_find_line(image.lines, at, want, sizeof want, &want_line))
            break;
        if (!macho_translate(&image, &object, at, &there)) {
            front++;
            continue;
        }
        ASSERT(dwarf_find_line(object.lines, there, got, sizeof got, &got_line));
        ASSERT_STR_EQ(want, got);
        ASSERT_EQ_FMT(want_line, got_line, "%d");
        same += there != at;
    }
    ASSERT(front > 10 && same > 40);
    free(a);
    free(b);
    PASS();
}

TEST a_linked_image_has_the_lines_of_the_object_beside_it(const char *target, const char *cpu) {
    err e = {.code = EXIT_OK};
    char linker[PATH_MAX];
    if (!os_find_program("lld", linker, sizeof linker))
        SKIPm("there is no lld");
    ASSERTm(e.text, start(&e) && compile(target, "-DFRONT=0", name_file("lines.o"), &e));
    static char line[4 * PATH_MAX];
    snprintf(line, sizeof line,
             "\"%s\" -flavor darwin -dylib -arch %s -platform_version macos 12.0 12.0 "
             "-no_deduplicate -undefined dynamic_lookup \"%s\" -o \"%s\"",
             linker, cpu, name_file("lines.o"), name_file("lines.so"));
    ASSERT_RUN(line, 0);
    size_t object[LAST + 1], image[LAST + 1];
    size_t all = count_bytes(name_file("lines.o"), object);
    ASSERT_EQ_FMT(all, count_bytes(name_file("lines.so"), image), "%zu");
    ASSERT_MEM_EQ(object, image, sizeof object);
    unlink(name_file("lines.o"));
    ASSERT_EQ(0u, count_bytes(name_file("lines.so"), image));
    PASS();
}

TEST a_damaged_file_has_no_lines_and_does_no_harm(const char *target) {
    err e = {.code = EXIT_OK};
    ASSERTm(e.text, start(&e) && compile(target, "-DFRONT=0", name_file("lines.o"), &e));
    size_t bytes, whole[LAST + 1], part[LAST + 1];
    char *data = os_read_file(name_file("lines.o"), &bytes, &e);
    ASSERT(data && count_bytes(name_file("lines.o"), whole) > 0);
    for (size_t cut = 0; cut < bytes; cut += bytes / 23 + 1) {
        ASSERT(os_write_file(name_file("cut.o"), data, cut, &e));
        ASSERT(count_bytes(name_file("cut.o"), part) <= bytes);
    }
    unsigned seed = 7;
    for (int i = 0; i < 60; i++) { /* numbers of the headers, in no order */
        char *bad = malloc(bytes);
        memcpy(bad, data, bytes);
        for (int k = 0; k < 4; k++) {
            seed = seed * 1103515245u + 12345u;
            bad[(seed >> 8) % 900] = (char)(seed >> 16);
        }
        char file[64];
        int line;
        ASSERT(os_write_file(name_file("bad.o"), bad, bytes, &e));
        for (uint64_t at = 0; at < 64; at += 4)
            soft_find_line(name_file("bad.o"), at, file, sizeof file, &line);
        soft_inspect(name_file("bad.o"), "bad", &e);
        free(bad);
    }
    free(data);
    PASS();
}

/* What object.h promises of a kernel holds on a Mac, too: asked of objects that clang writes for it
 * anywhere. */
TEST objects_of_macos_are_inspected(const char *target) {
    static const struct {
        const char *define, *says;
    } cases[] = {
        {"-DMATHS=1", NULL},
        {"-fsanitize=thread,shift-exponent,integer-divide-by-zero", NULL},
        {"-DINSTRUMENTED=1", NULL},
        {"-DCALLS=1", "uses 'system', which MSL does not have: it is not loaded"},
        {"-DSTARTS=1", "has code that runs when it is loaded (a constructor)"},
        {"-DOPTIONS=1", "wants another library"},
    };
    err e = {.code = EXIT_OK};
    ASSERTm(e.text, start(&e));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ASSERTm(e.text, compile(target, cases[i].define, name_file("lines.o"), &e));
        bool ok = soft_inspect(name_file("lines.o"), "call", &e);
        ASSERT_EQ_FMTm(cases[i].define, !cases[i].says, ok, "%d");
        if (cases[i].says)
            ASSERTm(e.text, strstr(e.text, cases[i].says));
    }
    PASS();
}

SUITE(lines_suite) {
    static const char arm[] = "--target=arm64-apple-macos12.0";
    static const char intel[] = "--target=x86_64-apple-macos12.0";
    SET_TEARDOWN(leave, NULL);
    RUN_TESTp(every_address_of_an_object_of_macos_has_its_line, arm);
    RUN_TESTp(every_address_of_an_object_of_macos_has_its_line, intel);
    RUN_TESTp(addresses_are_translated_by_the_names_of_functions, arm);
    RUN_TESTp(addresses_are_translated_by_the_names_of_functions, intel);
    RUN_TESTp(a_linked_image_has_the_lines_of_the_object_beside_it, arm, "arm64");
    RUN_TESTp(a_linked_image_has_the_lines_of_the_object_beside_it, intel, "x86_64");
    RUN_TESTp(a_damaged_file_has_no_lines_and_does_no_harm, arm);
    RUN_TESTp(objects_of_macos_are_inspected, arm);
    RUN_TESTp(objects_of_macos_are_inspected, intel);
}
