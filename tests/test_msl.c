/* The MSL front end: what it finds in a text and what it turns it into; test_msl_launch.c has the
 * launches that it refuses. The text is here, not in files, unless files are tested. No device and
 * no compiler, except where a text needs a preprocessor. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/msl/msl.h"

SUITE(msl_suite);

static err why;
static msl_unit *unit;
static char *cpp;

/* The unit and the C++ of the test before are gone when a test reads the next text. */
static bool read_text(const char *text) {
    free(cpp);
    cpp = NULL;
    msl_free(unit);
    memset(&why, 0, sizeof why);
    unit = msl_from_text("test.metal", text, &why);
    return unit != NULL;
}

static const msl_signature *find(const char *kernel) {
    return msl_find_kernel(unit, kernel, &why);
}

static bool rewrite(const char *kernel, const msl_constant_text *constants, size_t count) {
    free(cpp);
    cpp = msl_rewrite(unit, kernel, constants, count, &why);
    return cpp != NULL;
}

static bool has(const char *part) {
    return strstr(cpp, part) != NULL;
}

static bool says(const char *part) {
    return strstr(why.text, part) != NULL;
}

static int line_of(const char *text, const char *part) {
    const char *at = strstr(text, part);
    int line = 1;
    for (const char *p = text; at && p < at; p++)
        line += *p == '\n';
    return at ? line : -1;
}

