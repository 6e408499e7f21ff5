/* Tests of Mesa's compiler for Apple GPUs: what is read from its output, as it was recorded; that unsigned
 * packages are refused; and, where `assay agx setup` has been run, one file from end to end. */
#include <greatest.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness/agx/agx.h"
#include "support.h"

SUITE(agx_suite);

/* The program is built and its kernel is made: two compilations, of which the second counts. */
#define STATISTICS(instructions, scratch, threads, spills)                                         \
    "CS shader: " instructions " instrs, 434 alu, 434 fscib, 42 ic, 2866 code size, 31 gprs, "     \
    "40 uniforms, " scratch " scratch, " threads " threads, 5 loops, " spills                      \
    " spills:fills, 26 preamble inst\n"
static const char recorded[] =
    "shader: MESA_SHADER_COMPUTE\n"
    "    32     %5 = @load_local_invocation_index\n"
    "   0: 62020000               ldimm    r0h, 0\n" STATISTICS(
        "999", "0", "1024",
        "0:0") "== msl_softmax\n"
               "block0 {\n"
               "   r4 = mov1 r0, #0\n"
               "}\n\n"
               "   0: 62020000               ldimm    r0h, 0\n"
               "   4: fe0990098000           mov      $r2, u8\n"
               "   a: 8800                   stop\n"
               "   0: 0501100d00c8f200       load     r0_r1_r2_r3, du0, 1, lsl 2, i32, xyzw, a\n"
               "   8: 8800                   stop\n"
               "   uniform_st" STATISTICS("413", "176", "704", "80:94");

TEST the_last_compilation_in_the_output_counts(void) {
    agx_facts f;
    char *code = NULL, *answer = agx_shorten_log(recorded);
    ASSERT(answer);
    ASSERT(agx_read_answer(answer, &f, &code));
    ASSERT_STR_EQ("", f.refusal);
    ASSERT_EQ_FMT(413u, f.instructions, "%u");
    ASSERT_EQ_FMT(2866u, f.bytes, "%u");
    ASSERT_EQ_FMT(31u, f.registers, "%u");
    ASSERT_EQ_FMT(176u, f.scratch, "%u");
    ASSERT_EQ_FMT(704u, f.threads, "%u");
    ASSERT_EQ_FMT(80u, f.spills, "%u");
    ASSERT_EQ_FMT(94u, f.fills, "%u");
    ASSERT_STR_EQ("   0: 62020000               ldimm    r0h, 0\n"
                  "   4: fe0990098000           mov      $r2, u8\n"
                  "   a: 8800                   stop\n"
                  "; once per launch\n"
                  "   0: 0501100d00c8f200       load     r0_r1_r2_r3, du0, 1, lsl 2, i32, xyzw, a\n"
                  "   8: 8800                   stop\n",
                  code);
    free(code);
    free(answer);
    PASS();
}

TEST output_without_statistics_is_not_an_answer(void) {
    agx_facts f;
    ASSERT_EQ(NULL, agx_shorten_log(NULL));
    ASSERT_EQ(NULL, agx_shorten_log(""));
    ASSERT_EQ(NULL,
              agx_shorten_log(STATISTICS("413", "0", "1024", "0:0"))); /* no kernel was made */
    ASSERT_EQ(NULL, agx_shorten_log("== msl_softmax\n   0: 8800                   stop\n"));
    ASSERT_FALSE(agx_read_answer("== msl_softmax\nCS shader: 413 instrs, 12 alu\n", &f, NULL));
    ASSERT_FALSE(agx_read_answer("", &f, NULL));
    PASS();
}

TEST a_refusal_is_read_with_its_reason(void) {
    agx_facts f;
    ASSERT(agx_read_answer("refused: Mesa does not take it: LLVM ERROR: no\nmore\n", &f, NULL));
    ASSERT_STR_EQ("Mesa does not take it: LLVM ERROR: no", f.refusal);
    ASSERT_EQ_FMT(0u, f.threads, "%u");
    PASS();
}

