/* Tests of descriptions as texts: what can be said in one, what is checked while its expressions
 * are computed, and that one which is wrong fails alone. */
#include <greatest.h>

#include "command.h"

SUITE(describe_suite);

#define NEW "rm -rf $T && mkdir $T && touch $T/assay.project && cd $T\n"
#define CHECK "$A check -C $T --device soft "
#define MSL "#include <metal_stdlib>\nusing namespace metal;\n"

/* A struct, function constants, two threadgroup arguments, intermediate values, six sizes of which
 * some have names that C code would use, and an output whose bits must agree beside one that is
 * rounded. */
#define RICH                                                                                       \
    NEW "cat > rich.metal <<'END'\n" MSL "constant bool adds [[function_constant(3)]];\n"          \
        "constant uint width [[function_constant(4)]];\n"                                          \
        "struct sizes { uint n; float scale; ushort step; };\n"                                    \
        "kernel void rich(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"   \
        "    device int *k [[buffer(2)]], constant sizes &s [[buffer(3)]],\n"                      \
        "    threadgroup float *first [[threadgroup(0)]],\n"                                       \
        "    threadgroup float *second [[threadgroup(1)]],\n"                                      \
        "    uint r [[threadgroup_position_in_grid]],\n"                                           \
        "    uint t [[thread_position_in_threadgroup]]) {\n"                                       \
        "    float m = -INFINITY, sum = 0;\n"                                                      \
        "    for (uint j = t; j < s.n; j += width) m = max(m, x[r * s.n + j]);\n"                  \
        "    first[t] = m;\n"                                                                      \
        "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"                                   \
        "    for (uint j = 0; j < width; j++) m = max(m, first[j]);\n"                             \
        "    for (uint j = t; j < s.n; j += width) sum += exp(x[r * s.n + j] - m);\n"              \
        "    second[t] = sum;\n"                                                                   \
        "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"                                   \
        "    sum = 0;\n"                                                                           \
        "    for (uint j = 0; j < width; j++) sum += second[j];\n"                                 \
        "    for (uint j = t; j < s.n; j += width) {\n"                                            \
        "        y[r * s.n + j] = s.scale * exp(x[r * s.n + j] - m) / sum + (adds ? 1 : 0);\n"     \
        "        k[r * s.n + j] = int(j * s.step) - int(r);\n"                                     \
        "    }\n"                                                                                  \
        "}\n"                                                                                      \
        "END\n"                                                                                    \
        "cat > rich.op <<'END'\n"                                                                  \
        "op rich: a scaled softmax\n"                                                              \
        "dims c l io e one two\n"                                                                  \
        "shapes 3x33x32x1x1x7 2x1024x32x2x1x7\n"                                                   \
        "kernel rich rich.metal group 32 groups c threadgroup 4 * io, 4 * io\n"                    \
        "in x f32[c, l]\n"                                                                         \
        "out y f32[c, l]\n"                                                                        \
        "out k i32[c, l]\n"                                                                        \
        "struct s\n"                                                                               \
        "field n u32 = l\n"                                                                        \
        "field scale f32 = 0.5\n"                                                                  \
        "field step u16 = two\n"                                                                   \
        "constant 3 u8 = 1\n"                                                                      \
        "constant 4 u32 = io\n"                                                                    \
        "let m[r < c] = max(j < l: x[r, j])\n"                                                     \
        "let total[r < c] = sum(j < l: exp(x[r, j] - m[r]))\n"                                     \
        "oracle y[r, i] = s.scale * exp(x[r, i] - m[r]) / total[r] + one\n"                        \
        "oracle k[r, i] = i * s.step - r\n"                                                        \
        "exact k\n"                                                                                \
        "END\n"

TEST structs_constants_threadgroups_and_intermediates_can_be_described(void) {
    ASSERT_RUN(RICH CHECK, 0);
    ASSERT_SAYS("2 passed, 0 failed");
    ASSERT_RUN("sed -i.bak 's/^constant 3.*/constant 3 u8 = 0/' $T/rich.op; " CHECK, 1);
    ASSERT_SAYS("0 passed, 2 failed");
    ASSERT_RUN(RICH "sed -i.bak 's/step u16 = two/step u16 = two + 1/;s/s.step - r/two - r/' "
                    "rich.op; " CHECK,
               1);
    ASSERT_SAYS("'k' (buffer 2): element 1 is 8, expected 7");
    ASSERT_SAYS("every bit must agree");
    ASSERT_RUN("sed -i.bak 's/threadgroup 4 . io, 4 . io/threadgroup 4 * io/' $T/rich.op; " CHECK,
               1);
    ASSERT_SAYS("threadgroup 1");
    ASSERT_RUN("sed -i.bak 's/^constant 4.*/constant 9 u32 = io/' $T/rich.op; " CHECK, 1);
    ASSERT_SAYS("rich.op:12: ");
    PASS();
}

