/* Tests of `assay report`: what its page says, and that files cannot put anything into it but text.
 * Charts, and the page in a browser, are in test_page_charts.c. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "page_fixture.h"

SUITE(page_suite);

#define MODEL_ROW(test, ns)                                                                        \
    "model/m/" test ",software Metal device,soft,m,model,m," test ",Q4_0," test ",1,,fast,,,9," ns \
    ",1,1,1,1,1,1,1," ns ",1,1,1,1,1,1,,1,,,1,1,steady,,abc,s.csv,\n"

TEST speeds_are_those_of_model_bench_where_it_ran(void) {
    ASSERT(page_put_soft() && fixture_put("r/soft/model_bench.csv",
                                          FIXTURE_SOFT BENCH_HEAD MODEL_ROW("tg32", "2000000")
                                              MODEL_ROW("tg32@d16", "1000000") MODEL_ROW(
                                                  "pp8", "500000") MODEL_ROW("pp64", "1000000")));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<span>Decode</span><b>16000</b><small>tok/s, tg32, m</small>");
    ASSERT_SAYS("<span>Prefill</span><b>64000</b><small>tok/s, pp64, m</small>");
    fixture_clear();
    PASS();
}

TEST the_page_says_what_was_measured_on_what_and_what_came_out(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN(DRAW, 0);
    ASSERT_SAYS("r/report.html\n");
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<title>Assay report: software Metal device</title>");
    ASSERT_SAYS("Measured on 2026-01-02.");
    ASSERT_SAYS("<span>Cases right</span><b>3 of 3</b>");
    ASSERT_SAYS("<span>Planted bugs found</span><b>18 of 18</b><small>and 0 in the kernels, in 12 "
                "cases</small>");
    ASSERT_SAYS("<span>Decode</span><b>-</b><small>not measured</small>");
    ASSERT_SAYS("<span>Best share of the roof</span><b>62 %</b><small>alpha 64x64</small>");
    ASSERT_SAYS("nothing about a GPU");
    ASSERT_SAYS("1 hold, 0 do not hold, 2 cannot be measured here");
    ASSERT_SAYS("What is asked?");
    ASSERT_SAYS("It is so.");
    ASSERT_SAYS("by looking");
    ASSERT_SAYS("<a href=\"soft/speed.csv\">speed.csv</a>");
    ASSERT_SAYS("<a href=\"soft/bench.samples.csv\">samples</a>");
    ASSERT(!command_says("{{"));
    ASSERT_SAYS("<th scope=\"col\" data-sort=\"text\">kernel</th>");
    ASSERT_SAYS("<th scope=\"col\" data-sort=\"number\">cases</th>");
    ASSERT_SAYS("<td class=n data-v=2.5e+06>2.5 ms<");
    ASSERT_SAYS("<td class=n>-<");    /* nothing to sort by */
    ASSERT_SAYS("<td class=n>0.75<"); /* the largest margin of alpha, sorted by its text */
    fixture_clear();
    PASS();
}

TEST the_same_files_give_the_same_page(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN(DRAW " && cp r/report.html first && sleep 1 && " DRAW " && cmp first r/report.html",
               0);
    fixture_clear();
    PASS();
}

