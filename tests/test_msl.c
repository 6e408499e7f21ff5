/* The MSL front end: what it finds in a text and what it turns it into; includes, macros and lines; launches that it
 * refuses. No device; no compiler but a preprocessor. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/toolchain.h"
#include "harness/device/launch.h"
#include "harness/device/msl/msl.h"

SUITE(msl_suite);
SUITE(msl_source_suite);
SUITE(msl_launch_suite);

static err why;        /* of the last function that failed */
static msl_unit *unit; /* of the last text that was read */

static bool read_msl(const char *text) {
    msl_free(unit);
    why = (err){.code = EXIT_OK};
    unit = msl_from_text("test.metal", text, &why);
    return unit != NULL;
}

static void read_nothing(void *unused) {
    (void)unused;
    msl_free(unit);
    unit = NULL;
}

static const msl_signature *find(const char *kernel) {
    return msl_find_kernel(unit, kernel, &why);
}

/* Signatures ---------------------------------------------------------------------------------- */

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
    "    uint k [[threads_per_simdgroup]], uint l [[simdgroups_per_threadgroup]],\n"
    "    uint m [[dispatch_simdgroups_per_threadgroup]], uint o [[thread_index_in_quadgroup]],\n"
    "    uint p [[quadgroup_index_in_threadgroup]], uint q [[quadgroups_per_threadgroup]],\n"
    "    uint3 r [[grid_origin]], uint3 s [[grid_size]], uint t [[thread_execution_width]],\n"
    "    uint u [[dispatch_threads_per_grid]]) {}\n";

TEST kernel_attributes_of_all_kinds_are_found(void) {
    ASSERT(read_msl(attributes));
    const msl_signature *s = find("all");
    ASSERT(s);
    ASSERT_EQ_FMT((size_t)25, s->count, "%zu");
    for (size_t i = 0; i < s->count; i++) { /* in the order of their list, then two old names */
        int want = i < 3    ? MSL_BUFFER
                   : i < 5  ? MSL_THREADGROUP
                   : i < 23 ? MSL_THREAD_POSITION_IN_GRID + (int)i - 5
                   : i < 24 ? MSL_THREADS_PER_SIMDGROUP
                            : MSL_THREADS_PER_GRID;
        ASSERT_EQ_FMT(want, (int)s->params[i].kind, "%d");
    }
    ASSERT_EQ(MSL_GRID_SIZE, s->params[22].kind);
    ASSERT_EQ(3, s->params[5].dimensions);
    ASSERT_EQ(2, s->params[6].dimensions);
    ASSERT_EQ(1, s->params[7].dimensions);
    ASSERT_EQ(3, s->line);
    ASSERT_EQ(4, s->params[2].line);
    PASS();
}

/* And those without an index take the free ones, in order. */
TEST parameters_say_type_space_size_and_index(void) {
    static const msl_param want[] = {
        {MSL_BUFFER, "src", "const float4 *", MSL_SPACE_DEVICE, .is_const = true, .index = 3,
         .value_bytes = 16},
        {MSL_BUFFER, "dst", "half *", MSL_SPACE_DEVICE, .index = 0, .value_bytes = 2},
        {MSL_BUFFER, "n", "uint &", MSL_SPACE_CONSTANT, .is_reference = true, .is_const = true,
         .index = 1, .value_bytes = 4},
        {MSL_THREADGROUP, "shared", "float *", MSL_SPACE_THREADGROUP, .index = 1, .value_bytes = 4},
        {MSL_THREADGROUP, "more", "char *", MSL_SPACE_THREADGROUP, .index = 0, .value_bytes = 1},
        {MSL_THREAD_POSITION_IN_GRID, "a", "uint3", MSL_SPACE_NONE, .index = -1}};
    ASSERT(read_msl(attributes));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const msl_param *p = &find("all")->params[i];
        ASSERT_STR_EQ(want[i].name, p->name);
        ASSERT_STR_EQ(want[i].type, p->type);
        ASSERT(p->space == want[i].space && p->is_reference == want[i].is_reference);
        ASSERT(p->is_const == want[i].is_const && p->value_bytes == want[i].value_bytes);
        ASSERT_EQ(want[i].index, p->index);
    }
    PASS();
}