#define PLAIN                                                                                      \
    NEW "cat > plain.metal <<'END'\n" MSL                                                          \
        "kernel void plain(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],\n"  \
        "    uint i [[thread_position_in_grid]]) { y[i] = fmin(fabs(x[i]), 1.5f); }\n"             \
        "END\n"                                                                                    \
        "cat > plain.op <<'END'\n"                                                                 \
        "op plain\n"                                                                               \
        "dims n\n"                                                                                 \
        "shapes 31 32 33\n"                                                                        \
        "kernel plain plain.metal group 32 dispatch n\n"                                           \
        "in x f32[n]\n"                                                                            \
        "out y f32[n]\n"                                                                           \
        "oracle y[i] = min(abs(x[i]), 1.5)\n"                                                      \
        "END\n"
#define ORACLE(text) PLAIN "sed -i.bak 's/^oracle.*/oracle y[i] = " text "/' plain.op; " CHECK

TEST expressions_are_checked_while_they_are_computed(void) {
    ASSERT_RUN(PLAIN CHECK, 0);
    ASSERT_SAYS("3 passed, 0 failed");
    ASSERT_RUN(ORACLE("i == 32 ? x[i + 1] : min(abs(x[i]), 1.5)"), 1);
    ASSERT_SAYS("2 passed, 1 failed");
    ASSERT_SAYS("plain.op:7: 'i == 32 ? x[i + 1] : min(abs(x[i]), 1.5)': index 33 of x is not "
                "between 0 and 32");
    ASSERT_RUN(ORACLE("x[i - 1]"), 1);
    ASSERT_SAYS("index -1 of x");
    ASSERT_RUN(ORACLE("x[i % (i \\/ 40)]"), 1);
    ASSERT_SAYS("plain.op:7: 'x[i % (i / 40)]' divides by 0");
    PASS();
}

