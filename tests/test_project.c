/* Tests of projects: ops of the user's own, described by a text or a C file, with every verb.
 *
 * $T is a project made by `assay init`; each test plants what it needs in it. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

SUITE(project_suite);

#define NEW "rm -rf \"$T\" && \"$A\" init \"$T\" && "
#define NEW_C "rm -rf \"$T\" && \"$A\" init --c \"$T\" && "
#define ON " -C \"$T\" --device soft "

TEST a_new_project_is_checked_validated_linted_and_listed(void) {
    ASSERT_RUN(NEW "\"$A\" check" ON, 0);
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_RUN("cd \"$T\" && mkdir -p below && cd below && \"$A\" check --device soft --math fast",
               0);
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_RUN("\"$A\" validate" ON "--quick", 0);
    ASSERT_SAYS("caught");
    ASSERT_RUN("\"$A\" lint -C \"$T\"", 0);
    ASSERT_SAYS("softcap.metal: 1 kernel, 1 compiles");
    ASSERT_RUN("\"$A\" list -C \"$T\"", 0);
    ASSERT_SAYS("y = cap * tanh(x / cap)");
    ASSERT_FALSE(command_says("rmsnorm"));
    ASSERT_RUN("\"$A\" check" ON "rmsnorm", 2);
    PASS();
}

TEST a_description_in_c_gives_the_same_verdicts(void) {
    ASSERT_RUN(NEW_C "\"$A\" check" ON, 0);
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_RUN("\"$A\" check" ON "--math fast --quiet", 0);
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_RUN(
        "sed -i.bak 's/precise::tanh(x/precise::tanh(1.000001f * x/' \"$T\"/softcap.metal && "
        "\"$A\" check" ON "softcap/4096/normal",
        1);
    ASSERT_SAYS("FAIL");
    PASS();
}

TEST init_replaces_nothing(void) {
    ASSERT_RUN(NEW "\"$A\" init \"$T\"", 2);
    ASSERT_SAYS("exists already");
    ASSERT_RUN("\"$A\" init", 2);
    PASS();
}

TEST wrong_kernels_of_a_project_are_caught(void) {
    ASSERT_RUN(NEW "sed -i.bak 's/i >= n/i > n/' \"$T\"/softcap.metal && \"$A\" validate" ON
                   "softcap/33/normal",
               1);
    ASSERT_SAYS("softcap.metal:14");
    ASSERT_RUN("sed -i.bak 's/if (i > n)/while (i == 3u \\&\\& n == 33u) y[i] = 0;if(i>=n)/' "
               "\"$T\"/softcap.metal && "
               "\"$A\" check" ON "--timeout 3 softcap/33/normal softcap/1/normal",
               1);
    ASSERT_SAYS("1 passed, 1 failed");
    ASSERT_SAYS("softcap/33/normal: timed out after 3 s in the kernel at softcap.metal:12");
    ASSERT_RUN("ASSAY_LOOP_SECONDS=9 \"$A\" validate" ON "--timeout 3 softcap/33/normal", 1);
    ASSERT_SAYS("softcap/33/normal: timed out after 3 s in the kernel at softcap.metal:12");
    PASS();
}

/* Bench needs roofs, which are kernels of Assay's own. */
TEST bench_mutants_and_report_work_in_a_project(void) {
    ASSERT_RUN(NEW "\"$A\" bench" ON "--shape 256 --budget 0.02", 0);
    ASSERT_SAYS("1 timed, 0 not timed");
    ASSERT_RUN("cp -R \"$T\" \"$T.old\" && \"$A\" bench" ON
               "--shape 256 --budget 0.02 --baseline \"$T.old\"; r=$?; rm -rf \"$T.old\"; "
               "[ $r = 0 ] || [ $r = 5 ] || [ $r = 4 ]",
               0);
    ASSERT_SAYS("same source");
    ASSERT_RUN("\"$A\" mutants -C \"$T\" --sample 2", 0);
    ASSERT_SAYS("100.0 %");
    ASSERT_RUN("\"$A\" report -C \"$T\" && grep -c softcap \"$T\"/results/report.html", 0);
    PASS();
}

