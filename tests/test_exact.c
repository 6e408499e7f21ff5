/* Checked mode is exact: every kernel of right_*.metal of tests/kernels is left in peace, and every
 * kernel of wrong*.metal is reported with the class that its marked lines name, there and nowhere
 * else. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(exact_suite);

enum { N = 128, GROUPS = 2, DATA = 512, ZEROS = 1024, NAME = 64 };

static device *checked;
static library *kernels;
static buffer *in, *out, *data, *zero;
static err last;

static bool open_checked(void) {
    setenv("MTL_SHADER_VALIDATION", "1", 1);
    setenv("ASSAY_LOOP_SECONDS", "5", 1);
    checked = device_open("soft", &last);
    unsetenv("MTL_SHADER_VALIDATION");
    unsetenv("ASSAY_LOOP_SECONDS");
    kernels = checked ? library_new(checked, support_get_path("tests/kernels"), &last) : NULL;
    return kernels && (in = device_new_buffer(checked, N * 4, STORAGE_SHARED, "in", &last)) &&
           (out = device_new_buffer(checked, N * 4, STORAGE_SHARED, "out", &last)) &&
           (data = device_new_buffer(checked, DATA, STORAGE_SHARED, "data", &last)) &&
           (zero = device_new_buffer(checked, ZEROS, STORAGE_SHARED, "zero", &last));
}

static void close_checked(void) {
    buffer_free(in);
    buffer_free(out);
    buffer_free(data);
    buffer_free(zero);
    library_free(kernels);
    device_close(checked);
}

static bool fill(void) {
    float ramp[N];
    unsigned char bytes[DATA], zeros[ZEROS] = {0};
    for (int i = 0; i < N; i++)
        ramp[i] = (float)(i + 1);
    for (int i = 0; i < DATA; i++)
        bytes[i] = (unsigned char)(i % 60);
    return buffer_upload(in, 0, ramp, sizeof ramp, &last) &&
           buffer_upload(data, 0, bytes, sizeof bytes, &last) &&
           buffer_upload(zero, 0, zeros, sizeof zeros, &last) &&
           buffer_fill_pattern(out, 0, N * 4, POISON_PATTERN, &last);
}

static void bind(launch *l) {
    const msl_signature *s = &l->pipeline->signature;
    for (size_t i = 0; i < s->count; i++) {
        int index = s->params[i].index;
        if (s->params[i].kind != MSL_BUFFER)
            continue;
        if (index == 0)
            launch_bind(l, 0, slice_whole(in), ACCESS_READ, ELEM_F32);
        else if (index == 1)
            launch_bind(l, 1, slice_whole(out), ACCESS_BOTH, ELEM_F32);
        else if (index == 2)
            launch_set_u32(l, 2, N);
        else if (index == 3)
            launch_bind(l, 3, slice_whole(data), s->params[i].is_const ? ACCESS_READ : ACCESS_BOTH,
                        ELEM_U8);
        else
            launch_bind(l, 4, slice_whole(zero), ACCESS_BOTH, ELEM_U32);
    }
    launch_set_groups(l, (size3){GROUPS, 1, 1}, (size3){N / GROUPS, 1, 1});
}

/* Plays one kernel and gives its findings; NULL if it did not run. */
static const finding_list *play(const char *file, const char *kernel) {
    const constant_value constants[] = {{.index = 0, .type = ELEM_U32, .bits = 2},
                                        {.index = 1, .type = ELEM_U8, .bits = 1}};
    bool is_specialised = strcmp(kernel, "specialised") == 0;
    tape *t = tape_new(kernels);
    last = (err){.code = EXIT_OK};
    device_clear_findings(checked);
    launch *l = tape_add_specialised(t, file, kernel, constants, is_specialised ? 2 : 0, &last);
    bool ok = l && fill();
    if (ok)
        bind(l);
    ok = ok && tape_play(t, PLAY_WHOLE, NULL, NULL, &last);
    tape_free(t);
    return ok ? device_get_findings(checked) : NULL;
}

/* A message that names the kernel; f may be NULL. */
static const char *describe(const char *kernel, const finding *f) {
    static char text[700];
    if (f)
        snprintf(text, sizeof text, "%s: %s at line %d: %s", kernel, finding_get_name(f->what),
                 f->line, f->text);
    else
        snprintf(text, sizeof text, "%s: %s", kernel, last.text[0] ? last.text : "nothing found");
    return text;
}

TEST right_kernels_are_left_in_peace(const char *file, const char *kernel) {
    const finding_list *found = play(file, kernel);
    ASSERTm(describe(kernel, NULL), found);
    if (found->count > 0)
        FAILm(describe(kernel, &found->items[0]));
    PASS();
}