TEST constant_arrays_move_with_all_pointers_into_them(void) {
    char module[] =
        "@llvm.compiler.used = appending global [1 x ptr] [ptr @__hip_cuid_1]\n"
        "@table = internal unnamed_addr addrspace(1) constant [4 x i8] c\"abcd\", align 1\n"
        "@held = internal addrspace(3) global [4 x float] undef\n"
        "  %7 = phi ptr addrspace(1) [ %8, %2 ], [ @table, %1 ]\n"
        "  %8 = getelementptr inbounds i8, ptr addrspace(1) %7, i64 1\n"
        "  %9 = load i8, ptr addrspace(1) %8, align 1\n"
        "  %10 = load i8, ptr addrspace(1) %80, align 1\n"
        "  %11 = load i8, ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @table, i64 2)\n"
        "  call void @llvm.memcpy.p0.p1.i64(ptr %3, ptr addrspace(1) align 1 @table, i64 4)\n";
    agx_move_constants(module);
    ASSERT_STR_EQ(
        ";llvm.compiler.used = appending global [1 x ptr] [ptr @__hip_cuid_1]\n"
        "@table = internal unnamed_addr addrspace(2) constant [4 x i8] c\"abcd\", align 1\n"
        "@held = internal addrspace(3) global [4 x float] undef\n"
        "  %7 = phi ptr addrspace(2) [ %8, %2 ], [ @table, %1 ]\n"
        "  %8 = getelementptr inbounds i8, ptr addrspace(2) %7, i64 1\n"
        "  %9 = load i8, ptr addrspace(2) %8, align 1\n"
        "  %10 = load i8, ptr addrspace(1) %80, align 1\n"
        "  %11 = load i8, ptr addrspace(2) getelementptr (i8, ptr addrspace(2) @table, i64 2)\n"
        "  call void @llvm.memcpy.p0.p2.i64(ptr %3, ptr addrspace(2) align 1 @table, i64 4)\n",
        module);
    PASS();
}

TEST numbers_of_64_bits_are_loaded_by_halves(void) {
    char *module = agx_split_loads("define void @k() {\n"
                                   "  %1 = load i64, ptr addrspace(1) %p, align 8\n"
                                   "  %2 = load i64, ptr addrspace(3) %q, align 8\n"
                                   "}\n");
    ASSERT_STR_EQ("define void @k() {\n"
                  "  %agx0.low = load i32, ptr addrspace(1) %p, align 8\n"
                  "  %agx0.at = getelementptr i8, ptr addrspace(1) %p, i64 4\n"
                  "  %agx0.high = load i32, ptr addrspace(1) %agx0.at, align 4\n"
                  "  %agx0.x = zext i32 %agx0.low to i64\n"
                  "  %agx0.y = zext i32 %agx0.high to i64\n"
                  "  %agx0.z = shl i64 %agx0.y, 32\n"
                  "  %1 = or i64 %agx0.x, %agx0.z\n"
                  "  %2 = load i64, ptr addrspace(3) %q, align 8\n"
                  "}\n",
                  module);
    free(module);
    PASS();
}

TEST without_the_folder_one_is_told_how_to_make_it(void) {
    ASSERT_RUN("ASSAY_AGX=\"$T.none\" $A lint --agx $H/kernels/softmax.metal", 3);
    ASSERT_SAYS("assay agx setup");
    ASSERT_RUN("ASSAY_AGX=\"$T.none\" $A agx", 3);
    ASSERT_SAYS("assay agx setup");
    ASSERT_RUN("$A agx remove", 2);
    ASSERT_RUN("$A lint --code softmax $H/kernels/softmax.metal", 2);
    ASSERT_SAYS("for --agx");
    PASS();
}