/* A header in a folder beside the kernels, and one in a folder among them, which is mutated too. */
TEST lint_and_mutants_use_the_include_folders(void) {
    ASSERT_RUN(NEW "cd \"$T\" && mkdir -p msl/own far && "
                   "printf 'kernels = msl\\ninclude = ../far own\\n' > assay.project && "
                   "echo '#define HERE precise' > far/far.h && "
                   "printf '#include <metal_stdlib>\\ninline float cap_of(float x, float cap) {\\n"
                   "    return cap * metal::HERE::tanh(x / cap);\\n}\\n' > msl/own/cap.h && "
                   "{ printf '#include \"far.h\"\\n#include \"cap.h\"\\n'; "
                   "sed 's/= cap .*/= cap_of(x[i], cap);/' softcap.metal; } > msl/softcap.metal && "
                   "rm softcap.metal && \"$A\" check" ON "softcap/33/normal && \"$A\" lint -C .",
               0);
    ASSERT_SAYS("1 kernel, 1 compiles");
    ASSERT_RUN("cd \"$T\" && \"$A\" mutants --csv rows.csv && cat rows.csv", 0);
    ASSERT_SAYS("9 mutants of 9; 100.0 %");
    ASSERT_SAYS("own/cap.h,3,cap_of,* to +");
    ASSERT_RUN("cd \"$T\" && mkdir other && cp -R msl other/msl && mv far other/far && "
               "\"$A\" lint --kernels other/msl",
               0);
    ASSERT_SAYS("other/msl/softcap.metal: 1 kernel, 1 compiles");
    ASSERT_RUN("\"$A\" lint -C \"$T\"", 1);
    ASSERT_SAYS("far.h");
    PASS();
}

/* Descriptions as texts ----------------------------------------------------------------------- */

#define ROWS                                                                                       \
    "cat > \"$T\"/rows.metal <<'END'\n"                                                            \
    "#include <metal_stdlib>\n"                                                                    \
    "using namespace metal;\n"                                                                     \
    "kernel void row_sum(device const float *x [[buffer(0)]], device half *y [[buffer(1)]],\n"     \
    "    constant uint &n [[buffer(2)]], uint r [[threadgroup_position_in_grid]],\n"               \
    "    uint lane [[thread_index_in_simdgroup]]) {\n"                                             \
    "    float sum = 0;\n"                                                                         \
    "    for (uint i = lane; i < n; i += 32) sum += x[r * n + i];\n"                               \
    "    sum = simd_sum(sum);\n"                                                                   \
    "    if (lane == 0) y[r] = half(sum);\n"                                                       \
    "}\n"                                                                                          \
    "kernel void gather(device const float *t [[buffer(0)]], device const uint *ids "              \
    "[[buffer(1)]],\n"                                                                             \
    "    device float *y [[buffer(2)]], constant uint &d [[buffer(3)]],\n"                         \
    "    uint2 g [[thread_position_in_grid]]) {\n"                                                 \
    "    y[g.y * d + g.x] += t[ids[g.y] * d + g.x];\n"                                             \
    "}\n"                                                                                          \
    "END\n"
#define ROW_SUM                                                                                    \
    "cat > \"$T\"/row_sum.op <<'END'\n"                                                            \
    "op row_sum: sums of rows\n"                                                                   \
    "dims rows dim\n"                                                                              \
    "shapes 1x1 3x33 7x576\n"                                                                      \
    "inputs 3x77\n"                                                                                \
    "needs dim % 2 == 1 || dim > 500\n"                                                            \
    "kernel row_sum rows.metal group 32 groups rows about one simdgroup per row\n"                 \
    "in x f32[rows, dim]\n"                                                                        \
    "out y f16[rows]\n"                                                                            \
    "value dim u32 = dim\n"                                                                        \
    "oracle y[r] = sum(j < dim: x[r, j])\n"                                                        \
    "END\n"
#define GATHER                                                                                     \
    "cat > \"$T\"/gather.op <<'END'\n"                                                             \
    "op gather: y += rows of t\n"                                                                  \
    "dims n dim vocab\n"                                                                           \
    "shapes 1x1x1 3x33x7\n"                                                                        \
    "kernel gather rows.metal group 32,2 dispatch dim, n\n"                                        \
    "in t f32[vocab, dim]\n"                                                                       \
    "in ids u32[n] below vocab\n"                                                                  \
    "inout y f32[n, dim]\n"                                                                        \
    "value dim u32 = dim\n"                                                                        \
    "oracle {\n"                                                                                   \
    "    for (int64_t i = 0; i < n; i++)\n"                                                        \
    "        for (int64_t j = 0; j < dim; j++) {\n"                                                \
    "            y[i * dim + j] += t[(int64_t)ids[i] * dim + j];\n"                                \
    "        }\n"                                                                                  \
    "}\n"                                                                                          \
    "END\n"

TEST reductions_indices_and_c_lines_are_described_by_a_text(void) {
    ASSERT_RUN(NEW "rm \"$T\"/softcap.op\n" ROWS ROW_SUM GATHER "\"$A\" check" ON, 0);
    ASSERT_SAYS("10 passed, 0 failed");
    ASSERT_RUN(
        "sed -i.bak 's/i += 32/i += 33/' \"$T\"/rows.metal && \"$A\" check" ON "row_sum/7x576", 1);
    ASSERT_RUN("sed -i.bak 's/i += 33/i += 32/; s/ids\\[g.y\\]/ids[0]/' \"$T\"/rows.metal && "
               "\"$A\" check" ON "gather/3x33x7",
               1);
    PASS();
}