TEST mistakes_in_expressions_name_file_and_line(void) {
    static const struct {
        const char *line, *says;
    } bad[] = {
        {ORACLE("abs(z[i])"), "plain.op:7: 'abs(z[i])' needs 'z', which is not a value here"},
        {ORACLE("abs(x)"), "plain.op:7: 'x' in 'abs(x)' is an array: give an index"},
        {ORACLE("cube(x[i])"), "plain.op:7: there is no function 'cube' (valid: sum min max"},
        {ORACLE("x[x[i]]"), "plain.op:7: an index of 'x' in 'x[x[i]]' is not a whole number"},
        {ORACLE("x[i, i]"), "plain.op:7: 'x' has 1 sizes and is given 2 indices"},
        {ORACLE("sum(x[i])"), "plain.op:7: 'sum(x[i])' has a sum that is not given as sum(j < "},
        {ORACLE("y[i]"), "plain.op:7: 'y[i]' needs 'y', which is not a value here"},
        {PLAIN "echo 'terms n' >> plain.op; " CHECK, "plain.op:8: terms and roundings are for"},
        {PLAIN "echo 'scale y[i] = 1' >> plain.op; " CHECK, "plain.op:8: there is no line 'scale'"},
        {PLAIN "echo 'let m[r] = 1' >> plain.op; " CHECK,
         "plain.op:8: expected: let NAME[i < COUNT, ...] = EXPRESSION"},
        {PLAIN "echo 'field n u32 = 1' >> plain.op; " CHECK, "does not follow a line struct"},
        {PLAIN "echo 'value k u8 = 1.5' >> plain.op; " CHECK, "'1.5' is not a whole number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_RUN(bad[i].line, 2);
        ASSERT_SAYS(bad[i].says);
    }
    PASS();
}

TEST tolerances_can_be_set_and_a_failure_says_how(void) {
    ASSERT_RUN(ORACLE("1.0005 * min(abs(x[i]), 1.5)"), 1);
    ASSERT_SAYS("derived from plain.op:7; a line 'rtol y R' or 'atol y A' changes it");
    ASSERT_RUN("echo 'rtol y 1e-3' >> $T/plain.op; " CHECK, 0);
    ASSERT_RUN("sed -i.bak 's/1e-3/1e-4/' $T/plain.op; " CHECK, 1);
    ASSERT_SAYS("(plain.op:8; a line 'rtol y R' or 'atol y A' changes it)");
    ASSERT_RUN("sed -i.bak 's/^rtol.*/atol 0.01/' $T/plain.op; " CHECK, 0);
    ASSERT_RUN("sed -i.bak 's/^atol.*/exact/' $T/plain.op; " CHECK, 1);
    ASSERT_SAYS("every bit must agree");
    PASS();
}

TEST an_input_may_be_read_past_its_end_if_its_line_says_so(void) {
#define VALIDATE "$A validate -C $T --device soft plain/31/normal"
    ASSERT_RUN(PLAIN "sed -i.bak 's/y.i. = .*/y[i] = x[i + 1] == 12345 ? 0 : fmin(fabs(x[i]), "
                     "1.5f); }/' plain.metal; " VALIDATE,
               1);
    ASSERT_SAYS("load outside");
    ASSERT_RUN("sed -i.bak 's/^in x.*/& overread/' $T/plain.op; " VALIDATE, 0);
    PASS();
}

/* Rounding to the nearest code: a value in the middle of two may get either, any other only its
 * own. */
TEST a_number_that_is_rounded_may_go_either_way_only_in_the_middle(void) {
    ASSERT_RUN(NEW "cat > codes.metal <<'END'\n" MSL
                   "kernel void codes(device const float *x [[buffer(0)]],\n"
                   "    device char *q [[buffer(1)]], uint i [[thread_position_in_grid]]) {\n"
                   "    q[i] = char(rint(clamp(x[i] * 31.3f, -127.0f, 127.0f)));\n"
                   "}\nEND\n"
                   "cat > codes.op <<'END'\n"
                   "op codes\ndims n\nshapes 33 4096\ninputs 77\n"
                   "kernel codes codes.metal group 32 dispatch n\n"
                   "in x f32[n]\nout q i8[n]\n"
                   "oracle q[i] = rint(min(max(x[i] * 31.3, -127), 127))\nEND\n" CHECK,
               0);
    ASSERT_RUN("sed -i.bak 's/rint(clamp/floor(clamp/' $T/codes.metal; " CHECK "codes/4096", 1);
    PASS();
}

TEST a_description_that_is_wrong_fails_alone(void) {
    ASSERT_RUN(PLAIN "sed 's/^op plain/opp bad/' plain.op > bad.op; " CHECK, 1);
    ASSERT_SAYS("bad.op:1: there is no line 'opp'");
    ASSERT_SAYS("3 passed, 1 failed");
    ASSERT_RUN(CHECK "plain", 0);
    ASSERT_SAYS("3 passed, 0 failed");
    ASSERT_RUN("echo 'int x' > $T/worse.c; " CHECK, 1);
    ASSERT_SAYS("the description worse.c does not compile");
    ASSERT_SAYS("3 passed, 2 failed");
    ASSERT_RUN("$A list -C $T", 0);
    ASSERT_SAYS("bad.op:1: there is no line 'opp'");
    ASSERT_RUN("rm $T/plain.op; " CHECK, 2);
    ASSERT_SAYS("bad.op:1: there is no line 'opp'");
    PASS();
}

/* The sum of the second shape takes hours; the others are still run. */
TEST an_oracle_that_takes_too_long_fails_its_case_only(void) {
    ASSERT_RUN(
        ORACLE("min(abs(x[i]), 1.5) + 0 * sum(j < (n == 32 ? 1 << 50 : 1): x[i])") "--timeout 6",
        1);
    ASSERT_SAYS("plain/32/normal: timed out after 6 s in the oracle");
    ASSERT_SAYS("2 passed, 1 failed");
    ASSERT_RUN(PLAIN "sed -i.bak 's/y.i. = /((device float *)1)[i] = /' plain.metal; " CHECK
                     "plain/31",
               1);
    ASSERT_SAYS("crashed: SIGSEGV in the kernel");
    PASS();
}

/* The lists are those of the messages about unknown ones. */
TEST the_manual_page_has_every_line_and_every_function(void) {
    ASSERT_RUN(PLAIN "sed -i.bak 's/^op/opp/' plain.op; for word in $(" CHECK
                     "2>&1 | sed 's/.*(valid://;s/).*//'); do grep '^[.]' $H/docs/assay-op.5 | "
                     "grep -qw $word || echo \"<no line $word>\"; done",
               0);
    ASSERT_FALSEm(command_get_output(), command_says("<no line"));
    ASSERT_RUN(ORACLE("cube(x[i])") "2>&1 | sed 's/.*(valid://;s/).*//' > words; wc -w < words; "
                                    "for word in $(cat words); do grep -qw $word "
                                    "$H/docs/assay-op.5 || echo \"<no function $word>\"; done",
               0);
    ASSERT_SAYS("32");
    ASSERT_FALSEm(command_get_output(), command_says("<no function"));
    PASS();
}

/* Sums that cancel, from a file of float64 as numpy writes it: 8 rows whose sums are small beside
 * their terms. */
TEST expected_sums_from_numpy_pass_and_wrong_ones_fail(void) {
    ASSERT_RUN(NEW
               "cat > rows.metal <<'END'\n" MSL
               "kernel void row_sum(device const float *x [[buffer(0)]],\n"
               "    device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],\n"
               "    uint row [[threadgroup_position_in_grid]],\n"
               "    uint lane [[thread_index_in_simdgroup]]) {\n"
               "    float sum = 0;\n"
               "    for (uint i = lane; i < n; i += 32) sum += x[row * n + i];\n"
               "    sum = simd_sum(sum);\n"
               "    if (lane == 0) y[row] = sum;\n"
               "}\nEND\n"
               "cat > rows.op <<'END'\n"
               "op row_sum\ndims rows dim\nshapes 64x4096\n"
               "kernel row_sum rows.metal group 32 groups rows\n"
               "in x f32[rows, dim] from x.f32\nout y f32[rows] from y.npy\n"
               "value dim u32 = dim\nEND\n"
               "cat > make.py <<'END'\n"
               "import random, struct, sys\n"
               "random.seed(1)\n"
               "off = float(sys.argv[1])\n"
               "x = [struct.unpack('f', struct.pack('f', random.gauss(0, 1)))[0] for i in "
               "range(64 * 4096)]\n"
               "open('x.f32', 'wb').write(struct.pack('%df' % len(x), *x))\n"
               "y = [off * sum(x[r * 4096:(r + 1) * 4096]) for r in range(64)]\n"
               "head = \"{'descr': '<f8', 'fortran_order': False, 'shape': (64,), }\"\n"
               "open('y.npy', 'wb').write(b'\\x93NUMPY\\x01\\x00\\x76\\x00' + (head.ljust(117) + "
               "'\\n').encode() + struct.pack('64d', *y))\n"
               "END\n"
               "python3 make.py 1; " CHECK,
               0);
    ASSERT_RUN("cd $T && python3 make.py 1.001; " CHECK, 1);
    ASSERT_SAYS("a line 'rtol y R' or 'atol y A' changes it");
    PASS();
}

/* The tolerance of 65536 terms is not that of the sum of their magnitudes, which 0.1 % is less
 * than. */
TEST long_sums_that_cancel_are_checked_to_a_thousandth(void) {
    ASSERT_RUN(NEW "cat > rows.metal <<'END'\n" MSL
                   "kernel void dots(device const float *x [[buffer(0)]],\n"
                   "    device const float *w [[buffer(1)]], device float *y [[buffer(2)]],\n"
                   "    constant uint &n [[buffer(3)]], constant float &off [[buffer(4)]],\n"
                   "    uint row [[threadgroup_position_in_grid]],\n"
                   "    uint lane [[thread_index_in_simdgroup]]) {\n"
                   "    float sum = 0;\n"
                   "    for (uint i = lane * (n / 32); i < (lane + 1) * (n / 32); i++)\n"
                   "        sum = fma(x[row * n + i], w[i], sum);\n"
                   "    sum = simd_sum(sum);\n"
                   "    if (lane == 0) y[row] = off * sum;\n"
                   "}\nEND\n"
                   "cat > rows.op <<'END'\n"
                   "op dots\ndims rows dim off\nshapes 16x65536x1000 16x65536x1001\n"
                   "inputs 3x4096x1000\n"
                   "kernel dots rows.metal group 32 groups rows\n"
                   "in x f32[rows, dim]\nin w f32[dim]\nout y f32[rows]\n"
                   "value n u32 = dim\nvalue factor f32 = off / 1000.0\n"
                   "oracle y[r] = sum(j < dim: x[r, j] * w[j])\nEND\n" CHECK,
               1);
    ASSERT_SAYS("6 passed, 1 failed");
    ASSERT_SAYS("dots/16x65536x1001/normal: kernel dots: 'y'");
    PASS();
}

SUITE(describe_suite) {
    RUN_TEST(structs_constants_threadgroups_and_intermediates_can_be_described);
    RUN_TEST(expressions_are_checked_while_they_are_computed);
    RUN_TEST(mistakes_in_expressions_name_file_and_line);
    RUN_TEST(tolerances_can_be_set_and_a_failure_says_how);
    RUN_TEST(an_input_may_be_read_past_its_end_if_its_line_says_so);
    RUN_TEST(a_number_that_is_rounded_may_go_either_way_only_in_the_middle);
    RUN_TEST(a_description_that_is_wrong_fails_alone);
    RUN_TEST(an_oracle_that_takes_too_long_fails_its_case_only);
    RUN_TEST(the_manual_page_has_every_line_and_every_function);
    RUN_TEST(long_sums_that_cancel_are_checked_to_a_thousandth);
    RUN_TEST(expected_sums_from_numpy_pass_and_wrong_ones_fail);
}