/* An archive whose lists are not signed by the keys of Debian: nothing of it is unpacked. */
TEST packages_without_a_signature_are_refused(void) {
    if (command_run("command -v apt-get dpkg-deb && "
                    "test -r /usr/share/keyrings/debian-archive-keyring.gpg") != 0)
        SKIPm("apt-get, dpkg-deb or the keys of the Debian archive are missing");
    ASSERT_RUN("for s in trixie trixie-backports; do mkdir -p \"$T/dists/$s/main/binary-amd64\"; "
               "printf 'Suite: %s\\nCodename: %s\\n' $s $s > \"$T/dists/$s/Release\"; done; "
               "ASSAY_AGX=\"$T.new\" ASSAY_AGX_URI=\"file:$T\" $A agx setup; code=$?; "
               "ls \"$T.new\"; rm -rf \"$T\" \"$T.new\"; exit $code",
               3);
    ASSERT_SAYS("not signed");
    ASSERT_FALSE(command_says("tree"));
    PASS();
}

/* Where it is: kernels that need nothing, a private array, constants, simdgroup matrices. */
TEST a_file_is_compiled_for_an_m1_and_large_threadgroups_are_warned_about(void) {
    agx_compiler *c = agx_compiler_new(NULL);
    agx_compiler_free(c);
    if (!c)
        SKIPm("Mesa's compiler is not here: assay agx setup");
    ASSERT_RUN("$A lint --agx $H/tests/kernels/agx.metal --csv $T.agx.csv", 0);
    ASSERT_SAYS("warning: kernel 'indexed' uses");
    ASSERT_SAYS("[agx-scratch]");
    ASSERT_SAYS("multiplied: not compiled: it multiplies simdgroup matrices");
    ASSERT_SAYS("3 kernels, 2 compiled, 1 of them with scratch memory");
    ASSERT_RUN("cat $T.agx.csv", 0);
    ASSERT_SAYS("kernel,file,instructions,half_registers,threads,scratch_bytes");
    ASSERT_SAYS("multiplied,");
    ASSERT_RUN("$A profile --agx softmax rmsnorm_rows --csv $T.now.csv", 0);
    ASSERT_RUN("$A profile --agx softmax --baseline $T.now.csv", 0);
    ASSERT_SAYS("compared with");
    ASSERT_RUN("sed '/^softmax,/s/,[0-9]*,[0-9]*,/,1,1,/' $T.now.csv > $T.less.csv; "
               "$A profile --agx softmax --baseline $T.less.csv",
               4);
    ASSERT_SAYS("softmax: registers grew from 1 to ");
    ASSERT_RUN("$A profile --agx argmax --baseline $T.now.csv", 5);
    ASSERT_SAYS("has none of these kernels");
    ASSERT_RUN("$A profile --agx softmax", 0);
    ASSERT_SAYS("threads  scratch");
    ASSERT_FALSE(command_says("not compiled"));
    ASSERT_RUN("$A lint --agx --code many $H/tests/kernels/agx.metal", 0);
    ASSERT_SAYS("; many, Mesa's compiler, M1:");
    ASSERT_SAYS("stop");
    ASSERT_RUN("$A launch $H/tests/kernels/agx.metal many --threads 1024 --group 1024 "
               "--arg 0=f32[2048]:ramp --arg 1=f32[1024] --device soft",
               0);
    ASSERT_SAYS("# warning: many has threadgroups of 1024 threads; on an M1 there is room for");
    ASSERT_RUN("$A launch $H/tests/kernels/agx.metal many --threads 1024 --group 256 "
               "--arg 0=f32[2048]:ramp --arg 1=f32[1024] --device soft",
               0);
    ASSERT_FALSE(command_says("# warning"));
    PASS();
}

SUITE(agx_suite) {
    RUN_TEST(the_last_compilation_in_the_output_counts);
    RUN_TEST(output_without_statistics_is_not_an_answer);
    RUN_TEST(a_refusal_is_read_with_its_reason);
    RUN_TEST(constant_arrays_move_with_all_pointers_into_them);
    RUN_TEST(numbers_of_64_bits_are_loaded_by_halves);
    RUN_TEST(without_the_folder_one_is_told_how_to_make_it);
    RUN_TEST(packages_without_a_signature_are_refused);
    RUN_TEST(a_file_is_compiled_for_an_m1_and_large_threadgroups_are_warned_about);
}