/* A .npy file of float64 0, 1, 2, 3 (and their doubles), as numpy writes it. */
#define NPY(name, values)                                                                          \
    "{ printf '\\223NUMPY\\1\\0\\166\\0'; printf '%-117s\\n' \"{'descr': '<f8', 'fortran_order': " \
    "False, 'shape': (4,), }\"; printf '" values "'; } > \"$T\"/" name "\n"

TEST expected_values_come_from_files(void) {
    ASSERT_RUN(NEW "rm \"$T\"/softcap.op\n" NPY(
                   "x_4.npy",
                   "\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\360\\077\\0\\0\\0\\0\\0\\0\\0\\100"
                   "\\0\\0\\0\\0\\0\\0\\010\\100") "cat > \"$T\"/file.op <<'END'\n"
                                                   "op softcap\n"
                                                   "dims n\n"
                                                   "shapes 4\n"
                                                   "kernel softcap softcap.metal group 32 "
                                                   "threads n\n"
                                                   "in x f32[n] from x_{n}.npy\n"
                                                   "out y f32[n] from x_{n}.npy\n"
                                                   "value n u32 = n\n"
                                                   "value cap f32 = 1e6\n"
                                                   "roundings 64\n"
                                                   "END\n"
                                                   "\"$A\" check" ON,
               0);
    ASSERT_SAYS("1 passed");
    ASSERT_RUN("sed -i.bak 's/= 1e6/= 30/' \"$T\"/file.op && \"$A\" check" ON, 1);
    ASSERT_SAYS("element 1 is 0.9996");
    ASSERT_RUN("sed -i.bak 's/shapes 4/shapes 5/' \"$T\"/file.op && \"$A\" check" ON, 1);
    ASSERT_SAYS("cannot read");
    ASSERT_RUN("sed -i.bak 's/_{n}/_4/' \"$T\"/file.op && \"$A\" check" ON, 1);
    ASSERT_SAYS("x_4.npy has 4 elements and the shape needs 5");
    PASS();
}

#define EDITED(edit) NEW "sed -i.bak '" edit "' \"$T\"/softcap.op && \"$A\" check" ON

TEST mistakes_in_a_text_are_named_by_file_and_line(void) {
    ASSERT_RUN(EDITED("s/^op .*/opp softcap/"), 2);
    ASSERT_SAYS("softcap.op:2: there is no line 'opp'");
    ASSERT_RUN(EDITED("s/^shapes.*/shapes 3x4/"), 2);
    ASSERT_SAYS("softcap.op:4: '3x4' is not a shape of 1 size");
    ASSERT_RUN(EDITED("s/x f32/x float/"), 2);
    ASSERT_SAYS("softcap.op:7: there is no type 'float'");
    ASSERT_RUN(EDITED("s/^oracle.*//"), 2);
    ASSERT_SAYS("softcap.op:8: nothing says what 'y' should be");
    ASSERT_RUN(EDITED("s/y\\[i\\]/y[i, j]/"), 2);
    ASSERT_SAYS("softcap.op:11: 'y' has 1 size");
    ASSERT_RUN(EDITED("s/tanh(x/tanh(q/"), 2);
    ASSERT_SAYS("softcap.op:11: 'cap * tanh(q[i] / cap)' needs 'q', which is not a value here");
    ASSERT_RUN(EDITED("s/y f32.n./y f32[m]/"), 2);
    ASSERT_SAYS("softcap.op:8: 'm' needs 'm'");
    ASSERT_RUN(EDITED("s/threads n/threads n - 1/"), 1);
    ASSERT_SAYS("softcap.op:6: 'n - 1' is 0, expected a whole number from 1");
    PASS();
}

/* Descriptions in C --------------------------------------------------------------------------- */

#define EDITED_C(edit) NEW_C "sed -i.bak '" edit "' \"$T\"/softcap.c && \"$A\" check" ON

