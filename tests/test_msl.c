/* The MSL front end: what it finds in a text and what it turns it into; test_msl_launch.c has the
 * launches that it refuses. The text is here, not in files, unless files are tested. No device and
 * no compiler, except where a text needs a preprocessor. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msl_text.h"

SUITE(msl_suite);

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
    ASSERT(text_read(attributes));
    const msl_signature *s = text_find("all");
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
    ASSERT(text_read(attributes));
    const msl_param *p = text_find("all")->params;
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
    ASSERT(text_read(attributes));
    const msl_param *p = text_find("all")->params;
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
        text_read("enum args { first, second = first + 4, third };\n"
                  "constant constexpr int fourth = 2 * third;\n"
                  "kernel void k(device int *a [[buffer(third)]], device int *b\n"
                  "  [[buffer(fourth + (1 << 2))]], device packed_float3 *c [[buffer(0x7)]]) {}"));
    const msl_param *p = text_find("k")->params;
    ASSERT_EQ(5, p[0].index);
    ASSERT_EQ(14, p[1].index);
    ASSERT_EQ(7, p[2].index);
    ASSERT_EQ(12, p[2].value_bytes);
    PASS();
}

TEST kernels_are_found_however_they_are_marked(void) {
    ASSERT(
        text_read("[[kernel]] void a(device int *x) {}\n"
                  "[[kernel, max_total_threads_per_threadgroup(32 * 4)]] void b(device int *x) {}\n"
                  "[[host_name(\"other\")]] kernel void c(device int *x) {}\n"
                  "namespace deep { namespace er { kernel void d(device int *x) {} } }\n"
                  "void e(device int *x) {}\n"
                  "kernel void f(device int *x);\n"));
    ASSERT_EQ_FMT((size_t)4, msl_count_kernels(text_unit), "%zu");
    ASSERT(text_find("a") && text_find("deep::er::d"));
    ASSERT_EQ(128, text_find("b")->max_total_threads);
    ASSERT_STR_EQ("c", text_find("other")->function);
    PASS();
}

TEST templates_are_known_by_the_host_names_of_their_instantiations(void) {
    ASSERT(text_read(
        "template <typename T, int N = 2, bool B = (N > 1)>\n"
        "[[kernel, max_total_threads_per_threadgroup(N * 32)]] void t(device T *x [[buffer(1)]]) "
        "{}\n"
        "template [[host_name(\"t_half\")]] [[kernel]] void t<half>(device half *x "
        "[[buffer(1)]]);\n"
        "template [[host_name(\"t_\" \"float\")]] kernel decltype(t<float, 8>) t<float, 8>;\n"
        "typedef decltype(t<int>) t_t;\n"
        "template [[host_name(\"t_int\")]] kernel t_t t<int, sizeof(int) < 8 ? 3 : 4>;\n"));
    ASSERT_EQ_FMT((size_t)3, msl_count_kernels(text_unit), "%zu");
    ASSERT_STR_EQ("t<half>", text_find("t_half")->function);
    ASSERT_EQ(64, text_find("t_half")->max_total_threads);
    ASSERT_EQ(2, text_find("t_half")->params[0].value_bytes);
    ASSERT_STR_EQ("t<float, 8>", text_find("t_float")->function);
    ASSERT_EQ(256, text_find("t_float")->max_total_threads);
    ASSERT(text_find("t_int"));
    ASSERT(text_rewrite("t_float", NULL, 0));
    ASSERT(text_has("assay_function = &t<float, 8>;") && text_has("ASSAY_EXPORT_FOR(256)"));
    ASSERT(!text_has("host_name") && !text_has("t<half>"));
    PASS();
}

TEST deduced_instantiations_are_chosen_by_their_parameters(void) {
    ASSERT(text_read(
        "template <typename T> kernel void t(device T *x, constant T &y) {}\n"
        "template [[host_name(\"t_f\")]] kernel void t(device float *x, constant float &y);"));
    ASSERT(text_rewrite("t_f", NULL, 0));
    ASSERT(text_has("assay_function = static_cast<void (*)(float *, const float &)>(&t);"));
    PASS();
}

TEST an_unknown_kernel_is_answered_with_those_there_are(void) {
    ASSERT(text_read("kernel void one(device int *x) {} kernel void two(device int *x) {}"));
    ASSERT_FALSE(text_find("three"));
    ASSERT(text_says("three") && text_says("one, two") && text_says("test.metal"));
    ASSERT_EQ(EXIT_USAGE, text_why.code);
    PASS();
}

TEST what_is_not_supported_is_an_error_of_its_kernel_alone(void) {
    ASSERT(text_read("kernel void image(texture2d<float> t [[texture(0)]]) {}\n"
                     "kernel void bare(device int *x, uint i) {}\n"
                     "kernel void far(device int *x [[buffer(31)]]) {}\n"
                     "vertex float4 corner(uint id [[vertex_id]]) { return 0; }\n"
                     "kernel void good(device int *x) {}\n"));
    ASSERT_FALSE(text_find("image"));
    ASSERT(text_says("image") && text_says("texture"));
    ASSERT_FALSE(text_find("bare"));
    ASSERT(text_says("bare") && text_says("parameter i"));
    ASSERT_FALSE(text_find("far"));
    ASSERT(text_says("far") && text_says("0 to 30"));
    ASSERT(text_rewrite("good", NULL, 0));
    ASSERT(!text_has("texture2d") && !text_has("corner"));
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
    ASSERT(
        text_read("float sum(float x) { return simd_sum(x); } /* simdgroup_barrier */\n"
                  "float twice(float x) { return sum(x) + sum(x); }\n"
                  "template <typename T> void add(device T *x) { x[0] = twice(x[0]); }\n"
                  "kernel void deep(device float *x) { add(x); }\n"
                  "kernel void plain(device float *x) { x[0] += 1; /* simd_sum(x[0]) */ }\n"
                  "kernel void lane(device uint *x, uint i [[thread_index_in_simdgroup]]) "
                  "{ x[i] = i; }\n"
                  "kernel void tile(device float *x) { simdgroup_float8x8 m; }\n"
                  "float get(simdgroup_float8x8 m) { return m.thread_elements()[0]; }\n"
                  "kernel void part(device float *x) { x[0] = get(simdgroup_float8x8(x[0])); }\n"));
    ASSERT(msl_uses_simdgroups(text_unit, "deep"));
    ASSERT_FALSE(msl_uses_simdgroups(text_unit, "plain"));
    ASSERT(msl_uses_simdgroups(text_unit, "lane"));
    ASSERT(msl_uses_simdgroups(text_unit, "tile"));
    ASSERT_FALSE(msl_uses_matrices(text_unit, "lane"));
    ASSERT(msl_uses_matrices(text_unit, "tile"));
    ASSERT_FALSE(msl_uses_elements(text_unit, "tile"));
    ASSERT(msl_uses_elements(text_unit, "part"));
    PASS();
}