TEST links_lead_from_wherever_the_page_is(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN(
        "cd \"$T\" && mkdir -p 'x y/z' && \"$A\" report r --claims claims.csv --out 'x y/z/p.html' "
        "&& cat 'x y/z/p.html'",
        0);
    ASSERT_SAYS("<a href=\"../../r/soft/speed.csv\">");
    ASSERT(fixture_put("r/soft/a b#1.csv", FIXTURE_SOFT "a\n1\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<a href=\"soft/a%20b%231.csv\">a b#1.csv</a>");
    fixture_clear();
    PASS();
}

TEST markup_in_files_comes_out_as_text(void) {
    ASSERT(page_put_soft());
    ASSERT(
        fixture_put("r/soft/check.csv",
                    "# schema: 2\n# device: <script>alert(1)</script>\n" CHECK_HEAD
                    "a,<script>alert(2)</script>,8,normal,1,fail,8,1,0,0,0,0,1,0,2,0,\"<img src=x "
                    "onerror=alert(3)>\"\n"));
    ASSERT(fixture_put("r/soft/bench.csv", "a\n1\n"));
    ASSERT(fixture_put("r/soft/validate.csv", "a\n1\n"));
    ASSERT(fixture_put(
        "r/soft/speed.csv",
        "# schema: 2\n# experiment: a\"><script>\n# conclusion: <b>so</b> &amp; `<i>` \n"
        "# question: \"quoted\" 'too'\na,b\n1,2\n"));
    ASSERT_RUN(DRAW, 1);
    ASSERT_RUN("cat $T/r/report.html", 0);
    ASSERT_SAYS("&lt;script&gt;alert(1)&lt;/script&gt;");
    ASSERT_SAYS("&lt;script&gt;alert(2)&lt;/script&gt;");
    ASSERT_SAYS("&lt;img src=x onerror=alert(3)&gt;");
    ASSERT_SAYS("&lt;b&gt;so&lt;/b&gt; &amp;amp; <code>&lt;i&gt;</code>");
    ASSERT_EQ_FMT(1, page_count("<script"), "%d");
    ASSERT_EQ_FMT(0, page_count("<img"), "%d");
    fixture_clear();
    PASS();
}

TEST wrong_kernels_and_findings_are_shown(void) {
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/check.csv", FIXTURE_SOFT CHECK_HEAD
                       "a,alpha,8,normal,1,fail,8,3,0,0,1,1,9,1,nan,4,3 of 8 elements are wrong\n"
                       "a,alpha,9,normal,1,pass,8,0,0,0,0,0,1,0,0.5,0,\n"));
    ASSERT(
        fixture_put("r/soft/validate.csv", FIXTURE_SOFT
                    "# passed: 1\n# failed: 1\n" VALIDATE_HEAD
                    "alpha/8,out of bounds,alpha.metal,7,0 0 0,0 0 0,0,y,8,1,4,1,store outside\n"));
    ASSERT_RUN(DRAW, 1);
    ASSERT_RUN("grep -A6 'What failed' $T/r/report.html", 0);
    ASSERT_SAYS("1 of 2 cases are <a href=\"#right\">wrong</a>");
    ASSERT_SAYS("validation has <a href=\"#right\">1 finding</a>, 1 case failed");
    ASSERT_RUN("cat $T/r/report.html", 0);
    ASSERT_SAYS("<a class=\"tile bad\" href=\"#right\"><span>Cases right</span><b>1 of 2</b>");
    ASSERT_SAYS("3 of 8 elements are wrong");
    ASSERT_SAYS("alpha.metal:7");
    ASSERT_SAYS("store outside");
    fixture_clear();
    PASS();
}

/* The emulated one folded, unless it is alone. */
TEST two_devices_stand_beside_each_other(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<details class=\"card emulated\" open><summary>software Metal device");
    ASSERT(page_put_m4());
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<h2>Apple M4</h2>");
    ASSERT_SAYS("<details class=\"card emulated\"><summary>software Metal device");
    ASSERT_SAYS("<title>Assay report: 2 devices</title>");
    ASSERT_SAYS("Measured from 2026-01-02 to 2026-01-03.");
    ASSERT_SAYS("<th scope=\"col\" data-sort=\"number\">Apple M4</th>");
    ASSERT_SAYS("<th scope=\"col\" data-sort=\"number\">software Metal device (emulated)</th>");
    ASSERT_SAYS("<td class=n>101 us<td class=n>7 us<");
    ASSERT_SAYS("101 us against 100 us, give or take 10 %");
    fixture_clear();
    PASS();
}

