/* Tests of `assay run`, `assay model check` and `assay model bench` as commands, on a tiny model of
 * random weights that `assay model synth` makes. What the model computes is tested in test_llama.c.
 */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "support.h"

#define RUN "\"$A\" run --device $D -m \"$T/tiny.gguf\" "

static char before[4096];

static void keep_output(void) {
    strncpy(before, command_get_output(), sizeof before - 1);
}

TEST a_model_can_be_made(void) {
    ASSERT_RUN("rm -rf \"$T\" && mkdir \"$T\" && \"$A\" model synth tiny \"$T/tiny.gguf\"", 0);
    PASS();
}

TEST the_text_goes_to_stdout_and_the_times_to_stderr(void) {
    ASSERT_RUN(RUN "-p 'hello there' -n 8 --ids 2> \"$T/talk\"", 0);
    int ids = 1;
    for (const char *p = command_get_output(); *p; p++)
        ids += *p == ' ';
    ASSERT_EQ(8, ids);
    ASSERT_FALSE(command_says("tok/s"));
    ASSERT_RUN("cat \"$T/talk\"", 0);
    ASSERT_SAYS("prefill");
    ASSERT_SAYS("decode");
    ASSERT_SAYS("tok/s");
    if (support_is_emulated())
        ASSERT_SAYS("emulated");
    PASS();
}

TEST the_same_prompt_gives_the_same_text_from_an_argument_and_from_stdin(void) {
    ASSERT_RUN(RUN "-p 'one two  three' -n 12 2> /dev/null", 0);
    keep_output();
    ASSERT_RUN("printf 'one two  three' | " RUN "-p - -n 12 2> /dev/null", 0);
    ASSERT_STR_EQ(before, command_get_output());
    ASSERT_RUN(RUN "-p 'one two  three' -n 12 --in-flight 7 2> /dev/null", 0);
    ASSERT_STR_EQ(before, command_get_output());
    ASSERT_RUN(RUN "-p 'one two  three' -n 12 --repeat-penalty 1.0001 2> /dev/null", 0);
    ASSERT_STR_EQ(before, command_get_output()); /* chosen on the CPU: the same */
    PASS();
}

#define TERMINAL "python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "

TEST the_prompt_is_printed_on_a_terminal_only(void) {
    ASSERT_RUN(RUN "-p 'one two' -n 4 2> /dev/null", 0);
    ASSERT_FALSE(command_says("one two"));
    ASSERT_RUN(RUN "-p 'one two' -n 4 --echo 2> /dev/null", 0);
    ASSERT(strncmp(command_get_output(), "one two", 7) == 0);
    ASSERT_RUN(RUN "-p 'one two' --echo --no-echo", 2);
    if (command_run("command -v python3") != 0)
        SKIPm("a terminal is made with python3");
    ASSERT_RUN(TERMINAL RUN "-p 'one two' -n 4 < /dev/null", 0);
    ASSERT_SAYS("one two");
    ASSERT_RUN(TERMINAL RUN "-p 'one two' -n 4 --no-echo < /dev/null", 0);
    ASSERT_FALSEm(command_get_output(), command_says("one two"));
    PASS();
}

TEST a_seed_fixes_what_is_drawn(void) {
    ASSERT_RUN(
        RUN "-p abc -n 12 --temp 1.5 --top-k 0 --top-p 1 --min-p 0 --seed 4 --ids 2> /dev/null", 0);
    keep_output();
    ASSERT_RUN(
        RUN "-p abc -n 12 --temp 1.5 --top-k 0 --top-p 1 --min-p 0 --seed 4 --ids 2> /dev/null", 0);
    ASSERT_STR_EQ(before, command_get_output());
    ASSERT_RUN(
        RUN "-p abc -n 12 --temp 1.5 --top-k 0 --top-p 1 --min-p 0 --seed 5 --ids 2> /dev/null", 0);
    ASSERT(strcmp(before, command_get_output()) != 0);
    PASS();
}

TEST a_full_context_ends_the_text_and_says_so(void) {
    ASSERT_RUN(RUN "-p 'hello there' -n 100 -c 16", 0);
    ASSERT_SAYS("context full");
    ASSERT_RUN(RUN "-p 'a prompt that is longer than the context of eight tokens' -c 8", 2);
    ASSERT_SAYS("tokens do not fit into a context of");
    ASSERT_RUN(RUN "-p x -c 513", 2);
    ASSERT_SAYS("more than the 512 tokens");
    PASS();
}

