/* The cache of compiled kernels: used again, never stale, never damaged, safe in a race. */
#include <dirent.h>
#include <greatest.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(cache_suite);

static char folder[PATH_MAX];
static char before[PATH_MAX];

/* Each test gets a cache of its own. */
static void enter(void *unused) {
    (void)unused;
    const char *was = getenv("XDG_CACHE_HOME");
    snprintf(before, sizeof before, "%s", was ? was : "");
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/assay-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(folder))
        setenv("XDG_CACHE_HOME", folder, 1);
}

static void leave(void *unused) {
    (void)unused;
    const char *argv[] = {"rm", "-rf", folder, NULL};
    int status;
    child_run(argv, NULL, &status, NULL);
    if (*before)
        setenv("XDG_CACHE_HOME", before, 1);
    else
        unsetenv("XDG_CACHE_HOME");
}

/* Runs a kernel that writes one number, on a device of its own; -1 if that failed. */
static float run_text(const char *text) {
    err e;
    float got = -1;
    device *d = device_open("soft", &e);
    msl_unit *u = d ? msl_from_text("number.metal", text, &e) : NULL;
    pipeline *p = u ? device_new_pipeline(d, u, "number", NULL, 0, MATH_SAFE, &e) : NULL;
    library *lib = p ? library_new(d, folder, &e) : NULL;
    buffer *b = lib ? device_new_buffer(d, 4, STORAGE_SHARED, "out", &e) : NULL;
    if (b) {
        tape *t = tape_new(lib);
        launch *l = tape_add_pipeline(t, p);
        launch_bind(l, 0, slice_whole(b), ACCESS_WRITE, ELEM_F32);
        launch_set_groups(l, (size3){1, 1, 1}, (size3){1, 1, 1});
        if (tape_play(t, PLAY_WHOLE, NULL, NULL, &e) && !buffer_download(b, 0, &got, 4, &e))
            got = -1;
        tape_free(t);
    }
    buffer_free(b);
    library_free(lib);
    pipeline_free(p);
    msl_free(u);
    device_close(d);
    return got;
}

static const char *spell(int number) {
    static char text[160];
    snprintf(text, sizeof text,
             "#include <metal_stdlib>\nusing namespace metal;\n"
             "kernel void number(device float *out [[buffer(0)]]) { out[0] = %d; }\n",
             number);
    return text;
}

