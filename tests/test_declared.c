/* Variables are watched however they are declared: each row below is a variable of private,
 * threadgroup or constant memory, and is used rightly and wrongly. All rows are in one kernel, which
 * runs one of them in each launch. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(declared_suite);

/* Variables that have no value until `set` runs. */
static const struct {
    const char *declare, *set, *use;
} unset[] = {
    {"float v;", "v = 1;", "v"},
    {"float u = 1, v;", "v = u;", "v"},
    {"thread float v;", "v = 1;", "v"},
    {"volatile float v;", "v = 1;", "v"},
    {"unsigned long int v;", "v = 1;", "v"},
    {"alignas(16) float v;", "v = 1;", "v"},
    {"float v __attribute__((aligned(8)));", "v = 1;", "v"},
    {"__attribute__((aligned(8))) float v;", "v = 1;", "v"},
    {"[[maybe_unused]] float v;", "v = 1;", "v"},
    {"float v [[maybe_unused]];", "v = 1;", "v"},
    {"decltype(1.0f) v;", "v = 1;", "v"},
    {"decltype(out[0] + 1) v;", "v = 1;", "v"},
    {"typename holder<float>::type v;", "v = 1;", "v"},
    {"holder<float>::type v;", "v = 1;", "v"},
    {"typedef float number; number v;", "v = 1;", "v"},
    {"using number = float; number v;", "v = 1;", "v"},
    {"enum { A, B } v;", "v = A;", "int(v)"},
    {"bool v;", "v = true;", "(v ? 1 : 2)"},
    {"half v;", "v = 1;", "v"},
    {"struct { float a, b; } v; v.b = 1;", "v.a = 1;", "v.a"},
    {"struct { float a, b; } u, v;", "v.a = 1;", "v.a"},
    {"struct pair { float a, b; } v; v.a = 1;", "v.b = 1;", "v.b"},
    {"two v; v.a = 1;", "v.b = 1;", "v.b"},
    {"half_made v;", "v.b = 1;", "v.b"},
    {"half_made v(2);", "v.b = 1;", "v.b"},
    {"two v; v.a = 1; two w = v;", "w.b = 1;", "w.b"},
    {"union { float a; uint b; } v;", "v.a = 1;", "v.b"},
    {"union { float a; uint b; } v;", "v.b = 1;", "v.a"},
    {"float4 v; v.x = 1;", "v.w = 1;", "v.w"},
    {"float3 v;", "v = float3(1);", "v.z"},
    {"float2x2 v;", "v = float2x2(1);", "v[1][1]"},
    {"float v[4]; v[0] = 1;", "v[3] = 1;", "v[3]"},
    {"alignas(32) float v[4]; v[0] = 1;", "v[3] = 1;", "v[3]"},
    {"[[maybe_unused]] float v[2][3];", "v[1][2] = 1;", "v[1][2]"},
    {"two v[3]; v[2].a = 1;", "v[2].b = 1;", "v[2].b"},
    {"six v[2]; v[0] = take_six(1);", "v[1] = take_six(2);", "v[1].c"},
    {"array<float, 4> v; v[0] = 1;", "v[3] = 1;", "v[3]"},
    {"auto v = make_part<two>();", "v.b = 1;", "v.b"},
    {"auto v = make_part<parts<uchar, uchar, uchar>>();", "v.b = 1;", "v.b"},
    {"auto v = make_part<parts<half, half, half>>();", "v.c = 1;", "v.c"},
    {"auto v = make_part<parts<float, short, short>>();", "v.c = 1;", "v.c"},
    {"auto v = make_part<parts<float, int, float>>();", "v.b = 1;", "v.b"},
    {"auto v = make_part<parts<int, float, float>>();", "v.c = 1;", "v.c"},
    {"auto v = make_part<parts<float, float, float>>();", "v.c = 1;", "v.c"},
    {"auto v = make_part<parts<long, int, float>>();", "v.c = 1;", "v.c"},
    {"auto v = make_part<parts<float, float, made>>();", "v.b = 1;", "v.b"},
    {"auto v = hand_on(1, make_part<two>(), 2);", "v.b = 1;", "v.b"},
    {"auto v = hand_on(1, make_part<parts<float, int, float>>(), 2);", "v.c = 1;", "v.c"},
    {"auto v = hand_on(1, make_part<parts<char, half, uint>>(), 2);", "v.c = 1;", "v.c"},
    {"auto v = hand_on(1, make_part<parts<float, int, made>>(), 2);", "v.b = 1;", "v.b"},
    {"holds_part v;", "v.part.b = 1;", "v.part.b"},
    {"float4 v = make_vector();", "v.w = 1;", "v.w"},
    {"float3 w = float3(1), v; v.x = 1; w = v;", "w.z = 1;", "w.z"},
    {"thread float *v;", "v = nullptr;", "(v == nullptr ? 1 : 2)"},
    {"device float *u = out, *v;", "v = u;", "(v == out ? 1 : 2)"},
    {"const constant float *v;", "v = plain;", "(v == plain ? 1 : 2)"},
    {"for (int v, i = 0; i < 1; i++) {", "v = 1;", "v; } out[0] += 0"},
    {"if (float v, w = 1; w > 0) {", "v = 1;", "v; } out[0] += 0"},
    {"switch (1) { float v; case 1:", "v = 1;", "v; } out[0] += 0"},
    {"auto f = [&](float w) { float v;", "v = w;", "v; }; f(1); out[0] += 0"},
    {"float v, v1, v2, v3, v4, v5, v6, v7, v8, v9, va, vb, vc, vd, ve, vf, vg, vh, vi, vj, vk, vl, "
     "vm, vn, vo, vp, vq, vr, vs, vt, vu, vv, vw, vx, vy, vz;",
     "vz = 1;", "vz"},
};

