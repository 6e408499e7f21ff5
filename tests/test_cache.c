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
#include "transcript.h"

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

SUITE(cache_suite) {
    SET_SETUP(enter, NULL);
    SET_TEARDOWN(leave, NULL);
    RUN_TEST(a_kernel_is_compiled_once_and_loaded_again);
    RUN_TEST(a_kernel_with_macros_is_compiled_once_too);
    RUN_TEST(a_changed_kernel_is_never_served_from_the_old_file);
    RUN_TEST(a_damaged_file_is_compiled_again);
    RUN_TEST(the_headers_of_the_shim_are_compiled_once_for_all_kernels);
    RUN_TEST(processes_that_compile_the_same_kernel_at_once_do_not_disturb_each_other);
    RUN_TEST(a_compiler_that_is_not_there_is_one_clear_sentence);
    signal(SIGHUP, SIG_DFL); /* nohup has it ignored, also by what is run */
    transcript_run("cache");
}
