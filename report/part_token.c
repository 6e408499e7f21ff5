/* part_token: one token as a timeline, drawn from the rows of `assay trace`. Ops are rows, time goes to
 * the right, and a launch is a bar. Where there is no trace, the parts that op_breakdown found are
 * drawn, end to end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "page.h"

enum { LANE = 18, WIDTH = 1000 };

/* All launches of an op. */
typedef struct {
    const char *name;
    size_t launches;
    double start_ns, duration_ns, bytes; /* the start of the first */
} lane;

typedef struct {
    const csv_file *csv;
    bool is_trace; /* else op_breakdown */
    lane *lanes;
    size_t count;
    double end_ns;
} timeline;

static double get_duration(const timeline *t, size_t row) {
    return t->is_trace
               ? csv_find_double(t->csv, row, "duration_ns")
               : csv_find_double(t->csv, row, "end_ns") - csv_find_double(t->csv, row, "start_ns");
}

/* A row that is drawn, and its lane; what is missing of a token may be less than nothing. */
static bool find_lane(const timeline *t, size_t row, size_t *out) {
    const char *op = csv_find_text(t->csv, row, "op");
    for (*out = 0; *out < t->count && strcmp(t->lanes[*out].name, op) != 0; ++*out)
        ;
    return get_duration(t, row) >= 0;
}

static int compare_lanes(const void *a, const void *b) {
    double x = ((const lane *)a)->start_ns, y = ((const lane *)b)->start_ns;
    return (x > y) - (x < y);
}

static void read_lanes(timeline *t) {
    size_t rows = csv_count_rows(t->csv), at;
    t->lanes = array_new(rows + 1, sizeof *t->lanes);
    for (size_t r = 0; r < rows; r++) {
        if (!find_lane(t, r, &at))
            continue;
        lane *l = &t->lanes[at];
        if (at == t->count)
            t->lanes[t->count++] = (lane){.name = csv_find_text(t->csv, r, "op"),
                                          .start_ns = csv_find_double(t->csv, r, "start_ns")};
        double launches = t->is_trace ? 1 : csv_find_double(t->csv, r, "launches");
        double bytes = csv_find_double(t->csv, r, "bytes");
        l->launches += isnan(launches) ? 0 : (size_t)launches;
        l->duration_ns += get_duration(t, r);
        l->bytes += isnan(bytes) ? 0 : bytes;
        t->end_ns = fmax(t->end_ns, csv_find_double(t->csv, r, "start_ns") + get_duration(t, r));
    }
    qsort(t->lanes, t->count, sizeof *t->lanes, compare_lanes);
}

/* One path per op: its launches. */
static void print_lane(FILE *out, const timeline *t, size_t index) {
    const lane *l = &t->lanes[index];
    char text[32];
    size_t at;
    fprintf(out, "<path class=\"d%zu\" d=\"", index % 4);
    for (size_t r = 0; r < csv_count_rows(t->csv); r++) {
        if (!find_lane(t, r, &at) || at != index)
            continue;
        fprintf(out, "M%.1f %zuh%.1fv%dh-%.1fz",
                (double)WIDTH * csv_find_double(t->csv, r, "start_ns") / t->end_ns,
                index * LANE + 2, fmax(0.4, (double)WIDTH * get_duration(t, r) / t->end_ns),
                LANE - 4, fmax(0.4, (double)WIDTH * get_duration(t, r) / t->end_ns));
    }
    html(out, "\"><title>%.160s: %s</title></path>", l->name,
         format_time(l->duration_ns, text, sizeof text));
}

static void print_drawing(FILE *out, const timeline *t) {
    char text[32];
    fputs("<div class=\"lanes\"><ul>", out);
    for (size_t i = 0; i < t->count; i++)
        html(out, "<li>%s</li>", t->lanes[i].name);
    html(out,
         "</ul><svg viewBox=\"0 0 %d %zu\" preserveAspectRatio=\"none\" style=\"height:%zupx\" "
         "role=\"img\" aria-label=\"Launches of a token over time\">",
         WIDTH, t->count * LANE, t->count * LANE);
    for (size_t i = 0; i < t->count; i++)
        print_lane(out, t, i);
    html(out, "</svg></div>\n<p class=\"dim lanes-axis\"><span>0</span><span>%s</span></p>\n",
         format_time(t->end_ns, text, sizeof text));
}

static void print_ops(FILE *out, const timeline *t) {
    fputs("<details><summary>The ops of the token</summary>\n", out);
    html_start_table(out, "Ops of one token", "op", "#time|of all its launches", "#of the token",
                     "#launches", "#bytes|that they must move", "#GB/s", NULL);
    for (const lane *l = t->lanes; l < t->lanes + t->count; l++) {
        html(out, "<tr><td>%s</td>", l->name);
        html_print_time(out, l->duration_ns);
        html_print_number(out, 100 * l->duration_ns / t->end_ns, " %");
        html_print_number(out, (double)l->launches, "");
        html_print_number(out, l->bytes, "");
        html_print_number(out, l->bytes > 0 ? l->bytes / l->duration_ns : NAN, "");
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    fputs("</details>\n", out);
}

static void print_timeline(const page *p, FILE *out, const store_folder *f,
                           const store_file *file) {
    timeline t = {.csv = file->csv, .is_trace = file->kind == STORE_TRACE};
    const char *how = csv_get_meta(file->csv, "how"), *model = csv_get_meta(file->csv, "model");
    char text[32];
    read_lanes(&t);
    if (t.end_ns > 0) {
        const char *token = csv_get_meta(file->csv, "token_ns");
        print_drawing(out, &t);
        html(out, "<p>%s: ", model ? model : "A model");
        if (t.is_trace)
            html(out, "%zu launches. As a whole the token took %s on the GPU's clock. ",
                 csv_count_rows(file->csv),
                 format_time(token ? strtod(token, NULL) : NAN, text, sizeof text));
        else
            fputs("ops from the longest to the shortest, not in the order in which they run; "
                  "<code>assay trace --csv</code> has the single launches. ",
                  out);
        html(out, "How the times were made: %.400s. ", how ? how : "not said");
        page_print_table_files(p, out, f, file);
        fputs("</p>\n", out);
        page_print_origin(out, file);
        print_ops(out, &t);
    }
    free(t.lanes);
}

void page_print_token(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_TRACE, NULL);
    if (!file)
        file = store_find(f, STORE_EXPERIMENT, "op_breakdown");
    if (file && !store_get_failure(file))
        print_timeline(p, out, f, file);
    else
        page_print_note(out, "No token was traced: `assay trace --csv FILE` writes what is "
                             "shown here.");
}
