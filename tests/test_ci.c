/* Tests of what verbs write for other programs: JUnit XML, SARIF, JSON, GitHub's
 * annotations. The kernels are those of a project with one planted bug. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

SUITE(ci_suite);

#define ON " -C \"$T\" --device soft "
/* A store past the end, and no other bug. */
#define PLANT                                                                                      \
    "rm -rf \"$T\" && \"$A\" init \"$T\" && cd \"$T\" && "                                         \
    "sed -i.bak 's/i >= n/i > n/' softcap.metal && "
#define STRUCTURE "python3 \"$H\"/tests/structure.py "

static bool has_python(void) {
    return command_run("python3 -c 'import json, xml.etree.ElementTree'") == 0;
}

TEST junit_files_count_what_passed_failed_and_was_skipped(void) {
    if (!has_python())
        SKIPm("python3 is missing");
    ASSERT_RUN(
        "rm -rf \"$T\" && \"$A\" init \"$T\" && cd \"$T\" && sed -i.bak 's/y\\[i\\] = cap/y[i] = "
        "(i == "
        "32 ? 2 : 1) * cap/' softcap.metal && echo 'needs n != 31' >> softcap.op && \"$A\" check" ON
        "--quiet --junit out.xml 'softcap/3?/normal' softcap/1/normal",
        1);
    ASSERT_RUN("cd \"$T\" && " STRUCTURE "junit out.xml && cat out.xml", 0);
    ASSERT_SAYS("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\"");
    ASSERT_SAYS("name=\"softcap/33/normal\"");
    ASSERT_SAYS("<skipped message=\"softcap needs n != 31\"/>");
    ASSERT_RUN("cd \"$T\" && echo 'x' >> softcap.metal; \"$A\" check" ON "--junit out.xml "
               "softcap/33/normal > /dev/null; " STRUCTURE "junit out.xml && cat out.xml",
               0);
    ASSERT_SAYS("errors=\"1\"");
    PASS();
}

TEST findings_are_sarif_results_at_file_and_line(void) {
    if (!has_python())
        SKIPm("python3 is missing");
    ASSERT_RUN(PLANT "\"$A\" validate" ON "--sarif out.sarif --junit out.xml softcap/33/normal", 1);
    ASSERT_RUN("cd \"$T\" && " STRUCTURE "sarif out.sarif && " STRUCTURE
               "junit out.xml && cat out.sarif",
               0);
    ASSERT_SAYS("\"ruleId\": \"store-outside\"");
    ASSERT_SAYS("\"uri\": \"softcap.metal\", \"uriBaseId\": \"%SRCROOT%\"");
    ASSERT_SAYS("\"startLine\": 14");
    ASSERT_SAYS("\"automationDetails\": {\"id\": \"assay/validate/soft/");
    ASSERT_RUN("cd \"$T\" && sed -i.bak 's/i > n/i >= n/' softcap.metal && \"$A\" validate" ON
               "--sarif out.sarif softcap/33/normal > /dev/null && " STRUCTURE
               "sarif out.sarif && cat out.sarif",
               0);
    ASSERT_SAYS("\"results\": []");
    PASS();
}

TEST lint_messages_are_sarif_results_too(void) {
    if (!has_python())
        SKIPm("python3 is missing");
    ASSERT_RUN("mkdir -p \"$T\" && cd \"$H\" && \"$A\" lint --sarif \"$T\"/out.sarif "
               "tests/kernels/lint/address_space.metal > /dev/null",
               1);
    ASSERT_RUN(STRUCTURE "sarif \"$T\"/out.sarif && cat \"$T\"/out.sarif", 0);
    ASSERT_SAYS("\"uri\": \"tests/kernels/lint/address_space.metal\"");
    ASSERT_SAYS("\"level\": \"error\"");
    PASS();
}

TEST annotations_are_printed_on_github_only(void) {
    ASSERT_RUN(PLANT "GITHUB_ACTIONS=true \"$A\" validate" ON "softcap/33/normal", 1);
    ASSERT_SAYS("::error file=softcap.metal,line=14,title=assay store-outside::");
    ASSERT_RUN("cd \"$T\" && sed -i.bak 's/= cap/= 2 * cap/' softcap.metal && GITHUB_ACTIONS=true "
               "\"$A\" check" ON "softcap/33/normal",
               1);
    ASSERT_SAYS("::error file=softcap.metal,line=7,title=assay wrong::softcap/33/normal: ");
    ASSERT_RUN("\"$A\" check" ON "softcap/33/normal", 1);
    ASSERT_FALSE(command_says("::error"));
    PASS();
}

/* A kernel that a macro names has no line of its own, but the store of a wrong value has one. What is never
 * stored has none. */
#define RENAME                                                                                     \
    "rm -rf \"$T\" && \"$A\" init \"$T\" && cd \"$T\" && sed -i.bak -e 's/void softcap(/void "     \
    "NAME(/' "
#define VALIDATE                                                                                   \
    " -e 's/^using.*/&\\n#define NAME softcap/' softcap.metal && GITHUB_ACTIONS=true \"$A\" "      \
    "validate" ON "--sarif out.sarif softcap/33/normal"
TEST a_finding_without_a_line_points_to_the_file(void) {
    if (!has_python())
        SKIPm("python3 is missing");
    ASSERT_RUN(RENAME "-e 's/= cap/= 2 * cap/'" VALIDATE, 1);
    ASSERT_SAYS("::error file=softcap.metal,line=15,title=assay wrong-value::");
    ASSERT_RUN(RENAME "-e 's/y.i. = .*/;/'" VALIDATE, 1);
    ASSERT_SAYS("::error file=softcap.metal,title=assay wrong::");
    ASSERT_RUN("cd \"$T\" && " STRUCTURE "sarif out.sarif && cat out.sarif", 0);
    ASSERT_FALSEm(command_get_output(), command_says("startLine"));
    PASS();
}

