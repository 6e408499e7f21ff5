/* Tests of Mesa's compiler for Apple GPUs: what is read from its output, as it was recorded. transcripts/agx.txt
 * has what it makes of files where `assay agx setup` has been run. */
#include <greatest.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/agx/agx.h"
#include "transcript.h"

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

/* A module of two loads, a sum and a store, and what llc prints of it: LLVM has lost the line of the second load. */
enum { LABEL = 2 << 16 | 248, LOAD = 4 << 16 | 61, SUM = 5 << 16 | 129, STORE = 3 << 16 | 62 };
static const uint32_t module[] = {0x07230203, 0, 0,    0, 0, /* the header: 20 bytes */
                                  LABEL,      1, LOAD, 2, 3, 4,     LOAD, 2, 5,           6,
                                  SUM,        2, 7,    3, 5, STORE, 6,    7, 1 << 16 | 56};
static const char printed[] =
    "  %2:type = OpTypeFloat 32, debug-location !1; k.metal:1:1\n"
    "bb.1.entry:\n"
    "  %3:fid = OpLoad %2:type, %4:pid, debug-location !7; /h/shim/here.h:3:2 @[ /h/k.metal:7:9 ]\n"
    "  %5:fid = OpLoad %2:type, %6:pid\n"
    "  %7:fid = nnan OpFAddS %2:type, %3:fid, %5:fid, debug-location !8; /h/k.metal:8\n"
    "  OpStore %6:pid, %7:fid, debug-location !9; /h/shim/here.h:9:2 @[ entry of k:1:1 ]\n";

static bool is_place(const agx_places *p, uint32_t offset, const char *text, bool is_near) {
    const agx_place *at = agx_find_place(p, offset);
    return at && (size_t)at->length == strlen(text) && at->is_near == is_near &&
           strncmp(at->text, text, strlen(text)) == 0;
}

TEST an_instruction_of_a_module_has_the_line_where_the_kernel_asks_for_it(void) {
    const size_t words = sizeof module / sizeof *module;
    agx_places p;
    ASSERT(agx_read_places(printed, module, words, &p));
    ASSERT_EQ_FMT((size_t)4, p.count, "%zu");
    ASSERT(is_place(&p, 28, "/h/k.metal:7", false));
    ASSERT(is_place(&p, 44, "/h/k.metal:8", true)); /* that of the sum, which uses it */
    ASSERT(is_place(&p, 60, "/h/k.metal:8", false));
    ASSERT(is_place(&p, 80, "/h/k.metal:8", true)); /* it is only in the shim */
    ASSERT_EQ(NULL, agx_find_place(&p, 32));        /* inside an instruction */
    free(p.items);
    ASSERT_FALSE(agx_read_places(printed, module, words - 9, &p)); /* one is missing */
    free(p.items);
    ASSERT_FALSE(agx_read_places(strstr(printed, "  %5"), module, words, &p));
    free(p.items);
    PASS();
}

/* Value 3 is the compiler's own, for 2; registers bring a move and a wait, and the store has no value. */
TEST an_instruction_of_an_m1_has_the_line_of_the_value_that_it_makes(void) {
    static const char log[] = "shader: MESA_SHADER_COMPUTE\n"
                              "impl (null) {\n"
                              "    block b0:   // preds:\n"
                              "    // 0x1c\n"
                              "    32     %0 = @load_agx (%9)\n"
                              "    // 0x3c\n"
                              "    32     %1 = load_const (0x40000000 = 2.000000)\n"
                              "    32     %2 = fsqrt %0\n"
                              "    // 0x2c\n"
                              "                @store_agx (%2, %9)\n"
                              "}\n"
                              "block0 {\n"
                              "   0 = device_load u0:u1, #0, x\n"
                              "   3 = srsqrt 0\n"
                              "   2 = fmul 0, 3\n"
                              "   device_store 2, u0:u1, #0, x\n"
                              "   stop \n"
                              "}\n\n"
                              "block0 {\n"
                              "   $r4 = device_load u0:u1, #0, x\n"
                              "   wait #0x0, slot 0\n"
                              "   $r5 = srsqrt $r4\n"
                              "   $r4 = fmul $r4, $r5\n"
                              "   r6 = mov1 u2, #0\n"
                              "   device_store $r4, u0:u1, #0, x\n"
                              "   stop \n"
                              "}\n\n"
                              "   0: 0511     load     r4\n"
                              "   2: 3800     wait     a\n"
                              "   4: 8a0d     rsqrts   $r5, $r4\n"
                              "   6: 9a8d     fmul     $r4, $r4, r5\n"
                              "   8: 7e11     mov      r6, u2\n"
                              "   a: 4509     store    r4\n"
                              "   c: 8800     stop\n";
    agx_places p;
    ASSERT(agx_read_places(printed, module, sizeof module / sizeof *module, &p));
    char *text = agx_add_lines(log, &p, "/h");
    ASSERT_STR_EQ("   0: 0511     load     r4 ; k.metal:7\n"
                  "   2: 3800     wait     a ;~ k.metal:8\n"
                  "   4: 8a0d     rsqrts   $r5, $r4 ; k.metal:8\n"
                  "   6: 9a8d     fmul     $r4, $r4, r5 ; k.metal:8\n"
                  "   8: 7e11     mov      r6, u2 ;~ k.metal:8\n"
                  "   a: 4509     store    r4 ;~ k.metal:8\n"
                  "   c: 8800     stop\n",
                  strstr(text, "   0: "));
    free(text);
    free(p.items);
    PASS();
}

SUITE(agx_suite) {
    RUN_TEST(the_last_compilation_in_the_output_counts);
    RUN_TEST(output_without_statistics_is_not_an_answer);
    RUN_TEST(a_refusal_is_read_with_its_reason);
    RUN_TEST(constant_arrays_move_with_all_pointers_into_them);
    RUN_TEST(numbers_of_64_bits_are_loaded_by_halves);
    RUN_TEST(an_instruction_of_a_module_has_the_line_where_the_kernel_asks_for_it);
    RUN_TEST(an_instruction_of_an_m1_has_the_line_of_the_value_that_it_makes);
    transcript_run("agx");
}