TEST what_cannot_be_run_is_one_sentence(void) {
    ASSERT_RUN(RUN, 2);
    ASSERT_SAYS("run needs a prompt");
    ASSERT_RUN(RUN "-p ''", 2);
    ASSERT_SAYS("the prompt is empty");
    ASSERT_RUN(RUN "-p x --temp -1", 2);
    ASSERT_RUN(RUN "-p x --temp nan", 2);
    ASSERT_RUN(RUN "-p x -n 3x", 2);
    ASSERT_RUN(RUN "-p x --system y", 2);
    ASSERT_RUN("\"$A\" run -m \"$T/none.gguf\" -p x", 2);
    ASSERT_SAYS("none.gguf");
    ASSERT_RUN(
        "head -c 5000 \"$T/tiny.gguf\" > \"$T/cut.gguf\"; \"$A\" run -m \"$T/cut.gguf\" -p x", 2);
    ASSERT_RUN("\"$A\" run -m \"$H/README.md\" -p x", 2);
    ASSERT_RUN(RUN "-p x --chat", 2); /* it has no chat template */
    PASS();
}

TEST a_text_that_cannot_be_written_is_told(void) {
    if (command_run("test -c /dev/full") != 0)
        SKIPm("there is no /dev/full");
    ASSERT_RUN(RUN "-p x -n 4 > /dev/full", 3);
    ASSERT_SAYS("cannot write the output");
    PASS();
}

TEST what_users_of_llama_cpp_type_is_taken_or_explained(void) {
    ASSERT_RUN(RUN "-p 'one two' -n 6 2> /dev/null", 0);
    keep_output();
    ASSERT_RUN("printf 'one two\\n' > \"$T/prompt\" && " RUN
               "-f \"$T/prompt\" --n-predict 6 --ctx-size 64 -t 1 2> /dev/null",
               0);
    ASSERT_STR_EQ(before, command_get_output());
    if (strcmp(support_get_device_name(), "soft") == 0) { /* elsewhere threads are no choice */
        ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" --n-prompt 4 --n-gen 0 "
                   "--repetitions 1 -t 1",
                   0);
        ASSERT_SAYS("pp4 |");
        ASSERT_SAYS("|       1 |");
    }
    ASSERT_RUN(RUN "-p x -ngl 99", 2);
    ASSERT_SAYS("-ngl is how many layers llama.cpp puts on the GPU; here all of them run on the");
    ASSERT_RUN(RUN "-p x --n-gpu-layers=99", 2);
    ASSERT_SAYS("--n-gpu-layers=99 is how many layers");
    ASSERT_RUN(RUN "-p x -cnv", 2);
    ASSERT_SAYS("here --chat sends one message");
    ASSERT_RUN("\"$A\" model bench -ngl 99", 2);
    ASSERT_SAYS("--device chooses");
    ASSERT_RUN(RUN "-p x -f \"$T/prompt\"", 2);
    ASSERT_RUN(RUN "-f \"$T/none\"", 2);
    PASS();
}

TEST only_what_was_compiled_is_called_compiled(void) {
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("the cache is the software device's");
    ASSERT_RUN("export XDG_CACHE_HOME=\"$T/cache\"; " RUN "-p x -n 2 2>&1 > /dev/null", 0);
    ASSERT_SAYS("compiling kernels, which only the first run has to\n");
    ASSERT_SAYS("; the next run finds them in the cache\n");
    ASSERT_RUN("export XDG_CACHE_HOME=\"$T/cache\"; " RUN "-p x -n 2 2>&1 > /dev/null", 0);
    ASSERT_FALSE(command_says("compil"));
    PASS();
}

/* `what` is the signal's name. */
TEST a_signal_ends_the_text_cleanly(const char *what, int status) {
    setenv("WHAT", what, 1);
    ASSERT_RUN(
        "\"$A\" run --device $D -m \"$T/tiny.gguf\" -p x -n 400000 -c 400000 --long-context "
        "--temp 1 > "
        "\"$T/text\" 2> \"$T/talk\" & "
        "i=0; while [ $i -lt 600 ] && [ ! -s \"$T/text\" ]; do sleep 0.2; i=$((i + 1)); done; "
        "kill -$WHAT $!; wait $!",
        status);
    ASSERT_RUN("cat \"$T/talk\"; tail -c 1 \"$T/text\" | od -c", 0);
    ASSERT_SAYS("stopped");
    ASSERT_SAYS("\\n");
    PASS();
}

