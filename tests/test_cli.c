/* Tests of the command line: ./assay is run as a child and judged by its output and exit status.
 *
 * Kernels that crash, hang or do not compile come from a copy of kernels/ with one file replaced,
 * given by ASSAY_KERNELS. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/device/device.h"
#include "kernels/kernels.h"
#include "support.h"

TEST a_file_that_cannot_be_written_is_refused_before_the_first_case(void) {
    ASSERT_RUN("\"$A\" check buffer_copy --csv /nonexistent/x.csv --device $D", 2);
    ASSERT_SAYS("cannot write /nonexistent/x.csv");
    ASSERT_FALSE(command_says("passed"));
    ASSERT_RUN("\"$A\" check buffer_copy --junit /nonexistent/x.xml --device $D", 2);
    ASSERT_FALSE(command_says("passed"));
    PASS();
}

SUITE(cli_suite);

static int count_of(const char *text) {
    int n = 0;
    for (const char *p = command_get_output(); (p = strstr(p, text)); p += strlen(text))
        n++;
    return n;
}

/* A copy of kernels/ in which buffer_copy.metal is this text. */
static bool plant(const char *text) {
    if (command_run("rm -rf \"$T\" && cp -R \"$H/kernels\" \"$T\"") != 0)
        return false;
    char path[300];
    err e;
    snprintf(path, sizeof path, "%s/buffer_copy.metal", getenv("T"));
    return os_write_file(path, text, strlen(text), &e);
}

static void clear(void) {
    command_run("rm -rf \"$T\" \"$T.csv\"");
}

#define PLANTED(body)                                                                              \
    "#include <metal_stdlib>\n"                                                                    \
    "using namespace metal;\n"                                                                     \
    "kernel void buffer_copy(device const float *src [[buffer(0)]],\n"                             \
    "                        device float *dst [[buffer(1)]],\n"                                   \
    "                        constant uint &count [[buffer(2)]],\n"                                \
    "                        uint i [[thread_position_in_grid]]) {\n" body "}\n"

/* Three cases of the planted kernel, and three of another in the same run. */
#define CHECK_PLANTED                                                                              \
    "ASSAY_KERNELS=\"$T\" \"$A\" check --device $D --timeout 8 'buffer_copy/3[123]/normal' "       \
    "'residual_add/3[123]/normal'"

TEST help_is_given_for_assay_and_for_every_verb(void) {
    ASSERT_RUN("\"$A\" --help", 0);
    ASSERT_SAYS("usage: assay VERB");
    ASSERT_SAYS("ASSAY_KERNELS");
    ASSERT_RUN("\"$A\" info --help", 0);
    ASSERT_SAYS("usage: assay info");
    ASSERT_RUN("\"$A\" list --help", 0);
    ASSERT_SAYS("--md");
    ASSERT_RUN("\"$A\" check --help", 0);
    ASSERT_SAYS("--seed N");
    ASSERT_SAYS("(default 1)");
    ASSERT(!command_says("--worker"));
    PASS();
}

TEST no_verb_is_a_usage_error_with_the_help(void) {
    ASSERT_RUN("\"$A\"", 2);
    ASSERT_SAYS("usage: assay VERB");
    PASS();
}

TEST the_version_is_printed(void) {
    ASSERT_RUN("\"$A\" --version", 0);
    ASSERTm(command_get_output(), strncmp(command_get_output(), "assay ", 6) == 0);
    PASS();
}

TEST an_unknown_verb_is_answered_with_the_valid_ones(void) {
    ASSERT_RUN("\"$A\" chekc", 2);
    ASSERT_SAYS("did you mean 'check'?");
    ASSERT_SAYS("info, doctor, list, check");
    PASS();
}

TEST an_unknown_option_is_answered_with_the_valid_ones(void) {
    ASSERT_RUN("\"$A\" check --sead 7", 2);
    ASSERT_SAYS("did you mean --seed?");
    ASSERT_RUN("\"$A\" list --all", 2);
    ASSERT_SAYS("--md");
    PASS();
}

TEST a_name_too_many_is_a_usage_error(void) {
    ASSERT_RUN("\"$A\" info rmsnorm", 2);
    ASSERT_SAYS("takes no names");
    PASS();
}