/* Does the mark of a line name the class? "// bug: a, b" names two, of which the first must be
 * found. */
static bool is_marked(const char *text, int line, finding_class what, bool *is_first) {
    for (int i = 1; i < line && text; i++)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    const char *end = text ? text + strcspn(text, "\n") : NULL;
    const char *bug = text ? strstr(text, "// bug: ") : NULL;
    if (!bug || bug > end)
        return false;
    char classes[NAME];
    snprintf(classes, sizeof classes, "%.*s", (int)(end - bug - 8), bug + 8);
    const char *name = finding_get_name(what), *found = strstr(classes, name);
    *is_first = *is_first || found == classes;
    return found != NULL;
}

TEST wrong_kernels_are_reported_where_they_are_wrong(const char *file, const char *kernel,
                                                     const char *text) {
    const finding_list *found = play(file, kernel);
    ASSERTm(describe(kernel, NULL), found);
    if (found->count == 0)
        FAILm(describe(kernel, NULL));
    bool is_found = false;
    for (size_t i = 0; i < found->count; i++) {
        const finding *f = &found->items[i];
        ASSERTm(describe(kernel, f), is_marked(text, f->line, f->what, &is_found));
    }
    ASSERTm(describe(kernel, &found->items[0]), is_found);
    if (strcmp(kernel, "overflows") == 0)
        ASSERT_EQ_FMT(19u, (unsigned)found->count, "%u"); /* as many as lines are marked */
    PASS();
}

static const finding_list *play_in(math_mode m, const char *file, const char *kernel) {
    library *safe = kernels;
    kernels = library_new(checked, support_get_path("tests/kernels"), &last);
    if (kernels)
        library_set_math(kernels, m);
    const finding_list *found = kernels ? play(file, kernel) : NULL;
    library_free(kernels);
    kernels = safe;
    return found;
}

TEST functions_of_nan_are_left_in_peace_in_every_math_mode(void) {
    for (math_mode m = 0; m < MATH_COUNT; m++) {
        const finding_list *found = play_in(m, "right_values.metal", "functions_of_nan");
        if (!found || found->count > 0)
            FAILm(describe(math_mode_get_name(m), found ? &found->items[0] : NULL));
    }
    PASS();
}

TEST an_infinity_that_becomes_an_integer_is_found_in_every_math_mode(void) {
    for (math_mode m = 0; m < MATH_COUNT; m++) {
        const finding_list *found = play_in(m, "wrong_values.metal", "infinite_half_to_integer");
        ASSERTm(math_mode_get_name(m), found && found->count == 1);
        ASSERT_EQ(FINDING_CONVERT, found->items[0].what);
        ASSERT_EQ_FMT(N / 2u, (unsigned)found->items[0].count, "%u");
    }
    PASS();
}

/* The next kernel of the text after p, or NULL. Templates count by their host name. */
static const char *next_kernel(const char *p, char *name) {
    const char *plain = strstr(p, "\nkernel void "), *host = strstr(p, "[[host_name(\"");
    if (!plain && !host)
        return NULL;
    bool is_host = host && (!plain || host < plain);
    p = is_host ? host + strlen("[[host_name(\"") : plain + strlen("\nkernel void ");
    if (is_host)
        snprintf(name, NAME, "%.*s", (int)strcspn(p, "\""), p);
    else
        snprintf(name, NAME, "%.*s", (int)strcspn(p, "("), p);
    /* The template itself has no name to be launched by. */
    return strcmp(name, "rows_of") == 0 ? next_kernel(p, name) : p;
}

SUITE(exact_suite) {
    static const char *const files[] = {"right_threads.metal", "right_sync.metal",
                                        "right_values.metal",  "wrong.metal",
                                        "wrong_sync.metal",    "wrong_values.metal"};
    char path[NAME], name[NAME];
    bool is_open = open_checked();
    for (size_t i = 0; i < sizeof files / sizeof *files && is_open; i++) {
        snprintf(path, sizeof path, "tests/kernels/%s", files[i]);
        char *text = os_read_file(support_get_path(path), NULL, &last);
        for (const char *p = text; p && (p = next_kernel(p, name));) {
            if (strncmp(files[i], "right", 5) == 0)
                RUN_TESTp(right_kernels_are_left_in_peace, files[i], name);
            else
                RUN_TESTp(wrong_kernels_are_reported_where_they_are_wrong, files[i], name, text);
        }
        free(text);
    }
    if (is_open) {
        RUN_TEST(functions_of_nan_are_left_in_peace_in_every_math_mode);
        RUN_TEST(an_infinity_that_becomes_an_integer_is_found_in_every_math_mode);
    }
    close_checked();
}