TEST what_is_missing_is_said(void) {
    ASSERT(fixture_put("claims.csv", page_claims) && page_put_m4());
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<span>Cases right</span><b>-</b><small>nothing was checked</small>");
    ASSERT_SAYS("<span>Planted bugs found</span><b>-</b><small>nothing was validated</small>");
    ASSERT(fixture_put("r/m4/mutants.csv", FIXTURE_M4 "file,mutation,fate\na,b,check\na,b,known\n"
                                                      "a,b,survived\na,b,crash\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS(
        "<span>Planted bugs found</span><b>2 of 3</b><small>mutants of the kernels</small>");
    ASSERT_SAYS("Nothing was validated: <code>assay validate --csv FILE</code>");
    ASSERT_SAYS("<code>assay bench</code>");
    ASSERT_SAYS("There is no chart of this experiment on Apple M4.");
    ASSERT_SAYS("Apple M4: <code>bandwidth</code>, <code>");
    ASSERT_SAYS("were not run: <code>assay experiment NAME</code>");
    fixture_clear();
    PASS();
}

/* The page is drawn without the file, says so, and the exit status tells. */
TEST a_malformed_file_is_left_out_and_named_with_its_line(void) {
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/speed.csv", FIXTURE_SOFT "# experiment: speed\na,b\n1,2\n1,2,3\n"));
    ASSERT_RUN(DRAW, 2);
    ASSERT_SAYS("soft/speed.csv:13: 3 fields where the header has 2");
    ASSERT_RUN("cat $T/r/report.html", 0);
    ASSERT_SAYS("<li>A file was left out: r/soft/speed.csv:13: 3 fields where the header has 2");
    ASSERT_SAYS("<b>3 of 3</b>");
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/bench.csv", FIXTURE_SOFT BENCH_HEAD BENCH_ROW("alpha", "soon")));
    ASSERT_RUN(DRAW, 2);
    ASSERT_SAYS("soft/bench.csv:11: 'soon' in column 'gpu_ns' is not a number");
    ASSERT(fixture_put("r/soft/check.csv", FIXTURE_SOFT CHECK_HEAD
                       "a,alpha,8,normal,1,pass,8,0,0,0,0,0,1,0,small,0,\n"));
    ASSERT_RUN(DRAW, 2);
    ASSERT_SAYS("left out: r/soft/check.csv:11: 'small' in column 'margin'");
    ASSERT_RUN("cat $T/r/report.html", 0);
    ASSERT_SAYS("It is so.");
    ASSERT_RUN("cd $T && $A claims r --claims claims.csv", 2);
    ASSERT_SAYS("2 cannot be measured here");
    ASSERT_SAYS("a file was left out");
    fixture_clear();
    PASS();
}

#define HISTORY_HEAD "case,date,commit,build,kernel_hash,n,median_ns,low_ns,high_ns,labels\n"

TEST times_of_several_runs_are_drawn_as_a_trend(void) {
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/bench.history.csv",
                       FIXTURE_SOFT HISTORY_HEAD "alpha,2026-01-01,aaa,b,h1,9,1000,990,1010,\n"
                                                 "beta,2026-01-01,aaa,b,h1,9,500,490,510,\n"
                                                 "alpha,2026-01-02,bbb,b,h1,9,1010,990,1020,\n"
                                                 "alpha,2026-01-03,<c>,b,h2,9,1200,1190,1210,\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<title>3 runs from 2026-01-01 (1 µs) to 2026-01-03 (1.2 µs)</title>");
    ASSERT_SAYS("h6v6h-6z\"/>"); /* the square: the source changed */
    ASSERT_SAYS("<td class=\"n slower\" data-v=18.81>+18.8 %<br><small>+16.7 to +22.2</small>");
    ASSERT_EQ_FMT(1, page_count("class=\"line\""), "%d"); /* beta was timed once */
    fixture_clear();
    PASS();
}