TEST indices_may_be_named_by_enumerators_and_constants(void) {
    ASSERT(
        read_msl("enum args { first, second = first + 4, third };\n"
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
        read_msl("[[kernel]] void a(device int *x) {}\n"
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

#define TEMPLATES                                                                                  \
    "template <typename T, int N = 2, bool B = (N > 1)>\n"                                         \
    "[[kernel, max_total_threads_per_threadgroup(N * 32)]] void t(device T *x [[buffer(1)]]) {}\n" \
    "template [[host_name(\"t_half\")]] [[kernel]] void t<half>(device half *x [[buffer(1)]]);\n"  \
    "template [[host_name(\"t_\" \"float\")]] kernel decltype(t<float, 8>) t<float, 8>;\n"         \
    "typedef decltype(t<int>) t_t;\n"                                                              \
    "template [[host_name(\"t_int\")]] kernel t_t t<int, sizeof(int) < 8 ? 3 : 4>;\n"

TEST templates_are_known_by_the_host_names_of_their_instantiations(void) {
    ASSERT(read_msl(TEMPLATES));
    ASSERT_EQ_FMT((size_t)3, msl_count_kernels(unit), "%zu");
    ASSERT_STR_EQ("t<half>", find("t_half")->function);
    ASSERT_EQ(64, find("t_half")->max_total_threads);
    ASSERT_EQ(2, find("t_half")->params[0].value_bytes);
    ASSERT_STR_EQ("t<float, 8>", find("t_float")->function);
    ASSERT_EQ(256, find("t_float")->max_total_threads);
    ASSERT(find("t_int"));
    PASS();
}

/* An unknown kernel, and what is not supported: an error of its kernel alone. */
static const struct {
    const char *kernel, *says[3];
} refusals[] = {{"image", {"image", "texture"}},
                {"bare", {"bare", "parameter i"}},
                {"far", {"far", "0 to 30"}},
                {"three", {"three", "image, bare, far, good", "test.metal"}}};

TEST a_kernel_that_cannot_be_had_is_refused_with_the_reason(void) {
    ASSERT(read_msl("kernel void image(texture2d<float> t [[texture(0)]]) {}\n"
                    "kernel void bare(device int *x, uint i) {}\n"
                    "kernel void far(device int *x [[buffer(31)]]) {}\n"
                    "vertex float4 corner(uint id [[vertex_id]]) { return 0; }\n"
                    "kernel void good(device int *x) {}\n"));
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        ASSERT_FALSE(find(refusals[i].kernel));
        ASSERT_EQ(EXIT_USAGE, why.code);
        for (int k = 0; k < 3 && refusals[i].says[k]; k++)
            ASSERTm(why.text, strstr(why.text, refusals[i].says[k]));
    }
    ASSERT(find("good"));
    PASS();
}

TEST a_kernel_that_reaches_simdgroup_functions_is_known(void) {
    static const struct {
        const char *kernel;
        bool simdgroups, matrices, elements;
    } want[] = {{"deep", true, false, false},
                {"plain", false, false, false},
                {"lane", true, false, false},
                {"tile", true, true, false},
                {"part", true, true, true}};
    ASSERT(
        read_msl("float sum(float x) { return simd_sum(x); } /* simdgroup_barrier */\n"
                 "float twice(float x) { return sum(x) + sum(x); }\n"
                 "template <typename T> void add(device T *x) { x[0] = twice(x[0]); }\n"
                 "kernel void deep(device float *x) { add(x); }\n"
                 "kernel void plain(device float *x) { x[0] += 1; /* simd_sum(x[0]) */ }\n"
                 "kernel void lane(device uint *x, uint i [[thread_index_in_simdgroup]]) "
                 "{ x[i] = i; }\n"
                 "kernel void tile(device float *x) { simdgroup_float8x8 m; }\n"
                 "float get(simdgroup_float8x8 m) { return m.thread_elements()[0]; }\n"
                 "kernel void part(device float *x) { x[0] = get(simdgroup_float8x8(x[0])); }\n"));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ASSERT_EQ(want[i].simdgroups, msl_uses_simdgroups(unit, want[i].kernel));
        ASSERT_EQ(want[i].matrices, msl_uses_matrices(unit, want[i].kernel));
        ASSERT_EQ(want[i].elements, msl_uses_elements(unit, want[i].kernel));
    }
    PASS();
}

/* Function constants -------------------------------------------------------------------------- */

#define GATED                                                                                      \
    "constant bool masked [[function_constant(7)]];\n"                                             \
    "constant bool plain = !masked;\n"                                                             \
    "static constant uint width [[function_constant(3 + 1)]];\n"                                   \
    "constant float bias [[function_constant(9)]];\n"                                              \
    "constant float shift = is_function_constant_defined(bias) ? bias : 1.5;\n"                    \
    "uint helper() { return width; }\n"                                                            \
    "kernel void k(device int *x [[buffer(0)]],\n"                                                 \
    "  device int *mask [[buffer(1), function_constant(masked)]],\n"                               \
    "  device int *other [[buffer(1), function_constant(plain)]]) {\n"                             \
    "  x[0] = helper() + shift;\n"                                                                 \
    "}\n"                                                                                          \
    "kernel void free(device int *x) {}\n"

TEST function_constants_are_found_and_gate_parameters(void) {
    const msl_constant_text on[] = {{7, "true"}, {4, "64u"}}, off[] = {{7, "false"}, {4, "64u"}};
    msl_signature s;
    ASSERT(read_msl(GATED));
    ASSERT_EQ_FMT((size_t)3, msl_count_constants(unit), "%zu");
    const msl_constant *c = msl_get_constant(unit, 1);
    ASSERT_STR_EQ("width", c->name);
    ASSERT_STR_EQ("uint", c->type);
    ASSERT(c->index == 4 && c->line == 3);
    ASSERT(msl_specialise(unit, "k", on, 2, &s, &why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("mask", s.params[1].name);
    ASSERT(msl_specialise(unit, "k", off, 2, &s, &why));
    ASSERT_EQ_FMT((size_t)2, s.count, "%zu");
    ASSERT_STR_EQ("other", s.params[1].name);
    ASSERT_FALSE(msl_specialise(unit, "k", NULL, 0, &s, &why));
    ASSERT(strstr(why.text, "masked") && strstr(why.text, "index 7"));
    PASS();
}

/* C++ ----------------------------------------------------------------------------------------- */

/* The C++ of a kernel has each of `has`, some of them only once, none of `lacks`, and at a line of the
 * text what stands there. Where it cannot be made, the error `says` why. */
typedef struct {
    const char *text, *kernel;
    const char *has[8], *once[3], *lacks[6], *says[3];
    struct {
        int line;
        const char *part;
    } at[3];
    msl_constant_text given[3];
    size_t given_count;
} rewriting;

#define REACHES                                                                                    \
    "[[kernel]]void b(device int *x) {}\nkernel void a(device int *x) { b(x); }\n"                 \
    "kernel void c(device int *x) { b(x); }\n"                                                     \
    "template <typename T> kernel void d(device T *x) { x[0] = T(7); }\n"                          \
    "template [[host_name(\"d_int\")]] kernel void d<int>(device int *x);\n"

static const rewriting rewritings[] = {
    {"kernel void k(device float *x) {\n  threadgroup float a[8], b[2][4];\n"
     "  threadgroup atomic_uint c;\n  threadgroup __attribute__((aligned(16))) half d[8];\n}\n",
     "k",
     .has = {"&a = assay::threadgroup_variable<assay_type_0, 0>(\"a\");",
             "&b = assay::threadgroup_variable<assay_type_1, 1>(\"b\");",
             "typedef atomic_uint assay_type_2; assay_type_2 &c =", "aligned",
             "auto &d = assay::threadgroup_variable<assay_type_3, 3>(\"d\").value;"}},
    {"kernel void k(device float *x) { threadgroup float a; }\n"
     "kernel void other(device float *x) { threadgroup vec<float, 2> e; }\n",
     "other", .has = {"&e = assay::threadgroup_variable<assay_type_0, 0>(\"e\");"}},
    /* Pointers to threadgroup memory are not storage. */
    {"kernel void k(threadgroup float *x) {\n  threadgroup float *p = x, *q[2];\n"
     "  threadgroup float (&r)[4] = *(threadgroup float (*)[4])x;\n"
     "  threadgroup float (*s)[4];\n  threadgroup auto &t = x[0];\n}\n",
     "k", .lacks = {"threadgroup_variable", "threadgroup float"}},
    {"void f() { threadgroup float x[4]; }\nkernel void k(device int *y) { f(); }", "k",
     .says = {"test.metal:1", " x "}},
    /* Address spaces and attributes. */
    {"constant float table[2] = {0.5, 1};\n"
     "struct s { float v; float get() const device { return v; }\n"
     "  float get() const constant { return v; } s(float a) thread : v(a) {}\n"
     "  s(float b) constant : v(b) {} };\n"
     "float f(device const float *p) { return p[0]; }\n"
     "float f(constant float *q) { return q[0]; }\n"
     "kernel void k(device float *x [[buffer(0)]], constant const s &y) {\n"
     "  int a[2], b[2]; x[a[b[0]]] = table[0]; f(x); [[maybe_unused]] auto l = [](int i) "
     "{ return i; };\n}\n",
     "k",
     .has = {"const float table[2] = {0.5f, 1};", "x[a[b[0]]] = table[0];",
             "= [](int i) { return i; };"},
     .once = {"float get()", "float f(", "s(float"},
     .lacks = {"device", "constant ", "[[", "const const", "maybe_unused"}},
    /* What was defined twice stays twice. */
    {"int f(int a) { return a; }\nint f(int a) { return a; }\n"
     "kernel void k(device int *x) { x[0] = f(1); }",
     "k", .has = {"int f(int a) { return a; }\nint f(int a) { return a; }"}},
    /* What a kernel does not reach is left out. */
    {"struct far { int v; };\n"
     "struct pair { int a, b; };\n"
     "inline pair operator+(pair x, pair y) { return {x.a + y.a, x.b + y.b}; }\n"
     "inline int deep(int v) { return v + 1; }\n"
     "inline int near(int v) { return deep(v); }\n"
     "inline int apart(far v) { return v.v; }\n"
     "template <typename T> struct traits { static constexpr int n = 1; };\n"
     "template <> struct traits<int> { static constexpr int n = 2; };\n"
     "template <> struct _numeric_limits_impl<pair> {};\n" /* numeric_limits<pair> asks for it */
     "struct { int z; } constant table = {3};\n"
     "static_assert(sizeof(pair) == 8, \"two\");\n"
     "kernel void k(device int *x) { x[0] = near(traits<int>::n); }\n",
     "k",
     .has = {"int near(", "int deep(", "struct traits<int>", "operator+", "struct pair",
             "static_assert", "table", "_numeric_limits_impl<pair>"},
     .lacks = {"apart(", "struct far"}, .at = {{12, "near(traits"}}},
    /* So are kernels, unless this one names them. */
    {REACHES, "a", .has = {"static void b(", "void a(", "b(x)"},
     .lacks = {"static void a(", "void c(", "template", "T(7)"}},
    {REACHES, "d_int", .has = {"T(7)"}, .lacks = {"void a("}, .at = {{4, "T(7)"}}},
    {REACHES, "b",
     .has = {"using assay_params = assay::params<\n    assay::param<assay::kind_buffer, 0>>;",
             "ASSAY_EXPORT"},
     .lacks = {"void a(", "static void b("}},
    /* Instantiations: by name, and by their parameters. */
    {TEMPLATES, "t_float", .has = {"assay_function = &t<float, 8>;", "ASSAY_EXPORT_FOR(256)"},
     .lacks = {"host_name", "t<half>"}},
    {"template <typename T> kernel void t(device T *x, constant T &y) {}\n"
     "template [[host_name(\"t_f\")]] kernel void t(device float *x, constant float &y);",
     "t_f", .has = {"assay_function = static_cast<void (*)(float *, const float &)>(&t);"}},
    {"kernel void image(texture2d<float> t [[texture(0)]]) {}\n"
     "vertex float4 corner(uint id [[vertex_id]]) { return 0; }\nkernel void good(device int *x) "
     "{}",
     "good", .lacks = {"texture2d", "corner"}},
    /* Every token keeps its line. */
    {"// one\n#include <metal_stdlib>\n/* three\nfour */ constant\nfloat five = 5.;\n"
     "#pragma unroll\nkernel\nvoid k(\n  device float *x\n  [[buffer(0)]]) {\n  threadgroup float\n"
     "    a[2];\n  x[0] = thirteen;\n#pragma unused(a)\n}\n",
     "k", .has = {"#line 1 \"test.metal\"\n"}, .lacks = {"#pragma", "#include"},
     .at = {{5, "five"}, {8, "void k("}, {13, "thirteen"}}},
    /* Literals are float. */
    {"kernel void k(device float *x) {\n"
     "  x[0] = 0.5 + 1. + .25 + 1e-3 + 2.0f + 3.0h + 0x1p-3 + 7 + 0xE + 1'000.5;\n}",
     "k", .has = {"0.5f + 1.f + .25f + 1e-3f + 2.0f + 3.0h + 0x1p-3f + 7 + 0xE + 1'000.5f;"}},
    /* Function constants become constexpr values; one that is used must be given. */
    {GATED, "k",
     .has = {"static constexpr bool masked = true;", "uint width = 64u;",
             "shift = false ? bias : 1.5f;"},
     .lacks = {"function_constant("}, .given = {{7, "true"}, {4, "64u"}}, .given_count = 2},
    {GATED, "k", .has = {"assay::param<assay::kind_off, 1>"}, .given = {{7, "false"}, {4, "64u"}},
     .given_count = 2},
    {GATED, "k", .says = {"kernel k", "width", "index 4"}, .given = {{7, "true"}},
     .given_count = 1},
    {GATED, "free", .has = {"ASSAY_EXPORT"}},
};

static int find_line(const char *text, const char *part) {
    const char *at = strstr(text, part);
    int line = 1;
    for (const char *p = text; at && p < at; p++)
        line += *p == '\n';
    return at ? line : -1;
}

TEST a_kernel_becomes_cpp(const rewriting *r) {
    ASSERTm(r->text, read_msl(r->text));
    char *cpp = msl_rewrite(unit, r->kernel, r->given, r->given_count, &why);
    for (int i = 0; i < 3 && r->says[i]; i++)
        ASSERTm(why.text, !cpp && strstr(why.text, r->says[i]));
    if (r->says[0])
        PASS();
    ASSERTm(why.text, cpp);
    for (int i = 0; i < 8 && r->has[i]; i++)
        ASSERTm(r->has[i], strstr(cpp, r->has[i]));
    for (int i = 0; i < 3 && r->once[i]; i++) {
        const char *first = strstr(cpp, r->once[i]);
        ASSERTm(r->once[i], first && !strstr(first + 1, r->once[i]));
    }
    for (int i = 0; i < 6 && r->lacks[i]; i++)
        ASSERT_FALSEm(r->lacks[i], strstr(cpp, r->lacks[i]));
    for (int i = 0; i < 3 && r->at[i].line; i++) /* after #line 1 */
        ASSERT_EQ_FMTm(r->at[i].part, r->at[i].line,
                       find_line(strchr(cpp, '\n') + 1, r->at[i].part), "%d");
    free(cpp);
    PASS();
}

/* Broken text --------------------------------------------------------------------------------- */

static void try_text(const char *text) {
    if (read_msl(text))
        free(msl_rewrite(unit, "k", NULL, 0, &why));
}

TEST broken_text_is_an_error_and_never_a_crash(void) {
    static const char *const broken[] = {"kernel void k(device int *x) {", "}",
                                         "kernel void k(]) {}",
                                         "constant int x [[function_constant(y)]];", NULL};
    for (size_t i = 0; broken[i]; i++) {
        ASSERT_FALSE(read_msl(broken[i]));
        ASSERT(strstr(why.text, "test.metal:1"));
    }
    static const char *const odd[] = {"",
                                      "kernel",
                                      "kernel void",
                                      "[[",
                                      "template [[host_name(\"x\")]] f;",
                                      "\"open",
                                      "/* open",
                                      "kernel void k();",
                                      "template <",
                                      "\xff\xfe@$`\\",
                                      "threadgroup",
                                      "operator",
                                      "enum {",
                                      "namespace",
                                      NULL};
    for (size_t i = 0; odd[i]; i++)
        try_text(odd[i]);
    for (size_t n = 0; n < sizeof GATED; n++) { /* every prefix of a real text */
        char part[sizeof GATED];
        snprintf(part, n + 1, "%s", GATED);
        try_text(part);
    }
    PASS();
}

SUITE(msl_suite) {
    RUN_TEST(kernel_attributes_of_all_kinds_are_found);
    RUN_TEST(parameters_say_type_space_size_and_index);
    RUN_TEST(indices_may_be_named_by_enumerators_and_constants);
    RUN_TEST(kernels_are_found_however_they_are_marked);
    RUN_TEST(templates_are_known_by_the_host_names_of_their_instantiations);
    RUN_TEST(a_kernel_that_cannot_be_had_is_refused_with_the_reason);
    RUN_TEST(function_constants_are_found_and_gate_parameters);
    RUN_TEST(a_kernel_that_reaches_simdgroup_functions_is_known);
    for (size_t i = 0; i < sizeof rewritings / sizeof *rewritings; i++)
        RUN_TESTp(a_kernel_becomes_cpp, &rewritings[i]);
    RUN_TEST(broken_text_is_an_error_and_never_a_crash);
    read_nothing(NULL);
}

/* Includes, macros and lines -------------------------------------------------------------------- */

static char folder[32]; /* of the test that runs */

static void make_folder(void *unused) {
    (void)unused;
    snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
    if (!mkdtemp(folder))
        abort();
}

static void remove_folder(void *unused) {
    (void)unused;
    os_remove_folder(folder);
}

TEST macros_are_expanded_by_a_preprocessor_that_keeps_lines(void) {
    char tool[4096];
    if (!toolchain_find_preprocessor(tool, sizeof tool, &why))
        SKIPm("no compiler to preprocess with");
    unit = msl_from_text(
        "test.metal",
        "#include <metal_stdlib>\n#define MAKE(T) kernel void copy_##T(device T *x) {}\n"
        "#if __METAL_VERSION__ >= 300\nMAKE(float)\n#else\nMAKE(half)\n#endif\n",
        &why);
    ASSERTm(why.text, unit);
    ASSERT_EQ_FMT((size_t)1, msl_count_kernels(unit), "%zu");
    const msl_signature *k = msl_find_kernel(unit, "copy_float", &why);
    ASSERT(k && k->line == 4);
    ASSERT_FALSE(msl_from_text("test.metal", "#if 1\nkernel void k(device int *x) {}\n", &why));
    ASSERT(strstr(why.text, "test.metal") && strstr(why.detail, "unterminated conditional"));
    PASS();
}

/* Writes outer.metal and inner.h to a folder and loads the first. */
static bool load_with_include(const char *outer, const char *inner) {
    char path[64];
    snprintf(path, sizeof path, "%s/inner.h", folder);
    if (!os_write_file(path, inner, strlen(inner), &why))
        return false;
    snprintf(path, sizeof path, "%s/outer.metal", folder);
    if (!os_write_file(path, outer, strlen(outer), &why))
        return false;
    msl_free(unit);
    why = (err){.code = EXIT_OK};
    unit = msl_load_with(path, &(msl_extras){0}, &why);
    return unit != NULL;
}

TEST local_includes_are_read_beside_the_file(void) {
    ASSERT(load_with_include("#include \"inner.h\"\n#include \"./inner.h\"\n"
                             "kernel void k(device point *p) {}\n",
                             "#pragma once\nstruct point { float x; };\n"));
    ASSERT(msl_find_kernel(unit, "k", &why));
    ASSERT_EQ(3, msl_find_kernel(unit, "k", &why)->line);
    char *cpp = msl_rewrite(unit, "k", NULL, 0, &why);
    ASSERT(cpp);
    const char *first = strstr(cpp, "struct point");
    ASSERT(first && !strstr(first + 1, "struct point"));
    ASSERT(strstr(cpp, "inner.h\"\n") && strstr(cpp, "#line 2 \""));
    free(cpp);
    PASS();
}

TEST the_text_for_a_compiler_of_msl_has_its_includes_macros_and_lines(void) {
    ASSERT(load_with_include("#include <metal_stdlib>\n#include \"inner.h\"\n"
                             "kernel void k(device TYPE *p) { p[0] = LIMIT; }\n",
                             "#pragma once\n#define TYPE float\n#define LIMIT 3\n"));
    const char *text = msl_get_text(unit);
    ASSERT(strstr(text, "#include <metal_stdlib>\n"));
    ASSERT(strstr(text, "#define LIMIT 3\n") && strstr(text, "device TYPE *p"));
    ASSERT(!strstr(text, "#include \"inner.h\""));
    /* Given to the compiler alone, it means the same, line by line. */
    msl_unit *again = msl_from_text("program_source", text, &why);
    ASSERTm(why.text, again);
    const msl_signature *k = msl_find_kernel(again, "k", &why);
    ASSERT(k && k->line == 3);
    ASSERT_STR_EQ("float *", k->params[0].type);
    char *here = msl_rewrite(unit, "k", NULL, 0, &why),
         *there = msl_rewrite(again, "k", NULL, 0, &why);
    ASSERT(here && there);
    ASSERT_EQ(find_line(strstr(here, "void k"), "p[0] ="),
              find_line(strstr(there, "void k"), "p[0] ="));
    free(here);
    free(there);
    msl_free(again);
    PASS();
}

/* Is the header in the text that the preprocessor leaves of what a compiler of MSL is given? */
TEST a_header_left_out_in_one_branch_is_put_in_after_it(void) {
    static const char *const outers[] = {
        "#ifdef X\n#include \"inner.h\"\n#endif\n#include \"inner.h\"\n",
        "#ifndef X\n#include \"inner.h\"\n#endif\n#include \"inner.h\"\n",
        "#ifdef X\n#include \"inner.h\"\n#else\n#include \"./inner.h\"\n#endif\n"};
    char outer[160];
    for (size_t i = 0; i < sizeof outers / sizeof *outers; i++) {
        snprintf(outer, sizeof outer, "%skernel void k(device point *p) {}\n", outers[i]);
        ASSERT(load_with_include(outer, "#pragma once\nstruct point { float x; };\n"));
        msl_unit *again = msl_from_text("program_source", msl_get_text(unit), &why);
        ASSERTm(why.text, again);
        const char *first = strstr(msl_get_expanded(again), "struct point");
        ASSERTm(outer, first && !strstr(first + 1, "struct point"));
        ASSERT_EQ(4 + (i == 2 ? 2 : 1), msl_find_kernel(again, "k", &why)->line);
        msl_free(again);
    }
    PASS();
}

TEST a_header_without_the_pragma_is_put_in_each_time(void) {
    ASSERT(load_with_include("#include \"inner.h\"\n#include \"inner.h\"\n"
                             "kernel void k(device float *p) {}\n",
                             "// to be read more than once\nfloat get(int);\n"));
    const char *first = strstr(msl_get_text(unit), "float get");
    ASSERT(first && strstr(first + 1, "float get"));
    PASS();
}

TEST the_language_and_the_reader_choose_what_the_preprocessor_sees(void) {
    static const char text[] = "#ifdef __ASSAY__\nkernel void ours(device float *p) {}\n#endif\n"
                               "kernel void k(device int *p) { p[0] = __METAL_VERSION__; }\n";
    for (int i = 0; i < MSL_LANGUAGES; i++) {
        char want[32];
        msl_extras extras = {.language = msl_languages[i], .is_apple = true};
        msl_unit *apple = msl_from_text_with("t.metal", text, &extras, &why);
        ASSERTm(why.text, apple);
        snprintf(want, sizeof want, "p[0] = %d;", msl_languages[i]);
        ASSERT(strstr(msl_get_expanded(apple), want));
        ASSERT_EQ(msl_languages[i], msl_get_language(apple));
        ASSERT_EQ((size_t)1, msl_count_kernels(apple));
        msl_free(apple);
    }
    msl_free(unit);
    unit = msl_from_text("t.metal", text, &why);
    ASSERT(unit && msl_count_kernels(unit) == 2 && msl_get_language(unit) == MSL_LANGUAGE);
    PASS();
}

TEST an_include_from_elsewhere_is_put_in_by_the_preprocessor(void) {
    char apart[64], path[96];
    snprintf(apart, sizeof apart, "%s/apart", folder);
    ASSERT(os_make_folder(apart, &why));
    snprintf(path, sizeof path, "%s/far.h", apart);
    ASSERT(os_write_file(path, "#define TYPE half\n", 18, &why));
    setenv("CPATH", apart, 1);
    bool loaded = load_with_include("#include <metal_stdlib>\n#include \"far.h\"\n"
                                    "kernel void k(device TYPE *p) {}\n",
                                    "");
    unsetenv("CPATH");
    ASSERTm(why.text, loaded);
    const char *text = msl_get_text(unit);
    ASSERT_EQ(text, strstr(text, "#include <metal_stdlib>\n"));
    ASSERT(strstr(text, "device half *p") && !strstr(text, "far.h\"\nkernel"));
    PASS();
}

SUITE(msl_source_suite) {
    SET_SETUP(make_folder, NULL);
    SET_TEARDOWN(remove_folder, NULL);
    RUN_TEST(macros_are_expanded_by_a_preprocessor_that_keeps_lines);
    RUN_TEST(local_includes_are_read_beside_the_file);
    RUN_TEST(the_text_for_a_compiler_of_msl_has_its_includes_macros_and_lines);
    RUN_TEST(a_header_left_out_in_one_branch_is_put_in_after_it);
    RUN_TEST(a_header_without_the_pragma_is_put_in_each_time);
    RUN_TEST(the_language_and_the_reader_choose_what_the_preprocessor_sees);
    RUN_TEST(an_include_from_elsewhere_is_put_in_by_the_preprocessor);
}

/* Launches -------------------------------------------------------------------------------------- */

/* A launch that fits `k` of the text below, to be spoilt by each test. */
static const char launched[] =
    "kernel void k(device const float4 *x [[buffer(0)]], device float *y [[buffer(1)]],\n"
    "  constant uint &n [[buffer(2)]], threadgroup float *s [[threadgroup(0)]],\n"
    "  uint i [[thread_position_in_grid]]) {}\n"
    "[[kernel, max_total_threads_per_threadgroup(64)]] void small(device float *y) {}\n";

static launch make_launch(void) {
    static char memory; /* never touched: a launch is only described here */
    buffer *b = (buffer *)(void *)&memory;
    launch l = {.grid = {4, 1, 1}, .group = {32, 2, 1}};
    l.args[0] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_F32, {b, 16, 64}, 0, 0};
    l.args[1] = (binding){BIND_BUFFER, ACCESS_WRITE, ELEM_F32, {b, 4, 64}, 0, 0};
    l.args[2] = (binding){BIND_BYTES, ACCESS_READ, ELEM_U32, {0}, 0, 4};
    l.threadgroup_bytes[0] = 128;
    return l;
}

static bool check(const char *kernel, const launch *l) {
    const msl_signature *s = unit ? msl_find_kernel(unit, kernel, &why) : NULL;
    return s && launch_check_fit(l, s, 1024, 32768, &why);
}

static bool fits(const launch *l) {
    return check("k", l);
}

static bool says(const char *part) {
    return strstr(why.text, part) != NULL;
}

TEST a_launch_that_fits_is_accepted(void) {
    launch l = make_launch();
    ASSERT(fits(&l));
    l.args[2] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_U32, {l.args[0].at.buffer, 8, 16}, 0, 0};
    ASSERT(fits(&l));
    PASS();
}

TEST bindings_that_do_not_fit_are_refused_by_name_and_index(void) {
    launch l = make_launch();
    l.args[1].kind = BIND_NONE;
    ASSERT(!fits(&l) && says("kernel k: buffer 1 (y, float *) is not bound"));
    l = make_launch();
    l.args[5] = l.args[1];
    ASSERT(!fits(&l) && says("buffer 5 is bound"));
    l = make_launch();
    l.args[2].inline_bytes = 8;
    ASSERT(!fits(&l) && says("buffer 2 (n, uint &) is given 8 bytes and takes 4"));
    l.args[2] = (binding){BIND_BUFFER, ACCESS_READ, ELEM_U32, {l.args[0].at.buffer, 0, 2}, 0, 0};
    ASSERT(!fits(&l) && says("buffer 2 (n, uint &) is bound to 2 bytes and takes 4"));
    l = make_launch();
    l.args[0].access = ACCESS_WRITE;
    ASSERT(!fits(&l) && says("buffer 0 (x, const float4 *)") && says("const in the kernel"));
    l = make_launch();
    l.args[0].at.offset = 8;
    ASSERT(!fits(&l) && says("buffer 0") && says("offset 8") && says("multiple of 16"));
    PASS();
}

TEST threadgroup_memory_must_be_what_the_kernel_asks_for(void) {
    launch l = make_launch();
    l.threadgroup_bytes[0] = 0;
    ASSERT(!fits(&l) && says("threadgroup 0 (s, float *) is given no memory"));
    l = make_launch();
    l.threadgroup_bytes[3] = 16;
    ASSERT(!fits(&l) && says("threadgroup 3 is given 16 bytes"));
    l = make_launch();
    l.threadgroup_bytes[0] = 32784;
    ASSERT(!fits(&l) && says("32784 bytes") && says("32768"));
    PASS();
}

TEST grids_and_groups_must_be_possible(void) {
    launch l = make_launch();
    l.grid.y = 0;
    ASSERT(!fits(&l) && says("kernel k: the grid is empty: 4 x 0 x 1"));
    l = make_launch();
    l.group.z = 0;
    ASSERT(!fits(&l) && says("threadgroup is empty: 32 x 2 x 0"));
    l = make_launch();
    l.group = (size3){1u << 31, 1u << 31, 4};
    ASSERT(!fits(&l) && says("1024 threads"));
    l = (launch){.grid = {1, 1, 1}, .group = {65, 1, 1}};
    l.args[0] = make_launch().args[1];
    ASSERT_FALSE(check("small", &l));
    ASSERT(says("small") && says("max_total_threads_per_threadgroup(64)"));
    PASS();
}

static void read_text(void *unused) {
    (void)unused;
    read_msl(launched);
}

SUITE(msl_launch_suite) {
    SET_SETUP(read_text, NULL);
    SET_TEARDOWN(read_nothing, NULL);
    RUN_TEST(a_launch_that_fits_is_accepted);
    RUN_TEST(bindings_that_do_not_fit_are_refused_by_name_and_index);
    RUN_TEST(threadgroup_memory_must_be_what_the_kernel_asks_for);
    RUN_TEST(grids_and_groups_must_be_possible);
}