/* How many files of the cache end in `ending`; the path of the last one. */
static int count_files(const char *ending, char *path, size_t size) {
    char inside[PATH_MAX];
    snprintf(inside, sizeof inside, "%.200s/assay/soft", folder);
    DIR *d = opendir(inside);
    int n = 0;
    for (struct dirent *f; d && (f = readdir(d));) {
        const char *dot = strrchr(f->d_name, '.');
        if (!dot || strcmp(dot, ending) != 0)
            continue;
        n++;
        snprintf(path, size, "%.300s/%.200s", inside, f->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

TEST a_kernel_is_compiled_once_and_loaded_again(void) {
    char path[PATH_MAX];
    ASSERT_EQ(7.0f, run_text(spell(7)));
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    struct stat first, second;
    ASSERT_EQ(0, stat(path, &first));
    ASSERT_EQ(7.0f, run_text(spell(7)));
    ASSERT_EQ(0, stat(path, &second));
    ASSERT_EQ(first.st_ino, second.st_ino);
    PASS();
}

/* A macro takes the file through a preprocessor, by way of a scratch folder with a new name. */
TEST a_kernel_with_macros_is_compiled_once_too(void) {
    static const char source[] =
        "#include <metal_stdlib>\nusing namespace metal;\n#define NUMBER 9\n"
        "kernel void number(device float *out [[buffer(0)]]) { out[0] = NUMBER; }\n";
    char path[PATH_MAX];
    ASSERT_EQ(9.0f, run_text(source));
    ASSERT_EQ(9.0f, run_text(source));
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    PASS();
}

TEST a_changed_kernel_is_never_served_from_the_old_file(void) {
    char path[PATH_MAX];
    for (int i = 1; i <= 3; i++)
        ASSERT_EQ((float)i, run_text(spell(i)));
    ASSERT_EQ(3, count_files(".so", path, sizeof path));
    ASSERT_EQ(1.0f, run_text(spell(1)));
    PASS();
}

TEST a_damaged_file_is_compiled_again(void) {
    char path[PATH_MAX];
    ASSERT_EQ(5.0f, run_text(spell(5)));
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    ASSERT_EQ(0, truncate(path, 1000));
    ASSERT_EQ(5.0f, run_text(spell(5)));
    err e;
    ASSERT(os_write_file(path, "not code", 8, &e));
    ASSERT_EQ(5.0f, run_text(spell(5)));
    strcpy(strrchr(path, '.'), ".sum");
    ASSERT_EQ(0, unlink(path));
    ASSERT_EQ(5.0f, run_text(spell(5)));
    ASSERT_EQ(0, access(path, F_OK));
    PASS();
}

TEST the_headers_of_the_shim_are_compiled_once_for_all_kernels(void) {
    char path[PATH_MAX];
    struct stat first, second;
    ASSERT_EQ(1.0f, run_text(spell(1)));
    ASSERT_EQ(1, count_files(".pch", path, sizeof path));
    ASSERT_EQ(0, stat(path, &first));
    ASSERT_EQ(2.0f, run_text(spell(2)));
    ASSERT_EQ(1, count_files(".pch", path, sizeof path));
    ASSERT_EQ(0, stat(path, &second));
    ASSERT_EQ(first.st_ino, second.st_ino);
    ASSERT_EQ(0, truncate(path, 1000)); /* a damaged one is not used */
    ASSERT_EQ(3.0f, run_text(spell(3)));
    ASSERT_EQ(0, stat(path, &second));
    ASSERT_EQ(first.st_size, second.st_size);
    PASS();
}

/* A compiler that does `instead` where it should precompile; the last argument is the file to make. */
#define WITH_CLANG(instead)                                                                        \
    "C=$(sh \"$H/tools/clang.sh\") && "                                                            \
    "printf '#!/bin/sh\\ncase \"$*\" in *-emit-pch*) for last; do :; done; " instead               \
    "; exit ;; esac\\nexec %s \"$@\"\\n' \"$C\" > \"$T.clang\" && chmod +x \"$T.clang\" && "       \
    "ASSAY_CLANG=\"$T.clang\" \"$A\" check --device soft --quiet buffer_copy/33/normal"

/* By this process, its workers, and again for a file that is preprocessed. */
TEST the_compiler_is_asked_for_its_version_once(void) {
    ASSERT_RUN("C=$(sh \"$H/tools/clang.sh\") && rm -f \"$T.asked\" && printf '#!/bin/sh\\ncase "
               "\"$*\" in --version) echo asked >> %s ;; esac\\nexec %s \"$@\"\\n' \"$T.asked\" "
               "\"$C\" > \"$T.clang\" && chmod +x \"$T.clang\" && ASSAY_CLANG=\"$T.clang\" \"$A\" "
               "check --device soft --jobs 2 'rmsnorm_simdgroup/1x[36]*' && wc -l < \"$T.asked\"",
               0);
    ASSERT_SAYS("\n1\n");
    PASS();
}

/* Says what it is called with, as a compiler of another version. */
#define AS_CLANG(version)                                                                          \
    "C=$(sh \"$H/tools/clang.sh\") && rm -f \"$T.called\" && printf '#!/bin/sh\\ncase \"$1\" in "  \
    "--version) echo \"" version "\"; exit ;; esac\\necho \"$*\" >> %s\\nexec %s \"$@\"\\n' "      \
    "\"$T.called\" \"$C\" > \"$T.clang\" && chmod +x \"$T.clang\" && ASSAY_CLANG=\"$T.clang\" "    \
    "\"$A\" "                                                                                      \
    "check --device soft --quiet buffer_copy/33/normal && "                                        \
    "grep bfloat16-excess-precision=none \"$T.called\" > /dev/null"

/* Where shim/types.h takes the compiler's own bfloat, which Apple's has since 17. */
TEST bfloats_of_the_compiler_round_after_every_operation(void) {
    ASSERT_RUN(AS_CLANG("Apple clang version 17.0.0 (clang-1700.0.13.3)"), 0);
    ASSERT_RUN("rm -r \"$XDG_CACHE_HOME\"/assay && " AS_CLANG("Debian clang version 18.1.8"), 0);
    ASSERT_RUN("rm -r \"$XDG_CACHE_HOME\"/assay && " AS_CLANG("Debian clang version 17.0.6"), 1);
    ASSERT_RUN("rm -r \"$XDG_CACHE_HOME\"/assay && " AS_CLANG(
                   "Apple clang version 16.0.0 (clang-1600.0.26.3)"),
               1);
    PASS();
}

TEST kernels_compile_where_headers_cannot_be_precompiled(void) {
    char path[PATH_MAX];
    ASSERT_RUN(WITH_CLANG("false"), 0);
    ASSERT_EQ(0, count_files(".pch", path, sizeof path));
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    ASSERT_RUN("rm -r \"$XDG_CACHE_HOME\"/assay && " WITH_CLANG("echo nonsense > \"$last\""), 0);
    ASSERT_EQ(1, count_files(".pch", path, sizeof path));
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    PASS();
}

TEST processes_that_compile_the_same_kernel_at_once_do_not_disturb_each_other(void) {
    char path[PATH_MAX];
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(run_text(spell(9)) == 9.0f ? 0 : 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ASSERT_EQ(children[i], waitpid(children[i], &status, 0));
        ASSERT_EQ(0, status);
    }
    ASSERT_EQ(1, count_files(".so", path, sizeof path));
    ASSERT_EQ(0, count_files(".new.so", path, sizeof path));
    ASSERT_EQ(0, count_files(".new.o", path, sizeof path));
    ASSERT_EQ(0, count_files(".cpp", path, sizeof path));
    ASSERT_EQ(0, count_files(".tmp", path, sizeof path));
    ASSERT_EQ(1, count_files(".pch", path, sizeof path));
    ASSERT_EQ(0, count_files(".lock", path, sizeof path));
    PASS();
}

TEST a_compiler_that_is_not_there_is_one_clear_sentence(void) {
    const char *was = getenv("ASSAY_CLANG");
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s", was ? was : "");
    setenv("ASSAY_CLANG", "/nowhere/clang", 1);
    err e;
    device *d = device_open("soft", &e);
    if (*kept)
        setenv("ASSAY_CLANG", kept, 1);
    else
        unsetenv("ASSAY_CLANG");
    ASSERT_EQ(NULL, d);
    ASSERT_EQ(EXIT_CANNOT, e.code);
    ASSERT(strstr(e.text, "ASSAY_CLANG") && strstr(e.text, "/nowhere/clang"));
    PASS();
}

/* A folder cannot be made in a file. Where the mode forbids writing, root can write all the same. */
TEST a_cache_that_cannot_be_written_to_is_this_machines_fault(void) {
#define CHECK "\"$A\" check --device soft --quiet buffer_copy/33/normal"
    ASSERT_RUN("mkdir -p \"$T\" && : > \"$T/file\" && XDG_CACHE_HOME=\"$T/file\" " CHECK, 3);
    ASSERT_SAYS("cannot be written to; set XDG_CACHE_HOME");
    if (command_run("test $(id -u) -ne 0") == 0)
        ASSERT_RUN(
            "mkdir -p \"$T/c/assay\" && chmod 500 \"$T/c/assay\" && XDG_CACHE_HOME=\"$T/c\" " CHECK,
            3);
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

#define KEEP "ASSAY_CACHE_LIMIT=20K \"$A\" check --device soft --quiet "
#define OBJECTS "ls \"$XDG_CACHE_HOME\"/assay/soft/*.so"

TEST what_was_not_used_for_longest_leaves_a_full_cache(void) {
    ASSERT_RUN(KEEP "buffer_copy/33/normal", 0);
    ASSERT_SAYS("compiled in");
    ASSERT_RUN(KEEP "buffer_copy/33/normal && " OBJECTS " > \"$XDG_CACHE_HOME\"/first", 0);
    ASSERT_FALSE(command_says("compiled in"));
    /* It is young and stays, whatever the limit. */
    ASSERT_RUN(KEEP "residual_add/33/normal && ls $(cat \"$XDG_CACHE_HOME\"/first)", 0);
    ASSERT_RUN("touch -t 202001010000 $(" OBJECTS ") && " KEEP "buffer_copy/33/normal && " KEEP
               "ffn_silu/33/normal && ls $(cat \"$XDG_CACHE_HOME\"/first) && " OBJECTS " | wc -l",
               0);
    ASSERT_SAYS("\n2\n"); /* it was used again and stays; residual_add left; ffn_silu is new */
    PASS();
}

TEST the_cache_tells_its_size_and_is_cleared(void) {
    ASSERT_RUN("\"$A\" check --device soft --quiet buffer_copy/33/normal && \"$A\" cache", 0);
    ASSERT_SAYS(folder);
    ASSERT_SAYS("MB in 2 files, of at most 1000.0 MB");
    ASSERT_FALSE(command_says("compiling  0.0 s"));
    ASSERT_RUN("\"$A\" cache --clear --json", 0);
    ASSERT_SAYS("removed");
    ASSERT_SAYS("\"bytes\": 0, \"files\": 0, \"limit\": 1000000000");
    PASS();
}

/* It waits for input from a pipe that the shell itself holds open. */
#define KILLED(signal)                                                                             \
    IN_TMP "rm -f \"$T.pipe\" && mkfifo \"$T.pipe\" && exec 3<> \"$T.pipe\"; "                     \
           "\"$A\" tokenize - < \"$T.pipe\" & n=$!; until ls \"$T\" | grep -q assay; do "          \
           "sleep 0.1; done; kill -" signal " $n; wait $n"
#define IN_TMP "unset ASSAY_SCRATCH; TMPDIR=\"$T\"; export TMPDIR; "
#define IS_EMPTY "test -z \"$(ls \"$T\")\""
TEST a_run_takes_its_temporary_files_with_it(void) {
    signal(SIGHUP, SIG_DFL); /* nohup has it ignored, also by what is run */
    ASSERT_RUN("rm -rf \"$T\" && mkdir \"$T\"", 0);
    ASSERT_RUN(IN_TMP "\"$A\" check buffer_copy > /dev/null 2>&1", 0);
    ASSERT_RUN(IS_EMPTY, 0);
    ASSERT_RUN(KILLED("TERM"), 143);
    ASSERT_RUN(IS_EMPTY, 0);
    ASSERT_RUN(KILLED("HUP"), 129);
    ASSERT_RUN(IS_EMPTY, 0);
    /* A compiler that leaves files behind, as clang does when it crashes. */
    ASSERT_RUN("printf '#!/bin/sh\\necho \"$TMPDIR\" > \"%s\"; touch \"$TMPDIR/in-1.cpp\"; exit 1' "
               "\"$T.asked\" > \"$T.clang\"; chmod +x \"$T.clang\"; " IN_TMP
               "ASSAY_CLANG=\"$T.clang\" \"$A\" check buffer_copy --device soft; "
               "grep assay \"$T.asked\" && " IS_EMPTY,
               0);
    PASS();
}

TEST what_a_killed_run_left_goes_a_day_later(void) {
    ASSERT_RUN("rm -rf \"$T\" && mkdir \"$T\"", 0);
    ASSERT_RUN(KILLED("KILL"), 137);
    ASSERT_RUN("ls \"$T\"/assay-*", 0);
    ASSERT_RUN("mkdir -p \"$T/assay-$$-abcdef\" \"$T/assay-log\" && " IN_TMP
               "\"$A\" --version && ls \"$T\"/assay-$$-abcdef \"$T\"/assay-*-?????? && "
               "touch -t 202001010000 \"$T\"/assay-* && \"$A\" --version && "
               "test \"$(cd \"$T\"; echo *)\" = \"assay-$$-abcdef assay-log\"",
               0);
    PASS();
}

SUITE(cache_suite) {
    SET_SETUP(enter, NULL);
    SET_TEARDOWN(leave, NULL);
    RUN_TEST(a_kernel_is_compiled_once_and_loaded_again);
    RUN_TEST(a_kernel_with_macros_is_compiled_once_too);
    RUN_TEST(a_changed_kernel_is_never_served_from_the_old_file);
    RUN_TEST(a_damaged_file_is_compiled_again);
    RUN_TEST(the_headers_of_the_shim_are_compiled_once_for_all_kernels);
    RUN_TEST(the_compiler_is_asked_for_its_version_once);
    RUN_TEST(bfloats_of_the_compiler_round_after_every_operation);
    RUN_TEST(kernels_compile_where_headers_cannot_be_precompiled);
    RUN_TEST(processes_that_compile_the_same_kernel_at_once_do_not_disturb_each_other);
    RUN_TEST(a_compiler_that_is_not_there_is_one_clear_sentence);
    RUN_TEST(a_cache_that_cannot_be_written_to_is_this_machines_fault);
    RUN_TEST(what_was_not_used_for_longest_leaves_a_full_cache);
    RUN_TEST(the_cache_tells_its_size_and_is_cleared);
    RUN_TEST(a_run_takes_its_temporary_files_with_it);
    RUN_TEST(what_a_killed_run_left_goes_a_day_later);
}
