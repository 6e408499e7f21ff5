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

static slice in, out, data, zero;

static void fill(void *unused) {
    (void)unused;
    float ramp[N];
    unsigned char bytes[DATA], zeros[ZEROS] = {0};
    for (int i = 0; i < N; i++)
        ramp[i] = (float)(i + 1);
    for (int i = 0; i < DATA; i++)
        bytes[i] = (unsigned char)(i % 60);
    in = support_buffer(ramp, sizeof ramp);
    out = support_buffer(NULL, N * 4);
    data = support_buffer(bytes, sizeof bytes);
    zero = support_buffer(zeros, sizeof zeros);
}

static void bind(launch *l) {
    const msl_signature *s = &l->pipeline->signature;
    for (size_t i = 0; i < s->count; i++) {
        int index = s->params[i].index;
        if (s->params[i].kind != MSL_BUFFER)
            continue;
        if (index == 0)
            launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
        else if (index == 1)
            launch_bind(l, 1, out, ACCESS_BOTH, ELEM_F32);
        else if (index == 2)
            launch_set_u32(l, 2, N);
        else if (index == 3)
            launch_bind(l, 3, data, s->params[i].is_const ? ACCESS_READ : ACCESS_BOTH, ELEM_U8);
        else
            launch_bind(l, 4, zero, ACCESS_BOTH, ELEM_U32);
    }
    launch_set_groups(l, (size3){GROUPS, 1, 1}, (size3){N / GROUPS, 1, 1});
}

/* Plays one kernel and gives its findings; NULL if it did not run. */
static const finding_list *play(const char *file, const char *kernel) {
    const constant_value constants[] = {{.index = 0, .type = ELEM_U32, .bits = 2},
                                        {.index = 1, .type = ELEM_U8, .bits = 1}};
    bool is_specialised = strcmp(kernel, "specialised") == 0;
    device_clear_findings(support_get_device());
    launch *l = support_launch_specialised(file, kernel, constants, is_specialised ? 2 : 0);
    if (!l)
        return NULL;
    bind(l);
    return support_play() ? device_get_findings(support_get_device()) : NULL;
}

/* A message that names the kernel; f may be NULL. */
static const char *describe(const char *kernel, const finding *f) {
    static char text[700];
    if (f)
        snprintf(text, sizeof text, "%s: %s at line %d: %s", kernel, finding_get_name(f->what),
                 f->line, f->text);
    else
        snprintf(text, sizeof text, "%s: nothing found %s", kernel, support_get_error()->text);
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

TEST functions_of_nan_are_left_in_peace_in_every_math_mode(void) {
    for (math_mode m = 0; m < MATH_COUNT; m++) {
        support_set_math(m);
        fill(NULL);
        const finding_list *found = play("right_values.metal", "functions_of_nan");
        if (!found || found->count > 0)
            FAILm(describe(math_mode_get_name(m), found ? &found->items[0] : NULL));
    }
    PASS();
}

TEST an_infinity_that_becomes_an_integer_is_found_in_every_math_mode(void) {
    for (math_mode m = 0; m < MATH_COUNT; m++) {
        support_set_math(m);
        fill(NULL);
        const finding_list *found = play("wrong_values.metal", "infinite_half_to_integer");
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
    SET_SETUP(fill, NULL);
    SET_TEARDOWN(support_end_test, NULL);
    bool is_open = support_open(NULL, "MTL_SHADER_VALIDATION=1 ASSAY_LOOP_SECONDS=5");
    for (size_t i = 0; i < sizeof files / sizeof *files && is_open; i++) {
        snprintf(path, sizeof path, "tests/kernels/%s", files[i]);
        char *text = os_read_file(support_get_path(path), NULL, NULL);
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
    support_close();
}