/* Arrays of 4 floats that a pointer or an index leaves: `make` ends with `p`, which points to the
 * first. */
typedef enum { PRIVATE, THREADGROUP, CONSTANT } memory;

static const struct {
    memory where;
    const char *make;
} arrays[] = {
    {PRIVATE, "float v[4] = {1, 2, 3, 4}; float w[4] = {}; auto p = w == v ? w : v;"},
    {PRIVATE, "alignas(16) float v[4] = {1, 2, 3, 4}; alignas(64) float w[4] = {}; auto p = w == v "
              "? w : v;"},
    {PRIVATE, "[[maybe_unused]] float v[4] = {out[0], 2}; thread float *p = v;"},
    {PRIVATE, "float v[4] __attribute__((aligned(32))) = {out[0], 2}; thread float *p = v;"},
    {PRIVATE, "const float v[4] = {1, 2, 3, out[0]}; const thread float *p = v;"},
    {PRIVATE, "decltype(1.0f) v[4] = {}; decltype(v[0]) p0 = v[0]; thread float *p = &p0;"},
    {PRIVATE, "typename holder<float>::type v[4] = {}; thread float *p = v;"},
    {PRIVATE, "float tmp[4] = {}; thread float *p = tmp;"},
    {PRIVATE, "float v[2][2] = {}; thread float *p = v[0];"},
    {PRIVATE, "struct { float a[4]; } v = {{1, 2, 3, 4}}; thread float *p = v.a;"},
    {PRIVATE, "union { float a[4]; uint b[4]; } v = {}; thread float *p = v.a;"},
    {PRIVATE, "two v[2] = {}; thread float *p = &v[0].a;"},
    {PRIVATE, "float4 v[1] = {float4(1)}; thread float *p = (thread float *)v;"},
    {PRIVATE, "auto v = made{{1, 2, 3, 4}}; thread float *p = v.a;"},
    {PRIVATE, "struct { float a[4], b[1000]; } v = {}; auto &p = v.a;"},
    {PRIVATE, "struct { float a[4], b[1000]; } v = {}; thread float *p = v.a;"},
    {THREADGROUP, "threadgroup float v[4], w[3500]; SET(v) SET(w) auto p = v;"},
    {THREADGROUP,
     "alignas(16) threadgroup float v[4]; threadgroup float w[3500]; SET(v) SET(w) auto p = v;"},
    {THREADGROUP, "threadgroup float v[2][2]; SET(v[0]) SET(v[1]) threadgroup float *p = v[0];"},
    {THREADGROUP, "threadgroup made v; SET(v.a) threadgroup float *p = v.a;"},
    {THREADGROUP, "threadgroup large v; SET(v.a) SET(v.b) auto &p = v.a;"},
    {THREADGROUP, "threadgroup large v; SET(v.a) SET(v.b) threadgroup float *p = &v.a[0];"},
    {THREADGROUP, "threadgroup float *p = first; for (int k = 0; k < 4; k++) p[k] = 1; "
                  "for (int k = 0; k < 256; k++) second[k] = 1;"},
    {CONSTANT, "constant float *q[2] = {plain, after}; constant float *p = q[row < 0];"},
    {CONSTANT, "constant float *q[2] = {statics, after}; constant float *p = q[row < 0];"},
    {CONSTANT, "constant float *q[2] = {aligned, after}; constant float *p = q[row < 0];"},
    {CONSTANT, "constant float *q[2] = {pairs[0], after}; constant float *p = q[row < 0];"},
    {CONSTANT, "constant float *q[2] = {record.a, after}; constant float *p = q[row < 0];"},
    {CONSTANT, "constant float *q[2] = {inside::table, after}; constant float *p = q[row < 0];"},
};

