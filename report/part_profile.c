/* part_profile: lines of kernels with what they do to memory, from the counts that `assay profile --csv` wrote
 * to profile_lines.csv. A bar is the line's part of the sectors of its case. */
#include <math.h>
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
    html_print_row(out, "<h3><code>{case}</code></h3>\n<p>{text}", c, row);
    if (!isnan(measured))
        html(out, " It was measured: %s.", format_time(measured, text, sizeof text));
    fputs("</p>\n<table class=\"bars\"><caption>Sectors, by line</caption><tbody>\n", out);
}

static void print_line(FILE *out, const csv_file *c, size_t row, size_t sum) {
    const double all = get_sectors(c, sum), share = all > 0 ? 100 * get_sectors(c, row) / all : 0;
    const double instructions = page_get_number(c, sum, "instructions");
    const double work =
        instructions > 0 ? 100 * page_get_number(c, row, "instructions") / instructions : 0;
    html(out,
         "<tr><th scope=\"row\">%s:%s</th><td><span class=\"bar d0\" style=\"width:%.1f%%\"></span>"
         "%.3g %%, instructions %.3g %% <code>%s</code></td></tr>\n",
         path_get_name(page_get_cell(c, row, "file")), page_get_cell(c, row, "line"), share * 0.4,
         share, work, page_get_cell(c, row, "text"));
}

/* Rows are a case with line 0, then its lines, those with most sectors first. */
static void print_cases(FILE *out, const csv_file *c) {
    size_t sum = 0, shown = 0;
    bool is_open = false;
    for (size_t row = 0; row < csv_count_rows(c); row++) {
        if (strcmp(page_get_cell(c, row, "line"), "0") == 0) {
            fputs(is_open ? "</tbody></table>\n" : "", out);
            print_sum(out, c, row);
            is_open = true;
            sum = row;
            shown = 0;
        } else if (is_open && shown++ < MOST_LINES) {
            print_line(out, c, row, sum);
        }
    }
    fputs(is_open ? "</tbody></table>\n" : "", out);
}

void page_print_profile(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_OTHER, "profile_lines");
    if (file) {
        print_cases(out, file->csv);
        page_print_table_files(p, out, f, file);
    } else
        page_print_note(out,
                        "Nothing was counted: `assay profile CASE --csv profile_lines.csv`, in "
                        "the folder of results, writes what is shown here.");
}