TEST model_check_passes_and_shows_every_launch(void) {
    ASSERT_RUN("\"$A\" model check --device $D -m \"$T/tiny.gguf\" --launches", 0);
    ASSERT_SAYS("whole pass vs double precision");
    ASSERT_SAYS("layer 1");
    ASSERT_SAYS("decode_attention");
    ASSERT_FALSE(command_says("wrong"));
    PASS();
}

TEST model_check_refuses_a_kernel_that_is_wrong(void) {
    ASSERT_RUN("cp -R \"$H/kernels\" \"$T/kernels\" && "
               "sed 's/precise::exp(-g)/precise::exp(g)/; s/exp(-g)/exp(g)/' "
               "\"$H/kernels/ffn_silu.metal\" "
               "> \"$T/kernels/ffn_silu.metal\" && ! cmp -s \"$H/kernels/ffn_silu.metal\" "
               "\"$T/kernels/ffn_silu.metal\"",
               0);
    ASSERT_RUN("ASSAY_KERNELS=\"$T/kernels\" \"$A\" model check --device $D -m \"$T/tiny.gguf\"",
               1);
    ASSERT_SAYS("ffn_silu");
    PASS();
}

TEST a_run_under_validation_tells_what_was_found(void) {
    ASSERT_RUN(
        "sed 's/if (i >= n)/if (i > n)/; s/i < end/i <= end/' \"$H/kernels/ffn_silu.metal\" > "
        "\"$T/kernels/ffn_silu.metal\" && ! cmp -s \"$H/kernels/ffn_silu.metal\" "
        "\"$T/kernels/ffn_silu.metal\"",
        0);
    ASSERT_RUN("MTL_SHADER_VALIDATION=1 ASSAY_KERNELS=\"$T/kernels\" \"$A\" run --device soft -m "
               "\"$T/tiny.gguf\" -p x -n 2",
               1);
    ASSERT_SAYS("ffn_silu.metal:");
    PASS();
}

TEST model_bench_names_things_as_llama_bench_does(void) {
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 4,8 -n 3 -d 0,5 -r 2", 0);
    ASSERT_SAYS("pp4 |");
    ASSERT_SAYS("pp8 @ d5");
    ASSERT_SAYS("tg3 @ d5");
    ASSERT_SAYS("t/s");
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 4 -n 0 -r 3 -o csv", 0);
    ASSERT_SAYS("build_commit,build_number,cpu_info");
    ASSERT_SAYS("avg_ts,stddev_ts");
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 0 -n 2 -r 1 -o jsonl", 0);
    ASSERT_SAYS("\"n_gen\": 2");
    ASSERT_SAYS("\"samples_ns\": [");
    ASSERT_SAYS("\"waits\": false");
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 4 -n 3 -d 5 -r 1 --wait", 0);
    ASSERT_SAYS("pp4 @ d5");
    ASSERT_SAYS("tg3 wait @ d5");
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 0 -n 2,3 -r 1 -o sql", 0);
    ASSERT_SAYS(
        "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  build_number INTEGER,");
    ASSERT_SAYS("  stddev_ts REAL\n);\n\nINSERT INTO llama_bench (build_commit, ");
    ASSERT_FALSE(command_says("median_ts"));
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -o yaml", 2);
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 0 -n 0", 2);
    ASSERT_RUN("\"$A\" model bench --device $D -m \"$T/tiny.gguf\" -p 4,,8", 2);
    PASS();
}

SUITE(run_suite) {
    RUN_TEST(a_model_can_be_made);
    RUN_TEST(the_text_goes_to_stdout_and_the_times_to_stderr);
    RUN_TEST(the_same_prompt_gives_the_same_text_from_an_argument_and_from_stdin);
    RUN_TEST(the_prompt_is_printed_on_a_terminal_only);
    RUN_TEST(a_seed_fixes_what_is_drawn);
    RUN_TEST(a_full_context_ends_the_text_and_says_so);
    RUN_TEST(what_cannot_be_run_is_one_sentence);
    RUN_TEST(a_text_that_cannot_be_written_is_told);
    RUN_TESTp(a_signal_ends_the_text_cleanly, "INT", 130);
    RUN_TESTp(a_signal_ends_the_text_cleanly, "TERM", 143);
    RUN_TEST(what_users_of_llama_cpp_type_is_taken_or_explained);
    RUN_TEST(only_what_was_compiled_is_called_compiled);
    RUN_TEST(model_check_passes_and_shows_every_launch);
    RUN_TEST(model_check_refuses_a_kernel_that_is_wrong);
    RUN_TEST(a_run_under_validation_tells_what_was_found);
    RUN_TEST(model_bench_names_things_as_llama_bench_does);
    command_run("rm -rf \"$T\"");
}