TEST half_a_last_line_of_a_killed_run_is_left_out(void) {
    ASSERT(page_put_soft() && fixture_put("r/soft/bench.csv", FIXTURE_SOFT BENCH_HEAD BENCH_ROW(
                                                                  "alpha", "1000") "op,beta,64"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<a href=\"soft/bench.csv\">bench.csv</a> (1 rows)");
    fixture_clear();
    PASS();
}

/* Of many kernels of one op and shape the fastest is shown. */
TEST a_long_file_is_shown_by_its_fastest_kernels(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN("cd $T/r/soft && sed -n 's/alpha/slow/gp' bench.csv > row && for i in $(seq 60); do "
               "sed \"s/slow/slow$i/g\" row; done >> bench.csv && " SHOW,
               0);
    ASSERT_SAYS("The fastest kernel of each op, format and shape. All: ");
    ASSERT_SAYS("<td>beta<br>");
    ASSERT(!command_says("<td>alpha<br>") && !command_says("<td>slow60<br>"));
    fixture_clear();
    PASS();
}

TEST a_page_that_cannot_be_written_is_an_error(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN("cd \"$T\" && \"$A\" report r --claims claims.csv --out no/such/p.html", 2);
    ASSERT_SAYS("there is no folder no/such");
    ASSERT_RUN("cd \"$T\" && mkdir none && \"$A\" report none --claims claims.csv --out p.html", 2);
    ASSERT_SAYS("there are no results in none");
    fixture_clear();
    PASS();
}

#define TRACE_HEAD "launch,part,op,kernel,bytes,start_ns,duration_ns,gap_ns\n"

TEST a_trace_is_drawn_as_a_timeline(void) {
    ASSERT(page_put_soft() &&
           fixture_put("r/soft/trace.csv", FIXTURE_SOFT
                       "# how: each launch timed alone\n# token_ns: 5000\n" TRACE_HEAD
                       "0,embedding,lookup,k,100,0,1000,0\n1,layer 0,<norm>,k,100,2000,1000,1000\n"
                       "2,layer 1,<norm>,k,300,3000,1000,0\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<path class=\"d0\" d=\"M0.0 2h250.0v14h-250.0z\"><title>lookup: 1 µs</title>");
    ASSERT_SAYS(
        "d=\"M500.0 20h250.0v14h-250.0zM750.0 20h250.0v14h-250.0z\"><title>&lt;norm&gt;: 2 µs");
    ASSERT_SAYS("3 launches. As a whole the token took 5 µs");
    ASSERT_SAYS("How the times were made: each launch timed alone.");
    ASSERT(fixture_put("r/soft/trace.csv", FIXTURE_SOFT TRACE_HEAD "0,e,lookup,k,100,soon,1,0\n"));
    ASSERT_RUN(DRAW, 2);
    ASSERT_SAYS("trace.csv:11: 'soon' in column 'start_ns'");
    fixture_clear();
    PASS();
}

TEST kernels_that_spill_on_an_m1_are_warned_about(void) {
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/agx.csv",
                       "# agx compiler: Mesa 26, M1 (G13)\n"
                       "kernel,file,half_registers,threads,scratch_bytes,spills,fills,refused\n"
                       "kept,a.metal,104,1024,0,0,0,\n"
                       "spilled,a.metal,255,384,136,31,32,\n"
                       "multiplied,a.metal,0,0,0,0,0,matrices\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("Warning: scratch memory (Mesa&#39;s compiler, M1)");
    ASSERT_SAYS("Of 3 kernels 2 compile, and 1 of these spill or use scratch memory. ");
    ASSERT_SAYS("Mesa 26, M1 (G13)");
    ASSERT_EQ_FMT(1, page_count(">spilled<"), "%d");
    ASSERT_EQ_FMT(0, page_count(">kept<"), "%d");
    fixture_clear();
    PASS();
}

TEST lines_of_kernels_are_shown_with_their_counts(void) {
    ASSERT(page_put_soft() &&
           fixture_put("r/soft/profile_lines.csv",
                       "case,file,line,load_sectors,store_sectors,instructions,measured_ns,text\n"
                       "k/8/normal,,0,30,10,4,2000,Memory binds.\n"
                       "k/8/normal,kernels/k.metal,7,30,0,3,,y[i] = a < b;\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<code>k/8/normal</code></h3>\n<p>Memory binds. It was measured: 2 µs.");
    ASSERT_SAYS("k.metal:7</th><td><span class=\"bar d0\" style=\"width:30.0%\"></span>75 %, "
                "instructions 75 % <code>y[i] = a &lt; b;</code>");
    fixture_clear();
    PASS();
}

/* On top and at each number. */
TEST stale_rows_and_smoke_runs_are_marked(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN("cd $T && sed -i 's/^# made of: .*/# made of: device:soft=00000000/' "
               "r/soft/check.csv && " SHOW,
               0);
    ASSERT_SAYS("Not all numbers are of the code as it is now.");
    ASSERT_SAYS("<small>agree with the reference <span class=\"badge bad\">stale</span></small>");
    ASSERT_EQ_FMT(1, page_count("<small>and 0 in the kernels, in 12 cases</small>"), "%d");
    ASSERT(page_put_soft() &&
           fixture_put("r/soft/speed.csv",
                       FIXTURE_SOFT FIXTURE_EXPERIMENT("speed", "# level: smoke\n") "a\n1\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("(emulated, smoke run: the numbers mean nothing)");
    ASSERT_SAYS("This was a smoke run");
    fixture_clear();
    PASS();
}

TEST the_page_of_the_stored_results_is_small(void) {
    ASSERT_RUN(
        "mkdir -p $T && cd $H && { $A report results --out $T/all.html || test $? -lt 3; } && "
        "wc -c < $T/all.html",
        0);
    const char *bytes = strstr(command_get_output(), "all.html\n");
    ASSERTm(command_get_output(), bytes);
    ASSERTm(command_get_output(), atol(bytes + 9) > 100000 && atol(bytes + 9) < 1000000);
    fixture_clear();
    PASS();
}

SUITE(page_suite) {
    RUN_TEST(the_page_says_what_was_measured_on_what_and_what_came_out);
    RUN_TEST(speeds_are_those_of_model_bench_where_it_ran);
    RUN_TEST(the_same_files_give_the_same_page);
    RUN_TEST(links_lead_from_wherever_the_page_is);
    RUN_TEST(markup_in_files_comes_out_as_text);
    RUN_TEST(wrong_kernels_and_findings_are_shown);
    RUN_TEST(two_devices_stand_beside_each_other);
    RUN_TEST(what_is_missing_is_said);
    RUN_TEST(times_of_several_runs_are_drawn_as_a_trend);
    RUN_TEST(a_malformed_file_is_left_out_and_named_with_its_line);
    RUN_TEST(half_a_last_line_of_a_killed_run_is_left_out);
    RUN_TEST(a_long_file_is_shown_by_its_fastest_kernels);
    RUN_TEST(a_page_that_cannot_be_written_is_an_error);
    RUN_TEST(a_trace_is_drawn_as_a_timeline);
    RUN_TEST(kernels_that_spill_on_an_m1_are_warned_about);
    RUN_TEST(lines_of_kernels_are_shown_with_their_counts);
    RUN_TEST(stale_rows_and_smoke_runs_are_marked);
    RUN_TEST(the_page_of_the_stored_results_is_small);
}
