/* part_token: one token as a timeline, drawn from the rows of `assay trace`. Ops are rows, time goes to
 * the right, and a launch is a bar. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "page.h"

enum { LANE = 18, WIDTH = 1000 };

/* All launches of an op. */
typedef struct {
    const char *name;
    double duration_ns;
} lane;

typedef struct {
    const csv_file *csv;
    lane *lanes;
    size_t count;
    double end_ns;
} timeline;

static size_t find_lane(const timeline *t, size_t row) {
    const char *op = csv_find_text(t->csv, row, "op");
    size_t i = 0;
    while (i < t->count && strcmp(t->lanes[i].name, op) != 0)
        i++;
    return i;
}

static void read_lanes(timeline *t) {
    size_t rows = csv_count_rows(t->csv);
    t->lanes = array_new(rows + 1, sizeof *t->lanes);
    for (size_t r = 0; r < rows; r++) {
        const double start = csv_find_double(t->csv, r, "start_ns"),
                     duration = csv_find_double(t->csv, r, "duration_ns");
        lane *l = &t->lanes[find_lane(t, r)];
        if (l == &t->lanes[t->count])
            t->lanes[t->count++].name = csv_find_text(t->csv, r, "op");
        l->duration_ns += duration;
        t->end_ns = fmax(t->end_ns, start + duration);
    }
}

/* One path per op: its launches. */
static void print_lane(FILE *out, const timeline *t, size_t index) {
    const lane *l = &t->lanes[index];
    char text[HTML_NUMBER];
    fprintf(out, "<path class=\"d%zu\" d=\"", index % 4);
    for (size_t r = 0; r < csv_count_rows(t->csv); r++) {
        const double scale = (double)WIDTH / t->end_ns,
                     width = fmax(0.4, scale * csv_find_double(t->csv, r, "duration_ns"));
        if (find_lane(t, r) == index)
            fprintf(out, "M%.1f %zuh%.1fv%dh-%.1fz", scale * csv_find_double(t->csv, r, "start_ns"),
                    index * LANE + 2, width, LANE - 4, width);
    }
    html(out, "\"><title>%.160s: %s</title></path>", l->name,
         html_format_time(l->duration_ns, text));
}

static void print_drawing(FILE *out, const timeline *t) {
    char text[HTML_NUMBER];
    fputs("<div class=\"lanes\" tabindex=\"0\"><ul>", out);
    for (size_t i = 0; i < t->count; i++)
        html(out, "<li>%s <small>%.2g %%</small></li>", t->lanes[i].name,
             100 * t->lanes[i].duration_ns / t->end_ns);
    html(out,
         "</ul><svg viewBox=\"0 0 %d %zu\" preserveAspectRatio=\"none\" style=\"height:%zupx\" "
         "role=\"img\"><title>Launches of a token over time</title>",
         WIDTH, t->count * LANE, t->count * LANE);
    for (size_t i = 0; i < t->count; i++)
        print_lane(out, t, i);
    html(out, "</svg></div>\n<p class=\"dim lanes-axis\"><span>0</span><span>%s</span></p>\n",
         html_format_time(t->end_ns, text));
}

/* What the drawing shows. A token whose launches are timed one by one takes longer than it does otherwise. */
static void print_meaning(FILE *out, const timeline *t) {
    const char *token = csv_get_meta(t->csv, "token_ns");
    const double token_ns = token ? strtod(token, NULL) : NAN, stretch = t->end_ns / token_ns;
    char whole[HTML_NUMBER], axis[HTML_NUMBER];
    html(out, "%zu launches. As a whole the token took %s on the GPU's clock. ",
         csv_count_rows(t->csv), html_format_time(token_ns, whole));
    if (stretch > 1.05)
        html(out,
             "<strong>The axis ends at %s because timing each launch stretched the token %.3g "
             "times</strong>: read the order and the shares from it, not the durations. ",
             html_format_time(t->end_ns, axis), stretch);
}

static void print_timeline(const page *p, FILE *out, const store_folder *f,
                           const store_file *file) {
    timeline t = {.csv = file->csv};
    const char *how = csv_get_meta(file->csv, "how"), *model = csv_get_meta(file->csv, "model");
    read_lanes(&t);
    if (t.end_ns > 0) {
        html(out, "<p>%s. ", model ? model : "A model");
        print_meaning(out, &t);
        fputs("</p>\n", out);
        print_drawing(out, &t);
        html(out, "<p>How the times were made: %.400s. ", how ? how : "not said");
        page_end_source(p, out, f, file);
    }
    free(t.lanes);
}

void page_print_token(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_TRACE, NULL);
    if (file)
        print_timeline(p, out, f, file);
    else
        page_print_note(out, "No token was traced: `assay trace --csv FILE` writes what is "
                             "shown here.");
}