TEST bad_numbers_are_usage_errors(void) {
    ASSERT_RUN("\"$A\" check --seed 1x", 2);
    ASSERT_RUN("\"$A\" check --seed=-1", 2);
    ASSERT_RUN("\"$A\" check --jobs 0", 2);
    ASSERT_SAYS("from 1 to 256");
    ASSERT_RUN("\"$A\" check --timeout never", 2);
    ASSERT_RUN("\"$A\" check --seed 1 --seed 2", 2);
    PASS();
}

TEST a_filter_that_matches_nothing_is_answered_in_one_line(void) {
    ASSERT_RUN("\"$A\" check rmsnrom 2>&1 | wc -l && ! \"$A\" check rmsnrom", 0);
    ASSERT_SAYS("1\n");
    ASSERT_SAYS("no op, kernel or case is called 'rmsnrom'; did you mean rmsnorm?");
    ASSERT_RUN("\"$A\" check buffer_copy nonsense", 2);
    ASSERT_SAYS("'nonsense'; assay list shows them all");
    ASSERT_RUN("\"$A\" check buffer_copy --shape 34", 2);
    ASSERT_SAYS("49152");
    ASSERT_RUN("\"$A\" check --input noise", 2);
    ASSERT_SAYS("denormals");
    PASS();
}

/* '' is what a script passes whose variable is not set. */
TEST every_verb_refuses_a_name_that_nothing_has(void) {
    static const char *const verbs[] = {"check", "validate", "bench", "profile", "list", "mutants"};
    static const char *const names[] = {"", "nonsense", "nons*", "matvec/*/nonsense"};
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            char line[128], words[64];
            snprintf(line, sizeof line, "\"$A\" %s '%s'", verbs[v], names[n]);
            snprintf(words, sizeof words, " is called '%s'", names[n]);
            ASSERT_RUN(line, 2);
            ASSERT_SAYS(words);
        }
    PASS();
}

