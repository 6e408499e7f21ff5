/* The MSL front end: the C++ that a kernel's text is turned into. */
#include <greatest.h>
#include <string.h>

#include "msl_text.h"

SUITE(msl_rewrite_suite);

TEST storage_of_a_threadgroup_becomes_a_reference_to_its_slot(void) {
    ASSERT(text_read("kernel void k(device float *x) {\n"
                     "  threadgroup float a[8], b[2][4];\n"
                     "  threadgroup atomic_uint c;\n"
                     "  threadgroup __attribute__((aligned(16))) half d[8];\n"
                     "}\n"
                     "kernel void other(device float *x) { threadgroup vec<float, 2> e; }\n"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(text_has("&a = assay::threadgroup_variable<assay_type_0, 0>(\"a\");"));
    ASSERT(text_has("&b = assay::threadgroup_variable<assay_type_1, 1>(\"b\");"));
    ASSERT(text_has("typedef atomic_uint assay_type_2; assay_type_2 &c ="));
    ASSERT(text_has("aligned") &&
           text_has("auto &d = assay::threadgroup_variable<assay_type_3, 3>(\"d\").value;"));
    ASSERT(text_rewrite("other", NULL, 0));
    ASSERT(text_has("&e = assay::threadgroup_variable<assay_type_0, 0>(\"e\");"));
    PASS();
}

TEST pointers_to_threadgroup_memory_are_not_storage(void) {
    ASSERT(text_read("kernel void k(threadgroup float *x) {\n"
                     "  threadgroup float *p = x, *q[2];\n"
                     "  threadgroup float (&r)[4] = *(threadgroup float (*)[4])x;\n"
                     "  threadgroup float (*s)[4];\n"
                     "  threadgroup auto &t = x[0];\n"
                     "}\n"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(!text_has("threadgroup_variable") && !text_has("threadgroup float"));
    PASS();
}

TEST storage_outside_of_a_kernel_is_refused(void) {
    ASSERT(
        text_read("void f() { threadgroup float x[4]; }\nkernel void k(device int *y) { f(); }"));
    ASSERT_FALSE(text_rewrite("k", NULL, 0));
    ASSERT(text_says("test.metal:1") && text_says(" x "));
    PASS();
}

TEST address_spaces_and_attributes_are_taken_out(void) {
    ASSERT(text_read(
        "constant float table[2] = {0.5, 1};\n"
        "struct s { float v; float get() const device { return v; }\n"
        "  float get() const constant { return v; } s(float a) thread : v(a) {}\n"
        "  s(float b) constant : v(b) {} };\n"
        "float f(device const float *p) { return p[0]; }\n"
        "float f(constant float *q) { return q[0]; }\n"
        "kernel void k(device float *x [[buffer(0)]], constant const s &y) {\n"
        "  int a[2], b[2]; x[a[b[0]]] = table[0]; f(x); [[maybe_unused]] auto l = [](int i) "
        "{ return i; };\n"
        "}\n"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(text_has("const float table[2] = {0.5f, 1};"));
    ASSERT(text_has("x[a[b[0]]] = table[0];") && text_has("= [](int i) { return i; };"));
    ASSERT(!text_has("device") && !text_has("constant ") && !text_has("[["));
    ASSERT(!text_has("const const") && !text_has("maybe_unused"));
    const char *first = strstr(text_cpp, "float get() const");
    ASSERT(first && !strstr(first + 1, "float get()"));
    first = strstr(text_cpp, "float f(");
    ASSERT(first && !strstr(first + 1, "float f("));
    first = strstr(text_cpp, "s(float");
    ASSERT(first && !strstr(first + 1, " s(float"));
    PASS();
}

TEST what_was_defined_twice_stays_twice(void) {
    ASSERT(text_read("int f(int a) { return a; }\nint f(int a) { return a; }\n"
                     "kernel void k(device int *x) { x[0] = f(1); }"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(text_has("int f(int a) { return a; }\nint f(int a) { return a; }"));
    PASS();
}

TEST what_a_kernel_does_not_reach_is_left_out(void) {
    ASSERT(text_read("struct far { int v; };\n"
                     "struct pair { int a, b; };\n"
                     "inline pair operator+(pair x, pair y) { return {x.a + y.a, x.b + y.b}; }\n"
                     "inline int deep(int v) { return v + 1; }\n"
                     "inline int near(int v) { return deep(v); }\n"
                     "inline int apart(far v) { return v.v; }\n"
                     "template <typename T> struct traits { static constexpr int n = 1; };\n"
                     "template <> struct traits<int> { static constexpr int n = 2; };\n"
                     "template <> struct _numeric_limits_impl<pair> {};\n"
                     "struct { int z; } constant table = {3};\n"
                     "static_assert(sizeof(pair) == 8, \"two\");\n"
                     "kernel void k(device int *x) { x[0] = near(traits<int>::n); }\n"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(text_has("int near(") && text_has("int deep(") && text_has("struct traits<int>"));
    ASSERT(text_has("operator+") && text_has("struct pair") && text_has("static_assert") &&
           text_has("table"));
    ASSERT(text_has("_numeric_limits_impl<pair>")); /* numeric_limits<pair> of Metal asks for it */
    ASSERT(!text_has("apart(") && !text_has("struct far"));
    ASSERT_EQ(12, text_find_line(strchr(text_cpp, '\n') + 1, "near(traits"));
    PASS();
}

TEST kernels_that_are_not_wanted_are_left_out_unless_this_one_names_them(void) {
    ASSERT(text_read("[[kernel]]void b(device int *x) {}\nkernel void a(device int *x) { b(x); }\n"
                     "kernel void c(device int *x) { b(x); }\n"
                     "template <typename T> kernel void d(device T *x) { x[0] = T(7); }\n"
                     "template [[host_name(\"d_int\")]] kernel void d<int>(device int *x);\n"));
    ASSERT(text_rewrite("a", NULL, 0));
    ASSERT(text_has("static void b(") && text_has("void a(") && !text_has("static void a("));
    ASSERT(!text_has("void c(") && text_has("b(x)") && !text_has("template") && !text_has("T(7)"));
    ASSERT(text_rewrite("d_int", NULL, 0));
    ASSERT(text_has("T(7)") && !text_has("void a("));
    ASSERT_EQ(4, text_find_line(strchr(text_cpp, '\n') + 1, "T(7)"));
    ASSERT(text_rewrite("b", NULL, 0));
    ASSERT(!text_has("void a(") && !text_has("static void b("));
    ASSERT(
        text_has("using assay_params = assay::params<\n    assay::param<assay::kind_buffer, 0>>;"));
    ASSERT(text_has("ASSAY_EXPORT"));
    PASS();
}

TEST every_token_keeps_its_line(void) {
    static const char source[] = "// one\n#include <metal_stdlib>\n/* three\nfour */ constant\n"
                                 "float five = 5.;\n#pragma unroll\nkernel\nvoid k(\n"
                                 "  device float *x\n  [[buffer(0)]]) {\n  threadgroup float\n"
                                 "    a[2];\n  x[0] = thirteen;\n#pragma unused(a)\n}\n";
    ASSERT(text_read(source));
    ASSERT(text_rewrite("k", NULL, 0));
    const char *body = strchr(text_cpp, '\n') + 1; /* after #line 1 */
    ASSERT_STR_EQ("#line 1 \"test.metal\"", strtok(text_cpp, "\n"));
    ASSERT_EQ(5, text_find_line(body, "five"));
    ASSERT_EQ(8, text_find_line(body, "void k("));
    ASSERT_EQ(13, text_find_line(body, "thirteen"));
    ASSERT(!strstr(body, "#pragma") && !strstr(body, "#include"));
    PASS();
}

TEST literals_are_float_as_in_msl(void) {
    ASSERT(
        text_read("kernel void k(device float *x) {\n"
                  "  x[0] = 0.5 + 1. + .25 + 1e-3 + 2.0f + 3.0h + 0x1p-3 + 7 + 0xE + 1'000.5;\n}"));
    ASSERT(text_rewrite("k", NULL, 0));
    ASSERT(text_has("0.5f + 1.f + .25f + 1e-3f + 2.0f + 3.0h + 0x1p-3f + 7 + 0xE + 1'000.5f;"));
    PASS();
}

SUITE(msl_rewrite_suite) {
    RUN_TEST(storage_of_a_threadgroup_becomes_a_reference_to_its_slot);
    RUN_TEST(pointers_to_threadgroup_memory_are_not_storage);
    RUN_TEST(storage_outside_of_a_kernel_is_refused);
    RUN_TEST(address_spaces_and_attributes_are_taken_out);
    RUN_TEST(what_was_defined_twice_stays_twice);
    RUN_TEST(what_a_kernel_does_not_reach_is_left_out);
    RUN_TEST(kernels_that_are_not_wanted_are_left_out_unless_this_one_names_them);
    RUN_TEST(every_token_keeps_its_line);
    RUN_TEST(literals_are_float_as_in_msl);
    text_clear();
}