/* Pointers to variables whose life may have ended: `p` points to one of those of `make`. */
static const char *const lives[] = {
    "float w = 1; thread float *p = &w; { float v = 2; p = set ? p : &v; }",
    "float w = 1; thread float *p = &w; for (int i = 0; i < 2; i++) { float v = 2; if (!set) p = "
    "&v; }",
    "float w = 1; thread float *p = &w; { float v[4] = {2}; if (!set) p = v; *p += 1; }",
    "float w = 1; thread float *p = &w; { two v = {1, 2}; if (!set) p = &v.b; *p += 1; }",
    "float w = 1; thread float *p = &w; if (!set) { float v = 2; thread float &r = same(v); p = "
    "&r; }",
    "float w = 1; auto p = set ? &w : &local(2);",
    "float w = 1; auto p = set ? &w : argument(2);",
    "float w = 1; refers to = {&w}; { float v = 2; if (!set) keep(to, v); *to.at += 1; } auto p = "
    "to.at;",
    "float w = 1; refers to = {&w}; { float v = 2; refers r = {&v}; if (!set) to = r; } auto p = "
    "to.at;",
    "float w = 1; auto f = [&](int i) -> thread float & { float v = 2; return i ? w : same(v); }; "
    "auto p = &f(set);",
};

enum {
    LIFE_COUNT = sizeof lives / sizeof *lives,
    UNSET_COUNT = sizeof unset / sizeof *unset,
    ARRAY_COUNT = sizeof arrays / sizeof *arrays,
};