TEST axes_that_nothing_has_are_answered_with_the_nearest(void) {
    static const struct {
        const char *line, *words;
    } wrong[] = {
        {"\"$A\" check matvec --format q40",
         "no weight format is called 'q40'; did you mean q4_0?"},
        {"\"$A\" bench matvec --format q4_00", "did you mean q4_0?"},
        {"\"$A\" check --variant rowblok", "did you mean rowblock?"},
        {"\"$A\" list matvc", "did you mean matvec?"},
        {"\"$A\" check matvec --accumulate maybe", "yes or no, not 'maybe'"},
        {"\"$A\" check matvec --batch 0", "--batch takes numbers from 1"},
        {"\"$A\" check matvec --format ,", "--format takes a comma-separated list"},
        {"\"$A\" check rmsnorm --format q4_0", "'rmsnorm' has no kernel with the given format"},
        {"\"$A\" list rmsnorm --accumulate yes", "'rmsnorm' has no kernel with the given format"},
        {"\"$A\" bench matvec_q4_0_vec16 --batch 3", "'matvec_q4_0_vec16' has no kernel with"},
        {"\"$A\" profile matvec_q4_0_vec16 --batch 3", "'matvec_q4_0_vec16' has no kernel with"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ASSERT_RUN(wrong[i].line, 2);
        ASSERT_SAYS(wrong[i].words);
    }
    PASS();
}

/* A kernel of one token skips the batch of 8; those of many take both batches. */
TEST cases_are_chosen_by_axes(void) {
    char counts[64];
    size_t one = 0, many = 0;
    for (size_t i = 0; i < matvec_op.kernel_count; i++) {
        const kernel *k = &matvec_op.kernels[i];
        bool is_asked = (k->format == &format_q4_0 || k->format == &format_q8_0) &&
                        op_takes(&matvec_op, k, &(shape){{7, 96}}, NULL);
        *(k->tokens ? &many : &one) += is_asked && k->accumulates;
    }
    snprintf(counts, sizeof counts, "%zu passed, 0 failed, %zu skipped\n", one + 2 * many, one);
    ASSERT_RUN("\"$A\" check --device $D matvec --format q4_0,q8_0 --accumulate yes --shape 7x96 "
               "--batch 1,8 --input zeros -v | tr -s ' '",
               0);
    ASSERT_SAYS("matvec_q4_0_accumulate_vec16_rows 7x96 ");
    ASSERT_SAYS("multi_token_matvec_q8_0_accumulate_per_thread 7x96x8 ");
    ASSERT_SAYS(counts);
    ASSERT_RUN("\"$A\" list --format Q6_K --variant reuse | tr -s ' '", 0);
    ASSERT_SAYS("multi_token_matvec_q6_k_accumulate_reuse q6_k += many");
    ASSERT(!strstr(command_get_output(), "per_thread") && !strstr(command_get_output(), "q4_k"));
    PASS();
}

TEST what_a_kernel_does_not_take_is_a_skip_with_a_reason(void) {
    ASSERT_RUN("\"$A\" check --device $D rmsnorm --shape 2x33 --skipped --csv \"$T.csv\"", 0);
    ASSERT_SAYS("2 passed, 0 failed, 2 skipped\n");
    ASSERT_SAYS("rmsnorm_simdgroup/2x33/normal: needs 'rows' to be 1, not 2");
    ASSERT_RUN("grep -c 'rmsnorm.*,skip,.*to be 1, not 2' \"$T.csv\"; rm \"$T.csv\"", 0);
    ASSERT_SAYS("2\n");
    ASSERT_RUN("\"$A\" check --device $D rmsnorm_simdgroup --shape 2x33", 3);
    ASSERT_SAYS("0 passed, 0 failed, 1 skipped\n");
    ASSERT_SAYS("nothing was checked: rmsnorm_simdgroup/2x33/normal needs 'rows' to be 1, not 2");
    PASS();
}

TEST list_has_every_kernel_of_the_registry(void) {
    ASSERT_RUN("\"$A\" list", 0);
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            ASSERT_SAYS(registry[i]->kernels[k].name);
    ASSERT_RUN("\"$A\" list --md", 0);
    for (size_t i = 0; i < registry_count; i++) {
        char cell[160];
        snprintf(cell, sizeof cell, "| `%s` | ", registry[i]->name);
        ASSERT_SAYS(cell);
        ASSERT_SAYS(registry[i]->dims);
    }
    ASSERT_SAYS(" kernels](#matvec) |");
    ASSERT_SAYS("\n## matvec\n");
    ASSERT_SAYS(" bf16 f32 | = and += | each weight decoded once for 8 tokens, one quad per row |");
    PASS();
}

TEST info_names_device_compiler_and_what_is_missing(void) {
    ASSERT_RUN("\"$A\" info --device soft", 0);
    ASSERT_SAYS("software Metal device");
    ASSERT_SAYS("compiler");
    ASSERT_SAYS("clang");
    ASSERT_SAYS("cores");
    ASSERT_SAYS("cache");
    ASSERT_RUN("PATH=/nowhere ASSAY_CLANG= \"$A\" info --device soft", 3);
    ASSERT_SAYS("package gnuplot");
    ASSERT_SAYS("no clang found");
    PASS();
}

TEST info_prints_one_field_for_scripts(void) {
    ASSERT_RUN("\"$A\" info --device soft --field results", 0);
    ASSERTm(command_get_output(),
            strncmp(command_get_output(), "results/software-metal-device", 29) == 0 &&
                count_of("\n") == 1);
    ASSERT_RUN("PATH=/nowhere ASSAY_CLANG= \"$A\" info --device soft --field assay", 0);
    ASSERT_RUN("\"$A\" info --device soft --field colour", 2);
    ASSERT_SAYS("info has no line 'colour'");
    PASS();
}

TEST a_device_that_cannot_be_had_says_why(void) {
    const char *name;
    err e;
    bool is_available = true;
    for (int i = 0; is_available && device_describe(i, &name, &is_available, &e); i++)
        continue;
    if (is_available)
        SKIPm("every device is available here");
    char line[128];
    snprintf(line, sizeof line, "\"$A\" check buffer_copy --device %s", name);
    ASSERT_RUN(line, 3);
    ASSERT_SAYS(e.text);
    ASSERT_RUN("ASSAY_DEVICE=abacus \"$A\" check buffer_copy", 2);
    ASSERT_SAYS("abacus");
    PASS();
}

TEST a_capture_is_of_one_case_and_only_metal_makes_them(void) {
    ASSERT_RUN("\"$A\" check --device $D buffer_copy --capture \"$T.gputrace\"", 2);
    ASSERT_SAYS("for one case");
    ASSERT_RUN("\"$A\" check --device soft buffer_copy/33/normal --capture \"$T.gputrace\"", 1);
    ASSERT_SAYS("'soft' makes no captures");
    PASS();
}

/* By themselves the cases of a kernel share a line; -v has a row for each, --ops a line per op, -q none. */
TEST right_kernels_have_a_line_each(void) {
    ASSERT_RUN("\"$A\" check --device $D 'buffer_copy/3[123]/normal' 'rmsnorm*/1x77/normal' 2>&1 | "
               "tr -s ' '",
               0);
    ASSERT_SAYS("# seed: 1\n");
    ASSERT_SAYS("kernel verdict cases margin time\nbuffer_copy pass 3 0 ");
    ASSERT_EQ_FMT(1 + (int)rmsnorm_op.kernel_count, count_of(" pass "), "%d");
    ASSERT_RUN("\"$A\" check --device $D 'buffer_copy/3[123]/normal' -v", 0);
    ASSERT_EQ_FMT(3, count_of("  pass  "), "%d");
    ASSERT_SAYS("3 passed, 0 failed\n");
    ASSERT_RUN("\"$A\" check --device $D --ops 'rmsnorm*/1x77/normal'", 0);
    ASSERT_EQ_FMT(1, count_of("  pass  "), "%d");
    ASSERT_RUN("\"$A\" check --device $D -q 'buffer_copy/3[123]/normal'", 0);
    ASSERT_STR_EQ("3 passed, 0 failed\n", command_get_output());
    ASSERT_RUN("\"$A\" check --device $D buffer_copy --shape 77", 0);
    ASSERT_SAYS("5 passed, 0 failed\n");
    ASSERT_RUN("\"$A\" check --device $D --shape=77 --input zeros buffer_copy", 0);
    ASSERT_SAYS("1 passed, 0 failed");
    PASS();
}

/* What does not fit is cut, broken or named; where there is no terminal, nothing is. */
TEST rows_fit_the_terminal(void) {
    static const char *const lines[] = {
        "list", "list --format q4_0",
        "check --device $D -v 'rmsnorm*/1x77/normal' residual_add/33/",
        "check --device $D 'rmsnorm*/1x77/normal'"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[300];
        snprintf(line, sizeof line,
                 "COLUMNS=64 \"$A\" %s | sed 's/…/./g' | awk 'length > 64 { print; n++ } END { "
                 "exit n > 0 }'",
                 lines[i]);
        ASSERT_RUN(line, 0);
    }
    ASSERT_RUN("COLUMNS=64 \"$A\" check --device $D -v 'rmsnorm*/1x77/normal'", 0);
    ASSERT_SAYS("# shape: 1x77, input: normal\n");
    ASSERT_RUN("COLUMNS=56 \"$A\" check --device $D -v 'rmsnorm*/1x77/normal'", 0);
    ASSERT_SAYS("# no room for: nmse");
    ASSERT_SAYS("\nrmsnorm_simdgroup:\npass ");
    ASSERT_RUN("\"$A\" check --device $D -v 'rmsnorm*/1x77/normal'", 0);
    ASSERT_SAYS("  nmse ");
    PASS();
}

TEST the_same_seed_gives_the_same_rows_whatever_the_jobs(void) {
    ASSERT_RUN("c='residual_add ffn_silu -v --device '$D; "
               "\"$A\" check $c --seed 5 --jobs 1 > \"$T.1\" && "
               "\"$A\" check $c --seed 5 --jobs 3 > \"$T.2\" && "
               "\"$A\" check $c --seed 6 > \"$T.3\" && "
               "cmp \"$T.1\" \"$T.2\" && ! cmp -s \"$T.1\" \"$T.3\"; s=$?; "
               "rm -f \"$T.1\" \"$T.2\" \"$T.3\"; exit $s",
               0);
    PASS();
}

TEST the_csv_file_is_written_whole(void) {
    ASSERT_RUN("\"$A\" check --device $D 'buffer_copy/3[123]/normal' --csv \"$T.csv\" "
               "> /dev/null && cat \"$T.csv\" && ls \"$T\".csv*",
               0);
    ASSERT_SAYS("# device: ");
    ASSERT_SAYS("# seed: 1\n");
    ASSERT_SAYS("# compiler: ");
    ASSERT_SAYS("op,kernel,shape,input,seed,verdict,");
    ASSERT_SAYS(
        "\nbuffer_copy,buffer_copy,33,normal,1,pass,33,0,0,0,0,0,0,0,0,0,,kernel:buffer_copy=");
    ASSERT_EQ_FMT(3, count_of(",pass,"), "%d");
    ASSERT(!command_says(".tmp"));
    ASSERT_RUN("\"$A\" check --device $D buffer_copy/33/ --csv /no/such/folder/x.csv", 2);
    ASSERT_SAYS("/no/such/folder/x.csv");
    clear();
    PASS();
}

/* 2 is what the user can mend in the command: see the README. */
TEST a_path_that_is_wrong_is_a_usage_error(void) {
    static const char *const lines[] = {
        "model info /no/such",
        "model info \"$H/README.md\"",
        "model check -m /no/such",
        "model bench -m /no/such",
        "model convert /no/such \"$T\" --type f16",
        "model convert \"$H/models/assay-tiny.gguf\" /no/such/x --type f16",
        "model synth tiny /no/such/x",
        "tokenize -m /no/such x",
        "tune -m /no/such",
        "lint /no/such.metal",
        "launch /no/such.metal",
        "init /dev/null/x",
        "report --out /no/such/x.html",
        "check --device $D buffer_copy/33/ --junit /no/such/x.xml",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[200];
        snprintf(line, sizeof line, "\"$A\" %s", lines[i]);
        ASSERT_RUN(line, 2);
        if (strncmp(lines[i], "launch", 6) == 0)
            ASSERT_SAYS("cannot read /no/such.metal: "); /* and nothing about its grid */
    }
    PASS();
}

TEST rows_that_cannot_be_written_are_an_error(void) {
    if (access("/dev/full", W_OK) != 0)
        SKIPm("this system has no /dev/full");
    ASSERT_RUN("\"$A\" list > /dev/full", 3);
    ASSERT_RUN("\"$A\" check --device $D buffer_copy > /dev/full", 3);
    PASS();
}

TEST wrong_arithmetic_is_named_with_kernel_shape_and_element(void) {
    ASSERT(plant(PLANTED("if (i < count) dst[i] = i == 7 ? src[i] * 1.000001f : src[i];\n")));
    ASSERT_RUN(CHECK_PLANTED, 1);
    ASSERT_SAYS("3 passed, 3 failed");
    ASSERT_SAYS("buffer_copy/31/normal: kernel buffer_copy: 'dst' (buffer 1): element 7 is");
    ASSERT_SAYS("buffer_copy.metal:3\n");
    ASSERT_SAYS("      to run it alone: assay check --device ");
    ASSERT_SAYS(" buffer_copy/31/normal\n      2 more of its cases failed; -v shows them\n");
    clear();
    PASS();
}

TEST failures_come_last_and_quiet_prints_them_alone(void) {
    ASSERT(plant(PLANTED("if (i < count) dst[i] = i % 8 == 7 ? 1e9f : src[i];\n")));
    ASSERT_RUN(CHECK_PLANTED " --quiet", 1);
    ASSERT(!command_says("pass  ") && !command_says("FAIL"));
    ASSERTm(command_get_output(),
            strncmp(command_get_output(), "failed:\n  buffer_copy/31/normal: ", 33) == 0);
    ASSERT_SAYS("\n      element 15: expected ");
    ASSERT_SAYS("\n3 passed, 3 failed\n");
    ASSERT_RUN(CHECK_PLANTED " -v", 1);
    ASSERT_EQ_FMT(3, count_of("  FAIL  "), "%d");
    const char *failed = strstr(command_get_output(), "\nfailed:\n");
    ASSERTm(command_get_output(), failed && !strstr(failed, "  pass  "));
    clear();
    PASS();
}

TEST a_crashing_kernel_fails_its_own_rows_only(void) {
    SKIP_ON_MAC();
    ASSERT(plant(PLANTED("dst[i + ((ulong)1 << 43)] = src[i] + float(count);\n")));
    ASSERT_RUN(CHECK_PLANTED, 1);
    ASSERT_SAYS("3 passed, 3 failed");
    const char *words = support_is_emulated() ? "crashed: " : "accessed memory that is not mapped";
    ASSERT_SAYS(words);
    ASSERT_EQ_FMT(1, count_of(words), "%d");
    ASSERT_SAYS("2 more of its cases failed");
    clear();
    PASS();
}

TEST a_hanging_kernel_fails_its_own_rows_only(void) {
    SKIP_ON_MAC();
    ASSERT(plant(PLANTED("for (volatile uint n = 1; n != 0;) n = n | 1u;\n"
                         "dst[i] = src[i] + float(count);\n")));
    ASSERT_RUN(CHECK_PLANTED, 1);
    ASSERT_SAYS("3 passed, 3 failed");
    ASSERT_SAYS("timed out after 8 s");
    ASSERT_EQ_FMT(1, count_of("timed out"), "%d"); /* what hangs once is not tried again */
    ASSERT_SAYS("2 more of its cases were not run");
    clear();
    PASS();
}

TEST a_compile_error_is_shown_once_at_its_line(void) {
    ASSERT(plant(PLANTED("dst[i] = no_such_thing(src[i]);\n")));
    ASSERT_RUN(CHECK_PLANTED, 1);
    ASSERT_SAYS("3 passed, 3 failed");
    ASSERT_SAYS("buffer_copy.metal:7:");
    ASSERT_EQ_FMT(1, count_of("error: use of undeclared identifier 'no_such_thing'"), "%d");
    ASSERT_SAYS("2 more of its cases were not run\n");
    ASSERT_EQ_FMT(1, count_of(" FAIL "), "%d");
    clear();
    PASS();
}

TEST a_kernel_file_that_is_missing_fails_its_own_rows_only(void) {
    ASSERT(plant(""));
    ASSERT(command_run("rm \"$T/buffer_copy.metal\"") == 0);
    ASSERT_RUN(CHECK_PLANTED, 1);
    ASSERT_SAYS("3 passed, 3 failed");
    ASSERT_SAYS("buffer_copy.metal");
    clear();
    PASS();
}

SUITE(cli_suite) {
    RUN_TEST(help_is_given_for_assay_and_for_every_verb);
    RUN_TEST(no_verb_is_a_usage_error_with_the_help);
    RUN_TEST(the_version_is_printed);
    RUN_TEST(an_unknown_verb_is_answered_with_the_valid_ones);
    RUN_TEST(an_unknown_option_is_answered_with_the_valid_ones);
    RUN_TEST(a_name_too_many_is_a_usage_error);
    RUN_TEST(bad_numbers_are_usage_errors);
    RUN_TEST(a_filter_that_matches_nothing_is_answered_in_one_line);
    RUN_TEST(every_verb_refuses_a_name_that_nothing_has);
    RUN_TEST(axes_that_nothing_has_are_answered_with_the_nearest);
    RUN_TEST(cases_are_chosen_by_axes);
    RUN_TEST(what_a_kernel_does_not_take_is_a_skip_with_a_reason);
    RUN_TEST(list_has_every_kernel_of_the_registry);
    RUN_TEST(info_names_device_compiler_and_what_is_missing);
    RUN_TEST(info_prints_one_field_for_scripts);
    RUN_TEST(a_device_that_cannot_be_had_says_why);
    RUN_TEST(a_capture_is_of_one_case_and_only_metal_makes_them);
    RUN_TEST(right_kernels_have_a_line_each);
    RUN_TEST(rows_fit_the_terminal);
    RUN_TEST(the_same_seed_gives_the_same_rows_whatever_the_jobs);
    RUN_TEST(the_csv_file_is_written_whole);
    RUN_TEST(a_path_that_is_wrong_is_a_usage_error);
    RUN_TEST(rows_that_cannot_be_written_are_an_error);
    RUN_TEST(wrong_arithmetic_is_named_with_kernel_shape_and_element);
    RUN_TEST(failures_come_last_and_quiet_prints_them_alone);
    RUN_TEST(a_crashing_kernel_fails_its_own_rows_only);
    RUN_TEST(a_hanging_kernel_fails_its_own_rows_only);
    RUN_TEST(a_compile_error_is_shown_once_at_its_line);
    RUN_TEST(a_kernel_file_that_is_missing_fails_its_own_rows_only);
    RUN_TEST(a_file_that_cannot_be_written_is_refused_before_the_first_case);
}