/* What `validate --csv` writes, `report` shows. */
TEST findings_in_a_csv_file_are_in_the_report(void) {
    ASSERT_RUN(PLANT "mkdir -p results/soft && \"$A\" validate" ON
                     "--csv results/soft/validate.csv softcap/33/normal",
               1);
    ASSERT_RUN("cd \"$T\" && \"$A\" report -C \"$T\" results/soft --out page.html", 1);
    ASSERT_SAYS("the top of the page says which");
    ASSERT_RUN("cat \"$T/page.html\"", 0);
    ASSERT_SAYS("store outside");
    ASSERT_SAYS("softcap.metal");
    ASSERT_RUN("cd \"$T\" && echo 'terms 3' >> softcap.op && \"$A\" results -C \"$T\" results/soft",
               0);
    ASSERT_SAYS("description softcap.op");
    PASS();
}

/* Kernels are compiled without optimisation then, and the canaries must be caught all the same. */
TEST values_can_be_traced_to_where_they_become_nan(void) {
    ASSERT_RUN("rm -rf \"$T\" && \"$A\" init \"$T\" && \"$A\" validate" ON
               "--trace-nan softcap/33/normal",
               0);
    ASSERT_SAYS("# canaries: ");
    ASSERT_RUN("cd \"$T\" && sed -i.bak 's/y\\[i\\] = .*/float z = x[i] - x[i];\\n    y[i] = z \\/ "
               "z;/' softcap.metal && \"$A\" validate" ON "--trace-nan softcap/33/normal",
               1);
    ASSERT_SAYS("not finite");
    ASSERT_SAYS("softcap.metal:15");
    PASS();
}

TEST json_is_one_object_on_stdout(void) {
    if (!has_python())
        SKIPm("python3 is missing");
#define LOADS " 2> /dev/null | python3 -c 'import json, sys; d = json.load(sys.stdin); print("
    ASSERT_RUN(PLANT "\"$A\" validate" ON "--json softcap/33/normal" LOADS
                     "d[\"fail\"], d[\"findings\"][0][\"class\"], d[\"cases\"][0][\"verdict\"])'",
               0);
    ASSERT_SAYS("1 load outside fail");
    ASSERT_RUN("\"$A\" check" ON "--json softcap/33/normal softcap/1/normal" LOADS
               "d[\"verb\"], len(d[\"cases\"]))'",
               0);
    ASSERT_SAYS("check 2");
    ASSERT_RUN("\"$A\" lint -C \"$T\" --json" LOADS "d[\"files\"], d[\"errors\"])'", 0);
    ASSERT_SAYS("1 0");
    ASSERT_RUN("\"$A\" list -C \"$T\" --json" LOADS "d[0][\"kernel\"])'", 0);
    ASSERT_SAYS("softcap");
    ASSERT_RUN(
        "\"$A\" info --device soft --json" LOADS "d[\"assay\"][0][:2], len(d[\"devices\"]))'", 0);
    ASSERT_SAYS("0. 3");
    ASSERT_RUN(
        "rm -rf \"$T\" && \"$A\" init \"$T\" && \"$A\" mutants -C \"$T\" --json --sample 2" LOADS
        "d[\"verb\"], d[\"tried\"], d[\"score\"], sum(d[\"fates\"].values()), "
        "len(d[\"mutants\"]), d[\"mutants\"][0][\"file\"])'",
        0);
    ASSERT_SAYS("mutants 2 1 2 2 softcap.metal");
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

TEST experiments_are_one_json_object_whether_they_work_or_not(void) {
    if (!has_python())
        SKIPm("python3 is missing");
#define EXPERIMENT "\"$A\" experiment --json --smoke --device soft --out \"$T\" split_dispatch"
    ASSERT_RUN(EXPERIMENT LOADS "d[\"level\"], d[\"done\"], d[\"experiments\"][0][\"experiment\"], "
                                "len(d[\"experiments\"][0][\"conclusions\"]))'",
               0);
    ASSERT_SAYS("smoke 1 split_dispatch 2");
    ASSERT_RUN(EXPERIMENT " --resume" LOADS "d[\"done\"], d[\"experiments\"])'", 0);
    ASSERT_SAYS("0 []");
    ASSERT_RUN("mkdir \"$T\"/none && ASSAY_KERNELS=\"$T\"/none " EXPERIMENT LOADS
               "d[\"done\"], d[\"experiments\"][0][\"error\"])'",
               0);
    ASSERT_SAYS("0 ");
    ASSERT_SAYS(".metal");
    ASSERT_RUN("\"$A\" experiment --json" LOADS "d[\"experiments\"][0][\"experiment\"])'", 0);
    ASSERT_SAYS("bandwidth");
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

SUITE(ci_suite) {
    RUN_TEST(junit_files_count_what_passed_failed_and_was_skipped);
    RUN_TEST(findings_are_sarif_results_at_file_and_line);
    RUN_TEST(lint_messages_are_sarif_results_too);
    RUN_TEST(annotations_are_printed_on_github_only);
    RUN_TEST(a_finding_without_a_line_points_to_the_file);
    RUN_TEST(findings_in_a_csv_file_are_in_the_report);
    RUN_TEST(values_can_be_traced_to_where_they_become_nan);
    RUN_TEST(json_is_one_object_on_stdout);
    RUN_TEST(experiments_are_one_json_object_whether_they_work_or_not);
}