static const char head[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "template <class T> struct holder {\n    typedef T type;\n};\n"
    "struct two {\n    float a, b;\n};\n"
    "struct made {\n    float a[4];\n};\n"
    "struct six {\n    short a, b, c;\n};\n"
    "inline six take_six(short x) {\n    const six s = {x, x, x};\n    return s;\n}\n"
    "template <class A, class B, class C> struct parts {\n    A a;\n    B b;\n    C c;\n};\n"
    "template <class T> T make_part() {\n    T v;\n    v.a = 1;\n    return v;\n}\n"
    "template <class T> T hand_on(int, T v, int) {\n    return v;\n}\n"
    "struct holds_part {\n    two part;\n    holds_part() : part(make_part<two>()) {}\n};\n"
    "inline float4 make_vector() {\n    float4 v;\n    v.x = 1;\n    return v;\n}\n"
    "struct large {\n    float a[4], b[3500];\n};\n"
    "struct half_made {\n    float a, b;\n    half_made() : a(1) {}\n"
    "    half_made(float x) : a(x) {}\n};\n"
    "constant float plain[4] = {1, 2, 3, 4};\n"
    "static constant float statics[] = {1, 2, 3, 4};\n"
    "alignas(16) constant float aligned[4] = {1, 2, 3, 4};\n"
    "constant float pairs[2][2] = {{1, 2}, {3, 4}};\nconstant made record = {{1, 2, 3, 4}};\n"
    "namespace inside { constant float table[4] = {1, 2, 3, 4}; }\n"
    "constant float after[64] = {5, 6};\n"
    "struct refers {\n    thread float *at;\n};\n"
    "inline thread float &same(thread float &x) {\n    return x;\n}\n"
    "inline thread float &local(float x) {\n    float y = x;\n    return y;\n}\n"
    "inline thread float *argument(float x) {\n    return &x;\n}\n"
    "inline void keep(thread refers &r, thread float &x) {\n    r.at = &x;\n}\n"
    "#define SET(a) for (auto &e : a) e = 1;\n"
    "kernel void rows(device float *out [[buffer(0)]], constant int &row [[buffer(1)]],\n"
    "    constant int &set [[buffer(2)]], constant int &by [[buffer(3)]],\n"
    "    threadgroup float *first [[threadgroup(0)]], threadgroup float *second "
    "[[threadgroup(1)]]) {\n";

static library *kernels;
static tape *played;
static int first_line; /* of the rows */
static err last;

static bool write_kernel(const char *path) {
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    fputs(head, f);
    first_line = 1;
    for (const char *p = head; *p; p++)
        first_line += *p == '\n';
    for (int i = 0; i < UNSET_COUNT; i++)
        fprintf(f, "if (row == %d) { %s if (set) { %s } out[0] += %s; }\n", i, unset[i].declare,
                unset[i].set, unset[i].use);
    for (int i = 0; i < ARRAY_COUNT; i++)
        fprintf(f, "if (row == %d) { %s out[0] += p[by < 0 ? by : by + 3]; }\n", UNSET_COUNT + i,
                arrays[i].make);
    for (int i = 0; i < LIFE_COUNT; i++)
        fprintf(f, "if (row == %d) { %s out[0] += *p; }\n", UNSET_COUNT + ARRAY_COUNT + i,
                lives[i]);
    fputs("}\n", f);
    fclose(f);
    bool ok = os_write_file(path, text, strlen(text), &last);
    free(text);
    return ok;
}

static bool open_kernel(void) {
    char folder[] = "/tmp/assay-declared-XXXXXX", path[64];
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/rows.metal", folder);
    bool ok = support_open(NULL, "MTL_SHADER_VALIDATION=1") && write_kernel(path) &&
              (kernels = library_new(support_get_device(), folder, &last));
    played = ok ? tape_new(kernels) : NULL;
    ok = ok && tape_add(played, "rows.metal", "rows", &last);
    unlink(path);
    rmdir(folder);
    return ok;
}

static const finding_list *play(int row, int set, int by) {
    const float zero = 0;
    tape_free(played);
    played = tape_new(kernels);
    launch *rows = tape_add(played, "rows.metal", "rows", &last);
    if (!rows)
        return NULL;
    launch_bind(rows, 0, support_buffer(&zero, sizeof zero), ACCESS_BOTH, ELEM_F32);
    launch_set_bytes(rows, 1, &row, sizeof row);
    launch_set_bytes(rows, 2, &set, sizeof set);
    launch_set_bytes(rows, 3, &by, sizeof by);
    rows->threadgroup_bytes[0] = 16;
    rows->threadgroup_bytes[1] = 1024;
    launch_set_groups(rows, (size3){1, 1, 1}, (size3){1, 1, 1});
    device_clear_findings(support_get_device());
    return tape_play(played, PLAY_WHOLE, NULL, NULL, &last)
               ? device_get_findings(support_get_device())
               : NULL;
}

static const char *describe(const char *text, int by, const finding_list *found) {
    static char message[900];
    const finding *f = found && found->count ? &found->items[0] : NULL;
    snprintf(message, sizeof message, "%.300s by %d: %s at line %d: %s", text, by,
             f ? finding_get_name(f->what) : "no finding", f ? f->line : 0,
             !found ? last.text
             : f    ? f->text
                    : "");
    return message;
}

TEST a_variable_without_a_value_is_told_and_one_with_a_value_is_not(int row) {
    const finding_list *found = play(row, 1, 0);
    if (!found || found->count > 0)
        FAILm(describe(unset[row].declare, 0, found));
    found = play(row, 0, 0);
    if (!found || found->count != 1 || found->items[0].what != FINDING_UNWRITTEN ||
        found->items[0].line != first_line + row)
        FAILm(describe(unset[row].declare, 0, found));
    PASS();
}

TEST a_pointer_that_leaves_its_array_is_told_and_one_that_stays_is_not(int which) {
    static const int by[][5] = {
        [PRIVATE] = {1, 900, -1, -900, 2},
        [THREADGROUP] = {1, 100, 3000, 8000, -8000},
        [CONSTANT] = {1, 2, 200, -1, -200},
    };
    const int row = UNSET_COUNT + which;
    const finding_list *found = play(row, 1, 0);
    if (!found || found->count > 0)
        FAILm(describe(arrays[which].make, 0, found));
    for (int i = 0; i < 5; i++) {
        const int n = by[arrays[which].where][i];
        found = play(row, 1, n);
        if (!found || found->count != 1 || found->items[0].what != FINDING_LOAD_OUTSIDE ||
            found->items[0].line != first_line + row)
            FAILm(describe(arrays[which].make, n, found));
    }
    PASS();
}

TEST a_pointer_to_a_variable_whose_life_has_ended_is_told(int which) {
    const int row = UNSET_COUNT + ARRAY_COUNT + which;
    const finding_list *found = play(row, 1, 0);
    if (!found || found->count > 0)
        FAILm(describe(lives[which], 0, found));
    found = play(row, 0, 0);
    if (!found || found->count != 1 || found->items[0].what != FINDING_LOAD_OUTSIDE ||
        found->items[0].line != first_line + row || !strstr(found->items[0].text, "life has ended"))
        FAILm(describe(lives[which], 0, found));
    PASS();
}

TEST findings_name_the_variable_and_its_line(void) {
    char want[64];
    snprintf(want, sizeof want, "'vz' of line %d", first_line + UNSET_COUNT - 1);
    const finding_list *found = play(UNSET_COUNT - 1, 0, 0);
    ASSERT(found && found->count == 1);
    ASSERTm(found->items[0].text, strstr(found->items[0].text, want));
    PASS();
}

SUITE(declared_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    if (open_kernel()) {
        for (int i = 0; i < UNSET_COUNT; i++)
            RUN_TESTp(a_variable_without_a_value_is_told_and_one_with_a_value_is_not, i);
        for (int i = 0; i < ARRAY_COUNT; i++)
            RUN_TESTp(a_pointer_that_leaves_its_array_is_told_and_one_that_stays_is_not, i);
        for (int i = 0; i < LIFE_COUNT; i++)
            RUN_TESTp(a_pointer_to_a_variable_whose_life_has_ended_is_told, i);
        RUN_TEST(findings_name_the_variable_and_its_line);
    } else {
        fprintf(stderr, "%s\n%s\n", last.text, last.detail);
    }
    tape_free(played);
    library_free(kernels);
    support_close();
}