TEST function_constants_are_found_with_type_and_index(void) {
    ASSERT(text_read(gated));
    ASSERT_EQ_FMT((size_t)3, msl_count_constants(text_unit), "%zu");
    const msl_constant *c = msl_get_constant(text_unit, 1);
    ASSERT_STR_EQ("width", c->name);
    ASSERT_STR_EQ("uint", c->type);
    ASSERT_EQ(4, c->index);
    ASSERT_EQ(3, c->line);
    PASS();
}

TEST a_gated_parameter_is_there_or_not_by_its_constant(void) {
    const msl_constant_text on[] = {{7, "true"}, {4, "64u"}}, off[] = {{7, "false"}, {4, "64u"}};
    msl_signature s;
    ASSERT(text_read(gated));
    ASSERT(msl_specialise(text_unit, "k", on, 2, &s, &text_why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("mask", s.params[1].name);
    ASSERT(msl_specialise(text_unit, "k", off, 2, &s, &text_why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("other", s.params[1].name);
    ASSERT_FALSE(msl_specialise(text_unit, "k", NULL, 0, &s, &text_why));
    ASSERT(text_says("masked") && text_says("index 7"));
    ASSERT(text_rewrite("k", off, 2));
    ASSERT(text_has("assay::param<assay::kind_off, 1>"));
    PASS();
}

TEST function_constants_become_constexpr_values(void) {
    const msl_constant_text given[] = {{7, "true"}, {4, "64u"}};
    ASSERT(text_read(gated));
    ASSERT(text_rewrite("k", given, 2));
    ASSERT(text_has("static constexpr bool masked = true;"));
    ASSERT(text_has("uint width = 64u;") && !text_has("function_constant("));
    ASSERT(text_has("shift = false ? bias : 1.5f;"));
    PASS();
}

TEST a_constant_that_is_used_and_not_given_is_an_error(void) {
    const msl_constant_text given[] = {{7, "true"}};
    ASSERT(text_read(gated));
    ASSERT_FALSE(text_rewrite("k", given, 1));
    ASSERT(text_says("kernel k") && text_says("width") && text_says("index 4"));
    ASSERT(text_rewrite("free", NULL, 0));
    PASS();
}

TEST broken_text_is_an_error_and_never_a_crash(void) {
    static const char *const broken[] = {"kernel void k(device int *x) {", "}",
                                         "kernel void k(]) {}",
                                         "constant int x [[function_constant(y)]];", NULL};
    for (size_t i = 0; broken[i]; i++) {
        ASSERT_FALSE(text_read(broken[i]));
        ASSERT(text_says("test.metal:1"));
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
        if (text_read(odd[i]))
            text_rewrite("k", NULL, 0);
    for (size_t n = 0; n < sizeof gated; n++) { /* every prefix of a real text */
        char part[sizeof gated];
        snprintf(part, n + 1, "%s", gated);
        if (text_read(part))
            text_rewrite("k", NULL, 0);
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
    RUN_TEST(broken_text_is_an_error_and_never_a_crash);
    text_clear();
}