TEST mistakes_in_a_c_file_are_one_sentence(void) {
    ASSERT_RUN(EDITED_C("s/y->roundings/y->rounding/"), 2);
    ASSERT_SAYS("the description softcap.c does not compile");
    ASSERT_RUN(EDITED_C("s/softcap_op/other_op/"), 2);
    ASSERT_SAYS("define `const op softcap_op = {...};`");
    ASSERT_RUN(EDITED_C("s/^const op softcap_op/ASSAY_OPS(\\&other_op);const op other_op/"), 2);
    ASSERT_RUN(
        EDITED_C("s/cap \\* tanh(/missing(cap * /;s/^#define CAP/double missing(double);\\\n&/"),
        2);
    ASSERT_SAYS("a function that neither it nor assay has");
    ASSERT_RUN("printf 'int x;\\n' > \"$T\"/softcap.c && \"$A\" check" ON, 2);
    ASSERT_SAYS("begin it with #include <assay.h>");
    PASS();
}

TEST a_description_of_another_abi_is_refused(void) {
    ASSERT_RUN(NEW_C "printf '#include <stdint.h>\\nconst uint32_t assay_abi[6] = {77};\\n' > "
                     "\"$T\"/softcap.c && \"$A\" check" ON,
               3);
    ASSERT_SAYS("was compiled against headers of ABI 77, and this program has ABI 3");
    PASS();
}

TEST an_oracle_that_crashes_or_hangs_fails_its_case_only(void) {
    ASSERT_RUN(EDITED_C("s/y->roundings = 16/if (y->count == 31) abort()/") "'softcap/3?/normal'",
               1);
    ASSERT_SAYS("2 passed, 1 failed");
    ASSERT_SAYS("softcap/31/normal: crashed: SIGABRT in the oracle");
    ASSERT_RUN(
        EDITED_C("s/y->roundings = 16/while (y->count == 31) (void)0/") "--timeout 3 "
                                                                        "'softcap/3?/normal'",
        1);
    ASSERT_SAYS("softcap/31/normal: timed out after 3 s in the oracle");
    ASSERT_SAYS("2 passed, 1 failed");
    PASS();
}

TEST a_folder_that_is_no_project_or_has_bad_settings_is_refused(void) {
    ASSERT_RUN(NEW "\"$A\" check -C /", 2);
    ASSERT_SAYS("is not a project");
    ASSERT_RUN("echo 'kernel = x' > \"$T\"/assay.project; \"$A\" check" ON, 2);
    ASSERT_SAYS("assay.project:1: there is no setting 'kernel'");
    ASSERT_RUN("echo 'ops = none.op' > \"$T\"/assay.project; \"$A\" check" ON, 2);
    ASSERT_SAYS("none.op, which is missing");
    ASSERT_RUN(
        "mkdir \"$T\"/msl && mv \"$T\"/*.metal \"$T\"/msl/ && printf '# a\\nkernels = msl\\nops = "
        "*.op\\n' > \"$T\"/assay.project && \"$A\" check" ON "softcap/33/normal",
        0);
    ASSERT_RUN("printf 'ops = *.op\\n' > \"$T\"/assay.project && \"$A\" check" ON
               "--kernels \"$T\"/msl softcap/33/normal && rm -rf \"$T\"",
               0);
    PASS();
}

/* The kernels are in checkouts that this machine need not have. */
TEST the_examples_for_other_libraries_compile(void) {
    ASSERT_RUN("\"$A\" list -C \"$H\"/examples/ggml && \"$A\" list -C \"$H\"/examples/mlx", 0);
    ASSERT_SAYS("kernel_mul_mv_q4_0_f32");
    ASSERT_SAYS("rms_loopedfloat16");
    ASSERT_RUN("\"$A\" check -C \"$H\"/examples/mlx --device soft --kernels \"$H\"/kernels "
               "rmsfloat32/1x1/normal",
               1);
    ASSERT_SAYS("kernels/rms_norm.metal: No such file");
    ASSERT_RUN("\"$A\" check -C \"$H\"/examples/mlx --kernels /nowhere", 2);
    PASS();
}

SUITE(project_suite) {
    RUN_TEST(a_new_project_is_checked_validated_linted_and_listed);
    RUN_TEST(a_description_in_c_gives_the_same_verdicts);
    RUN_TEST(init_replaces_nothing);
    RUN_TEST(wrong_kernels_of_a_project_are_caught);
    RUN_TEST(bench_mutants_and_report_work_in_a_project);
    RUN_TEST(lint_and_mutants_use_the_include_folders);
    RUN_TEST(reductions_indices_and_c_lines_are_described_by_a_text);
    RUN_TEST(expected_values_come_from_files);
    RUN_TEST(mistakes_in_a_text_are_named_by_file_and_line);
    RUN_TEST(mistakes_in_a_c_file_are_one_sentence);
    RUN_TEST(a_description_of_another_abi_is_refused);
    RUN_TEST(an_oracle_that_crashes_or_hangs_fails_its_case_only);
    RUN_TEST(the_examples_for_other_libraries_compile);
    RUN_TEST(a_folder_that_is_no_project_or_has_bad_settings_is_refused);
}