static const char attributes[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void all(device const float4 *src [[buffer(3)]], device half *dst,\n"
    "    constant uint &n, threadgroup float *shared [[threadgroup(1)]], threadgroup char *more,\n"
    "    uint3 a [[thread_position_in_grid]], ushort2 b [[thread_position_in_threadgroup]],\n"
    "    uint c [[threadgroup_position_in_grid]], uint d [[threads_per_threadgroup]],\n"
    "    uint e [[dispatch_threads_per_threadgroup]], uint f [[threadgroups_per_grid]],\n"
    "    uint g [[threads_per_grid]], uint h [[thread_index_in_threadgroup]],\n"
    "    uint i [[simdgroup_index_in_threadgroup]], uint j [[thread_index_in_simdgroup]],\n"
    "    uint k [[thread_execution_width]], uint l [[simdgroups_per_threadgroup]],\n"
    "    uint m [[dispatch_simdgroups_per_threadgroup]], uint o [[thread_index_in_quadgroup]],\n"
    "    uint p [[quadgroup_index_in_threadgroup]], uint q [[quadgroups_per_threadgroup]],\n"
    "    uint3 r [[grid_origin]], uint3 s [[grid_size]], uint t [[threads_per_simdgroup]],\n"
    "    uint u [[dispatch_threads_per_grid]]) {}\n";

TEST kernel_attributes_of_all_kinds_are_found(void) {
    static const msl_kind kinds[] = {
        MSL_BUFFER,
        MSL_BUFFER,
        MSL_BUFFER,
        MSL_THREADGROUP,
        MSL_THREADGROUP,
        MSL_THREAD_POSITION_IN_GRID,
        MSL_THREAD_POSITION_IN_THREADGROUP,
        MSL_THREADGROUP_POSITION_IN_GRID,
        MSL_THREADS_PER_THREADGROUP,
        MSL_DISPATCH_THREADS_PER_THREADGROUP,
        MSL_THREADGROUPS_PER_GRID,
        MSL_THREADS_PER_GRID,
        MSL_THREAD_INDEX_IN_THREADGROUP,
        MSL_SIMDGROUP_INDEX_IN_THREADGROUP,
        MSL_THREAD_INDEX_IN_SIMDGROUP,
        MSL_THREADS_PER_SIMDGROUP,
        MSL_SIMDGROUPS_PER_THREADGROUP,
        MSL_DISPATCH_SIMDGROUPS_PER_THREADGROUP,
        MSL_THREAD_INDEX_IN_QUADGROUP,
        MSL_QUADGROUP_INDEX_IN_THREADGROUP,
        MSL_QUADGROUPS_PER_THREADGROUP,
        MSL_GRID_ORIGIN,
        MSL_GRID_SIZE,
        MSL_THREADS_PER_SIMDGROUP,
        MSL_THREADS_PER_GRID,
    };
    ASSERT(read_text(attributes));
    const msl_signature *s = find("all");
    ASSERT(s);
    ASSERT_EQ_FMT(sizeof kinds / sizeof *kinds, s->count, "%zu");
    for (size_t i = 0; i < s->count; i++)
        ASSERT_EQ_FMT((int)kinds[i], (int)s->params[i].kind, "%d");
    ASSERT_EQ(3, s->params[5].dimensions);
    ASSERT_EQ(2, s->params[6].dimensions);
    ASSERT_EQ(1, s->params[7].dimensions);
    ASSERT_EQ(3, s->line);
    ASSERT_EQ(4, s->params[2].line);
    PASS();
}

TEST parameters_say_type_space_and_size(void) {
    ASSERT(read_text(attributes));
    const msl_param *p = find("all")->params;
    ASSERT_STR_EQ("const float4 *", p[0].type);
    ASSERT_STR_EQ("src", p[0].name);
    ASSERT(p[0].is_const && !p[0].is_reference && p[0].space == MSL_SPACE_DEVICE);
    ASSERT_EQ(16, p[0].value_bytes);
    ASSERT(!p[1].is_const && p[1].value_bytes == 2);
    ASSERT_STR_EQ("uint &", p[2].type);
    ASSERT(p[2].is_const && p[2].is_reference && p[2].space == MSL_SPACE_CONSTANT);
    ASSERT_EQ(MSL_SPACE_THREADGROUP, p[3].space);
    PASS();
}

TEST parameters_without_an_index_take_the_free_ones_in_order(void) {
    ASSERT(read_text(attributes));
    const msl_param *p = find("all")->params;
    ASSERT_EQ(3, p[0].index);
    ASSERT_EQ(0, p[1].index);
    ASSERT_EQ(1, p[2].index);
    ASSERT_EQ(1, p[3].index);
    ASSERT_EQ(0, p[4].index);
    ASSERT_EQ(-1, p[5].index);
    PASS();
}

TEST indices_may_be_named_by_enumerators_and_constants(void) {
    ASSERT(
        read_text("enum args { first, second = first + 4, third };\n"
                  "constant constexpr int fourth = 2 * third;\n"
                  "kernel void k(device int *a [[buffer(third)]], device int *b\n"
                  "  [[buffer(fourth + (1 << 2))]], device packed_float3 *c [[buffer(0x7)]]) {}"));
    const msl_param *p = find("k")->params;
    ASSERT_EQ(5, p[0].index);
    ASSERT_EQ(14, p[1].index);
    ASSERT_EQ(7, p[2].index);
    ASSERT_EQ(12, p[2].value_bytes);
    PASS();
}

TEST kernels_are_found_however_they_are_marked(void) {
    ASSERT(
        read_text("[[kernel]] void a(device int *x) {}\n"
                  "[[kernel, max_total_threads_per_threadgroup(32 * 4)]] void b(device int *x) {}\n"
                  "[[host_name(\"other\")]] kernel void c(device int *x) {}\n"
                  "namespace deep { namespace er { kernel void d(device int *x) {} } }\n"
                  "void e(device int *x) {}\n"
                  "kernel void f(device int *x);\n"));
    ASSERT_EQ_FMT((size_t)4, msl_count_kernels(unit), "%zu");
    ASSERT(find("a") && find("deep::er::d"));
    ASSERT_EQ(128, find("b")->max_total_threads);
    ASSERT_STR_EQ("c", find("other")->function);
    PASS();
}

TEST templates_are_known_by_the_host_names_of_their_instantiations(void) {
    ASSERT(read_text(
        "template <typename T, int N = 2, bool B = (N > 1)>\n"
        "[[kernel, max_total_threads_per_threadgroup(N * 32)]] void t(device T *x [[buffer(1)]]) "
        "{}\n"
        "template [[host_name(\"t_half\")]] [[kernel]] void t<half>(device half *x "
        "[[buffer(1)]]);\n"
        "template [[host_name(\"t_\" \"float\")]] kernel decltype(t<float, 8>) t<float, 8>;\n"
        "typedef decltype(t<int>) t_t;\n"
        "template [[host_name(\"t_int\")]] kernel t_t t<int, sizeof(int) < 8 ? 3 : 4>;\n"));
    ASSERT_EQ_FMT((size_t)3, msl_count_kernels(unit), "%zu");
    ASSERT_STR_EQ("t<half>", find("t_half")->function);
    ASSERT_EQ(64, find("t_half")->max_total_threads);
    ASSERT_EQ(2, find("t_half")->params[0].value_bytes);
    ASSERT_STR_EQ("t<float, 8>", find("t_float")->function);
    ASSERT_EQ(256, find("t_float")->max_total_threads);
    ASSERT(find("t_int"));
    ASSERT(rewrite("t_float", NULL, 0));
    ASSERT(has("assay_function = &t<float, 8>;") && has("ASSAY_EXPORT_FOR(256)"));
    ASSERT(!has("host_name") && !has("t<half>"));
    PASS();
}

TEST deduced_instantiations_are_chosen_by_their_parameters(void) {
    ASSERT(read_text(
        "template <typename T> kernel void t(device T *x, constant T &y) {}\n"
        "template [[host_name(\"t_f\")]] kernel void t(device float *x, constant float &y);"));
    ASSERT(rewrite("t_f", NULL, 0));
    ASSERT(has("assay_function = static_cast<void (*)(float *, const float &)>(&t);"));
    PASS();
}

TEST an_unknown_kernel_is_answered_with_those_there_are(void) {
    ASSERT(read_text("kernel void one(device int *x) {} kernel void two(device int *x) {}"));
    ASSERT_FALSE(find("three"));
    ASSERT(says("three") && says("one, two") && says("test.metal"));
    ASSERT_EQ(EXIT_USAGE, why.code);
    PASS();
}

TEST what_is_not_supported_is_an_error_of_its_kernel_alone(void) {
    ASSERT(read_text("kernel void image(texture2d<float> t [[texture(0)]]) {}\n"
                     "kernel void bare(device int *x, uint i) {}\n"
                     "kernel void far(device int *x [[buffer(31)]]) {}\n"
                     "vertex float4 corner(uint id [[vertex_id]]) { return 0; }\n"
                     "kernel void good(device int *x) {}\n"));
    ASSERT_FALSE(find("image"));
    ASSERT(says("image") && says("texture"));
    ASSERT_FALSE(find("bare"));
    ASSERT(says("bare") && says("parameter i"));
    ASSERT_FALSE(find("far"));
    ASSERT(says("far") && says("0 to 30"));
    ASSERT(rewrite("good", NULL, 0));
    ASSERT(!has("texture2d") && !has("corner"));
    PASS();
}

static const char gated[] =
    "constant bool masked [[function_constant(7)]];\n"
    "constant bool plain = !masked;\n"
    "static constant uint width [[function_constant(3 + 1)]];\n"
    "constant float bias [[function_constant(9)]];\n"
    "constant float shift = is_function_constant_defined(bias) ? bias : 1.5;\n"
    "uint helper() { return width; }\n"
    "kernel void k(device int *x [[buffer(0)]],\n"
    "  device int *mask [[buffer(1), function_constant(masked)]],\n"
    "  device int *other [[buffer(1), function_constant(plain)]]) {\n"
    "  x[0] = helper() + shift;\n"
    "}\n"
    "kernel void free(device int *x) {}\n";

TEST a_kernel_that_reaches_simdgroup_functions_is_known(void) {
    ASSERT(read_text("float sum(float x) { return simd_sum(x); } /* simdgroup_barrier */\n"
                     "float twice(float x) { return sum(x) + sum(x); }\n"
                     "template <typename T> void add(device T *x) { x[0] = twice(x[0]); }\n"
                     "kernel void deep(device float *x) { add(x); }\n"
                     "kernel void plain(device float *x) { x[0] += 1; /* simd_sum(x[0]) */ }\n"
                     "kernel void lane(device uint *x, uint i [[thread_index_in_simdgroup]]) "
                     "{ x[i] = i; }\n"
                     "kernel void tile(device float *x) { simdgroup_float8x8 m; }\n"));
    ASSERT(msl_uses_simdgroups(unit, "deep"));
    ASSERT_FALSE(msl_uses_simdgroups(unit, "plain"));
    ASSERT(msl_uses_simdgroups(unit, "lane"));
    ASSERT(msl_uses_simdgroups(unit, "tile"));
    PASS();
}

TEST function_constants_are_found_with_type_and_index(void) {
    ASSERT(read_text(gated));
    ASSERT_EQ_FMT((size_t)3, msl_count_constants(unit), "%zu");
    const msl_constant *c = msl_get_constant(unit, 1);
    ASSERT_STR_EQ("width", c->name);
    ASSERT_STR_EQ("uint", c->type);
    ASSERT_EQ(4, c->index);
    ASSERT_EQ(3, c->line);
    PASS();
}

TEST a_gated_parameter_is_there_or_not_by_its_constant(void) {
    const msl_constant_text on[] = {{7, "true"}, {4, "64u"}}, off[] = {{7, "false"}, {4, "64u"}};
    msl_signature s;
    ASSERT(read_text(gated));
    ASSERT(msl_specialise(unit, "k", on, 2, &s, &why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("mask", s.params[1].name);
    ASSERT(msl_specialise(unit, "k", off, 2, &s, &why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("other", s.params[1].name);
    ASSERT_FALSE(msl_specialise(unit, "k", NULL, 0, &s, &why));
    ASSERT(says("masked") && says("index 7"));
    ASSERT(rewrite("k", off, 2));
    ASSERT(has("assay::param<assay::kind_off, 1>"));
    PASS();
}

TEST function_constants_become_constexpr_values(void) {
    const msl_constant_text given[] = {{7, "true"}, {4, "64u"}};
    ASSERT(read_text(gated));
    ASSERT(rewrite("k", given, 2));
    ASSERT(has("static constexpr bool masked = true;"));
    ASSERT(has("uint width = 64u;") && !has("function_constant("));
    ASSERT(has("shift = false ? bias : 1.5f;"));
    PASS();
}

TEST a_constant_that_is_used_and_not_given_is_an_error(void) {
    const msl_constant_text given[] = {{7, "true"}};
    ASSERT(read_text(gated));
    ASSERT_FALSE(rewrite("k", given, 1));
    ASSERT(says("kernel k") && says("width") && says("index 4"));
    ASSERT(rewrite("free", NULL, 0));
    PASS();
}

TEST storage_of_a_threadgroup_becomes_a_reference_to_its_slot(void) {
    ASSERT(read_text("kernel void k(device float *x) {\n"
                     "  threadgroup float a[8], b[2][4];\n"
                     "  threadgroup atomic_uint c;\n"
                     "  threadgroup __attribute__((aligned(16))) half d[8];\n"
                     "}\n"
                     "kernel void other(device float *x) { threadgroup vec<float, 2> e; }\n"));
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(has("&a = assay::threadgroup_variable<assay_type_0, 0>(\"a\");"));
    ASSERT(has("&b = assay::threadgroup_variable<assay_type_1, 1>(\"b\");"));
    ASSERT(has("typedef atomic_uint assay_type_2; assay_type_2 &c ="));
    ASSERT(has("aligned") &&
           has("auto &d = assay::threadgroup_variable<assay_type_3, 3>(\"d\").value;"));
    ASSERT(rewrite("other", NULL, 0));
    ASSERT(has("&e = assay::threadgroup_variable<assay_type_0, 0>(\"e\");"));
    PASS();
}

TEST pointers_to_threadgroup_memory_are_not_storage(void) {
    ASSERT(read_text("kernel void k(threadgroup float *x) {\n"
                     "  threadgroup float *p = x, *q[2];\n"
                     "  threadgroup float (&r)[4] = *(threadgroup float (*)[4])x;\n"
                     "  threadgroup float (*s)[4];\n"
                     "  threadgroup auto &t = x[0];\n"
                     "}\n"));
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(!has("threadgroup_variable") && !has("threadgroup float"));
    PASS();
}

TEST storage_outside_of_a_kernel_is_refused(void) {
    ASSERT(
        read_text("void f() { threadgroup float x[4]; }\nkernel void k(device int *y) { f(); }"));
    ASSERT_FALSE(rewrite("k", NULL, 0));
    ASSERT(says("test.metal:1") && says(" x "));
    PASS();
}

TEST address_spaces_and_attributes_are_taken_out(void) {
    ASSERT(read_text(
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
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(has("const float table[2] = {0.5f, 1};"));
    ASSERT(has("x[a[b[0]]] = table[0];") && has("= [](int i) { return i; };"));
    ASSERT(!has("device") && !has("constant ") && !has("[["));
    ASSERT(!has("const const") && !has("maybe_unused"));
    const char *first = strstr(cpp, "float get() const");
    ASSERT(first && !strstr(first + 1, "float get()"));
    first = strstr(cpp, "float f(");
    ASSERT(first && !strstr(first + 1, "float f("));
    first = strstr(cpp, "s(float");
    ASSERT(first && !strstr(first + 1, " s(float"));
    PASS();
}

TEST what_was_defined_twice_stays_twice(void) {
    ASSERT(read_text("int f(int a) { return a; }\nint f(int a) { return a; }\n"
                     "kernel void k(device int *x) { x[0] = f(1); }"));
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(has("int f(int a) { return a; }\nint f(int a) { return a; }"));
    PASS();
}

TEST what_a_kernel_does_not_reach_is_left_out(void) {
    ASSERT(read_text("struct far { int v; };\n"
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
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(has("int near(") && has("int deep(") && has("struct traits<int>"));
    ASSERT(has("operator+") && has("struct pair") && has("static_assert") && has("table"));
    ASSERT(has("_numeric_limits_impl<pair>")); /* numeric_limits<pair> of Metal asks for it */
    ASSERT(!has("apart(") && !has("struct far"));
    ASSERT_EQ(12, line_of(strchr(cpp, '\n') + 1, "near(traits"));
    PASS();
}

TEST kernels_that_are_not_wanted_are_left_out_unless_this_one_names_them(void) {
    ASSERT(read_text("[[kernel]]void b(device int *x) {}\nkernel void a(device int *x) { b(x); }\n"
                     "kernel void c(device int *x) { b(x); }\n"
                     "template <typename T> kernel void d(device T *x) { x[0] = T(7); }\n"
                     "template [[host_name(\"d_int\")]] kernel void d<int>(device int *x);\n"));
    ASSERT(rewrite("a", NULL, 0));
    ASSERT(has("static void b(") && has("void a(") && !has("static void a("));
    ASSERT(!has("void c(") && has("b(x)") && !has("template") && !has("T(7)"));
    ASSERT(rewrite("d_int", NULL, 0));
    ASSERT(has("T(7)") && !has("void a("));
    ASSERT_EQ(4, line_of(strchr(cpp, '\n') + 1, "T(7)"));
    ASSERT(rewrite("b", NULL, 0));
    ASSERT(!has("void a(") && !has("static void b("));
    ASSERT(has("using assay_params = assay::params<\n    assay::param<assay::kind_buffer, 0>>;"));
    ASSERT(has("ASSAY_EXPORT"));
    PASS();
}

TEST every_token_keeps_its_line(void) {
    static const char source[] = "// one\n#include <metal_stdlib>\n/* three\nfour */ constant\n"
                                 "float five = 5.;\n#pragma unroll\nkernel\nvoid k(\n"
                                 "  device float *x\n  [[buffer(0)]]) {\n  threadgroup float\n"
                                 "    a[2];\n  x[0] = thirteen;\n#pragma unused(a)\n}\n";
    ASSERT(read_text(source));
    ASSERT(rewrite("k", NULL, 0));
    const char *body = strchr(cpp, '\n') + 1; /* after #line 1 */
    ASSERT_STR_EQ("#line 1 \"test.metal\"", strtok(cpp, "\n"));
    ASSERT_EQ(5, line_of(body, "five"));
    ASSERT_EQ(8, line_of(body, "void k("));
    ASSERT_EQ(13, line_of(body, "thirteen"));
    ASSERT(!strstr(body, "#pragma") && !strstr(body, "#include"));
    PASS();
}

TEST literals_are_float_as_in_msl(void) {
    ASSERT(
        read_text("kernel void k(device float *x) {\n"
                  "  x[0] = 0.5 + 1. + .25 + 1e-3 + 2.0f + 3.0h + 0x1p-3 + 7 + 0xE + 1'000.5;\n}"));
    ASSERT(rewrite("k", NULL, 0));
    ASSERT(has("0.5f + 1.f + .25f + 1e-3f + 2.0f + 3.0h + 0x1p-3f + 7 + 0xE + 1'000.5f;"));
    PASS();
}

TEST broken_text_is_an_error_and_never_a_crash(void) {
    static const char *const broken[] = {"kernel void k(device int *x) {", "}",
                                         "kernel void k(]) {}",
                                         "constant int x [[function_constant(y)]];", NULL};
    for (size_t i = 0; broken[i]; i++) {
        ASSERT_FALSE(read_text(broken[i]));
        ASSERT(says("test.metal:1"));
    }
    static const char *const odd[] = {"",
                                      "kernel",
                                      "kernel void",
                                      "[[",
                                      "template [[host_name(\"x\")]] f;",
                                      "\xff\xfe@$`\\",
                                      "\"open",
                                      "/* open",
                                      "kernel void k();",
                                      "template <",
                                      "threadgroup",
                                      "operator",
                                      "enum {",
                                      "namespace",
                                      NULL};
    for (size_t i = 0; odd[i]; i++)
        if (read_text(odd[i]))
            rewrite("k", NULL, 0);
    for (size_t n = 0; n < sizeof gated; n++) { /* every prefix of a real text */
        char part[sizeof gated];
        snprintf(part, n + 1, "%s", gated);
        if (read_text(part))
            rewrite("k", NULL, 0);
    }
    PASS();
}

SUITE(msl_suite) {
    RUN_TEST(kernel_attributes_of_all_kinds_are_found);
    RUN_TEST(parameters_say_type_space_and_size);
    RUN_TEST(parameters_without_an_index_take_the_free_ones_in_order);
    RUN_TEST(indices_may_be_named_by_enumerators_and_constants);
    RUN_TEST(kernels_are_found_however_they_are_marked);
    RUN_TEST(templates_are_known_by_the_host_names_of_their_instantiations);
    RUN_TEST(deduced_instantiations_are_chosen_by_their_parameters);
    RUN_TEST(an_unknown_kernel_is_answered_with_those_there_are);
    RUN_TEST(what_is_not_supported_is_an_error_of_its_kernel_alone);
    RUN_TEST(function_constants_are_found_with_type_and_index);
    RUN_TEST(a_gated_parameter_is_there_or_not_by_its_constant);
    RUN_TEST(function_constants_become_constexpr_values);
    RUN_TEST(a_constant_that_is_used_and_not_given_is_an_error);
    RUN_TEST(a_kernel_that_reaches_simdgroup_functions_is_known);
    RUN_TEST(storage_of_a_threadgroup_becomes_a_reference_to_its_slot);
    RUN_TEST(pointers_to_threadgroup_memory_are_not_storage);
    RUN_TEST(storage_outside_of_a_kernel_is_refused);
    RUN_TEST(address_spaces_and_attributes_are_taken_out);
    RUN_TEST(what_was_defined_twice_stays_twice);
    RUN_TEST(what_a_kernel_does_not_reach_is_left_out);
    RUN_TEST(kernels_that_are_not_wanted_are_left_out_unless_this_one_names_them);
    RUN_TEST(every_token_keeps_its_line);
    RUN_TEST(literals_are_float_as_in_msl);
    RUN_TEST(broken_text_is_an_error_and_never_a_crash);
    free(cpp);
    msl_free(unit);
    cpp = NULL;
    unit = NULL;
}
