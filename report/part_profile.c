/* part_profile: lines of kernels with what they do to memory, from the counts that `assay profile --csv` wrote
 * to profile_lines.csv. A bar is the line's part of the sectors of its case. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/path.h"
#include "page_parts.h"

enum { MOST_LINES = 8 };

static double get_sectors(const csv_file *c, size_t row) {
    return page_get_number(c, row, "load_sectors") + page_get_number(c, row, "store_sectors");
}

static void print_sum(FILE *out, const csv_file *c, size_t row) {
    const double measured = page_get_number(c, row, "measured_ns");
    char text[32];
    fputs("<h3><code>", out);
    html_print(out, page_get_cell(c, row, "case"));
    fputs("</code></h3>\n<p>", out);
    html_print(out, page_get_cell(c, row, "text"));
    if (!isnan(measured))
        html_printf(out, " It was measured: %s.", format_time(measured, text, sizeof text));
    fputs("</p>\n", out);
}

static void print_line(FILE *out, const csv_file *c, size_t row, size_t sum) {
    const double all = get_sectors(c, sum), share = all > 0 ? 100 * get_sectors(c, row) / all : 0;
    const double instructions = page_get_number(c, sum, "instructions");
    const double work =
        instructions > 0 ? 100 * page_get_number(c, row, "instructions") / instructions : 0;
    fputs("<tr><th scope=\"row\">", out);
    html_printf(out, "%s:%s", path_get_name(page_get_cell(c, row, "file")),
                page_get_cell(c, row, "line"));
    fprintf(out, "</th><td><span class=\"bar d0\" style=\"width:%.1f%%\"></span>", share * 0.4);
    fprintf(out, "%.3g %%, instructions %.3g %% <code>", share, work);
    html_print(out, page_get_cell(c, row, "text"));
    fputs("</code></td></tr>\n", out);
}

/* Rows are a case with line 0, then its lines, those with most sectors first. */
static void print_cases(FILE *out, const csv_file *c) {
    size_t sum = 0, shown = 0;
    bool is_open = false;
    for (size_t row = 0; row < csv_count_rows(c); row++) {
        if (strcmp(page_get_cell(c, row, "line"), "0") == 0) {
            fputs(is_open ? "</tbody></table>\n" : "", out);
            print_sum(out, c, row);
            fputs("<table class=\"bars\"><caption>Sectors, by line</caption><tbody>\n", out);
            is_open = true;
            sum = row;
            shown = 0;
        } else if (is_open && shown++ < MOST_LINES) {
            print_line(out, c, row, sum);
        }
    }
    fputs(is_open ? "</tbody></table>\n" : "", out);
}

bool page_print_profile(page *p, FILE *out, err *e) {
    (void)e;
    for (size_t i = 0; i < p->store->count; i++) {
        const store_folder *f = &p->store->folders[i];
        const store_file *file = store_find(f, STORE_OTHER, "profile_lines");
        page_start_device(p, out, f);
        if (file) {
            print_cases(out, file->csv);
            page_print_table_files(p, out, f, file);
        } else {
            page_print_note(out,
                            "Nothing was counted: `assay profile CASE --csv profile_lines.csv`, in "
                            "the folder of results, writes what is shown here.");
        }
        page_end_device(p, out, f);
    }
    return true;
}
