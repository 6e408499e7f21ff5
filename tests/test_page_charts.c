/* Tests of `assay report`: the charts of its page, and what the page looks like in a browser. */
#include <greatest.h>
#include <string.h>

#include "command.h"
#include "page_fixture.h"

SUITE(page_charts_suite);

TEST charts_of_several_devices_are_shown_once(void) {
    ASSERT(page_put_soft() && page_put_m4() && fixture_put("r/all/speed.svg", CHART));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("Assay report: 2 devices");
    ASSERT_EQ_FMT(1, page_count("<img"), "%d"); /* those of the emulated device are links */
    ASSERT_SAYS("several devices: <a href=\"all/speed.svg\">");
    fixture_clear();
    PASS();
}

/* Nothing of a file can run, fetch or reach into the page: a chart is an image, and its text is not
 * text of the page. */
TEST a_chart_is_an_image_whatever_is_in_it(void) {
    ASSERT(page_put_soft() &&
           fixture_put("r/soft/speed.svg", "<svg onload='x()'><script>alert(1)</script>"
                                           "\"></div></main><img src='http://x/y.png'></svg>"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("<img src=\"data:image/svg+xml,%3Csvg onload='x()'>%3Cscript>alert(1)%3C/script>"
                "%22>%3C/div>%3C/main>%3Cimg src='http://x/y.png'>%3C/svg>\" "
                "alt=\"Chart of speed on software Metal device\">");
    ASSERT_EQ_FMT(0, page_count("<svg onload"), "%d");
    ASSERT_EQ_FMT(2, page_count("<img"), "%d"); /* and speed-more.svg */
    ASSERT_EQ_FMT(1, page_count("</main>"), "%d");
    fixture_clear();
    PASS();
}

TEST a_broken_chart_is_named(void) {
    ASSERT(page_put_soft() &&
           fixture_put("r/soft/speed.svg", "<svg viewBox='0 0 1 1'>\n<g></main>"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("speed.svg is not a whole SVG file");
    ASSERT_EQ_FMT(1, page_count("<img"), "%d");
    ASSERT_EQ_FMT(1, page_count("</main>"), "%d");
    fixture_clear();
    PASS();
}

TEST the_label_of_a_chart_is_text(void) {
    ASSERT(page_put_soft());
    ASSERT(fixture_put("r/soft/speed.csv", "# schema: 2\n# device: d\" onload=\"x()\n"
                                           "# experiment: speed\na\n1\n"));
    ASSERT(fixture_put("r/soft/bench.csv", "a\n1\n") && fixture_put("r/soft/check.csv", "a\n1\n") &&
           fixture_put("r/soft/validate.csv", "a\n1\n"));
    ASSERT_RUN(SHOW, 0);
    ASSERT_SAYS("alt=\"Chart of speed on d&quot; onload=&quot;x()\"");
    fixture_clear();
    PASS();
}

/* In a browser ------------------------------------------------------------------------------ */

#define LOOK "python3 \"$H/tests/browser.py\" "
#define WITHOUT_BROWSER "no Chromium or no python3: sh tools/deps.sh browser installs them"
enum { NO_BROWSER = 77 };

TEST a_browser_shows_the_page_without_a_fault(void) {
    ASSERT(page_put_soft() && page_put_m4() && fixture_put("r/m4/speed.svg", CHART) &&
           fixture_put("r/m4/speed-more.svg", CHART));
    ASSERT_RUN(DRAW, 0);
    int status = command_run("cd \"$T\" && command -v python3 > /dev/null || exit 77; " LOOK
                             "r/report.html --charts 2");
    fixture_clear();
    if (status == NO_BROWSER)
        SKIPm(WITHOUT_BROWSER);
    ASSERT_EQ_FMTm(command_get_output(), 0, status, "%d");
    ASSERT_SAYS("the page is fine");
    PASS();
}

/* All faults at once: a browser takes seconds to start. */
TEST a_browser_sees_what_is_wrong_with_a_page(void) {
    ASSERT(page_put_soft());
    ASSERT_RUN(DRAW, 0);
    ASSERT_RUN("cd \"$T/r\" && sed -e 's/return a - b;/return b - a;/' "
               "-e 's/^\"use strict\";/console.error(\"planted\");/' "
               "-e 's/--page: #15181c/--page: #eeeeee/' "
               "-e 's/<img src/<img style=\"display:none\" src/' "
               "-e 's/<main id=\"top\">/&<div style=\"width:900px\">wide<\\/div>/' report.html > "
               "bad.html && "
               "! cmp -s report.html bad.html",
               0);
    int status = command_run(
        "cd \"$T/r\" && command -v python3 > /dev/null || exit 77; rm soft/check.csv; " LOOK
        "bad.html --charts 2");
    fixture_clear();
    if (status == NO_BROWSER)
        SKIPm(WITHOUT_BROWSER);
    ASSERT_EQ_FMTm(command_get_output(), 1, status, "%d");
    ASSERT_SAYS("is not ascending");
    ASSERT_SAYS("planted");
    ASSERT_SAYS("is not dark");
    ASSERT_SAYS("chart 1 does not show");
    ASSERT_SAYS("0 charts show where there must be 2");
    ASSERT_SAYS("on a phone the page is");
    ASSERT_SAYS("the link soft/check.csv leads to no file");
    PASS();
}

SUITE(page_charts_suite) {
    RUN_TEST(charts_of_several_devices_are_shown_once);
    RUN_TEST(a_chart_is_an_image_whatever_is_in_it);
    RUN_TEST(a_broken_chart_is_named);
    RUN_TEST(the_label_of_a_chart_is_text);
    RUN_TEST(a_browser_shows_the_page_without_a_fault);
    RUN_TEST(a_browser_sees_what_is_wrong_with_a_page);
}
