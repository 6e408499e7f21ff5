#include "tune_print.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json.h"

static const char *const titles[TUNE_COLUMNS] = {"op",   "weights", "shape", "kernel",  "time",
                                                 "rule", "time",    "gain",  "interval"};

static void get_weights(const choice *c, char *text, size_t size) {
    choice_get_format(c->format, text, size);
    if (c->accumulates)
        snprintf(text + strlen(text), size - strlen(text), " +=");
}

void tune_table_start(tune_table *t, FILE *out, const choice_list *choices) {
    t->rows = (table){.out = out,
                      .columns = t->columns,
                      .count = TUNE_COLUMNS,
                      .colour = table_wants_colour(out)};
    for (int i = 0; i < TUNE_COLUMNS; i++)
        t->columns[i] =
            (table_column){.title = titles[i], .right = i == 4 || i >= 6, .width = i < 6 ? 8 : 9};
    for (size_t i = 0; i < choices->count; i++) {
        const choice *c = &choices->items[i];
        const kernel *ways[CHOICE_WAYS];
        char text[CHOICE_TEXT];
        size_t count = choice_list_ways(c, ways);
        table_fit(&t->columns[0], c->op->name);
        get_weights(c, text, sizeof text);
        table_fit(&t->columns[1], text);
        shape_get_text(&c->shape, text, sizeof text);
        table_fit(&t->columns[2], text);
        for (size_t k = 0; k < count; k++) {
            table_fit(&t->columns[3], ways[k]->name);
            table_fit(&t->columns[5], ways[k]->name);
        }
    }
    table_fit(&t->columns[8], "1.00 to 1.00");
    table_print_header(&t->rows);
}

static void print_ways(FILE *out, const tune_outcome *o, bool explain) {
    static const char *const words[] = {"", "far slower", "WRONG, not chosen", "cannot"};
    for (size_t i = 0; i < o->count; i++) {
        const tune_way *w = &o->ways[i];
        char time[32];
        if (!explain && w->state != WAY_WRONG)
            continue;
        fprintf(out, "    %-44s %10s", w->name, format_time(w->ns, time, sizeof time));
        if (w->state == WAY_TIMED)
            fprintf(out, "  %.3f (%.3f to %.3f), iqr %.1f %%\n", w->gain, w->low, w->high,
                    100 * w->iqr / w->ns);
        else
            fprintf(out, "  %s%s%s\n", words[w->state], *w->why ? ": " : "", w->why);
    }
}

void tune_table_add(const tune_table *t, const choice *c, const tune_outcome *o, bool explain) {
    char weights[32], sizes[64], time[32] = "", rule_time[32] = "", gain[32] = "",
                                 interval[48] = "";
    const tuned_row *r = &o->row;
    bool is_rule = o->made && o->chosen == 0;
    get_weights(c, weights, sizeof weights);
    shape_get_text(&c->shape, sizes, sizeof sizes);
    if (o->made) {
        format_time(r->ns, time, sizeof time);
        format_time(r->rule_ns, rule_time, sizeof rule_time);
        snprintf(gain, sizeof gain, "%.2f", r->gain);
        if (!is_rule)
            snprintf(interval, sizeof interval, "%.2f to %.2f", r->low, r->high);
    }
    const char *row[] = {c->op->name, weights,
                         sizes,       o->made ? o->ways[o->chosen].name : "-",
                         time,        o->made ? r->rule : "-",
                         rule_time,   gain,
                         interval};
    table_print_row(&t->rows, row, 7, is_rule ? PAINT_DIM : PAINT_GOOD);
    if (!o->made)
        fprintf(t->rows.out, "    %s\n", o->why);
    print_ways(t->rows.out, o, explain);
}

/* JSON -------------------------------------------------------------------------------------- */

static void print_way(FILE *out, const tune_way *w) {
    static const char *const states[] = {"timed", "far", "wrong", "cannot"};
    fputs("{", out);
    json_print_field(out, "kernel", w->name);
    json_add_field(out, "state", states[w->state]);
    fputs(", \"gpu_ns\": ", out);
    json_print_number(out, w->ns, false);
    fputs(", \"iqr_ns\": ", out);
    json_print_number(out, w->iqr, false);
    fputs(", \"gain\": ", out);
    json_print_number(out, w->gain, false);
    json_add_field(out, "message", w->why);
    fputs("}", out);
}

void tune_print_json(FILE *out, const tune_outcome *o, bool first) {
    fputs(first ? "\n    {" : ",\n    {", out);
    for (int i = 0; i < TUNED_COLUMNS && o->made; i++) {
        char text[160];
        bool is_number;
        tuned_get_column(&o->row, i, text, sizeof text, &is_number);
        if (is_number)
            fprintf(out, "\"%s\": %s, ", tuned_get_title(i), *text ? text : "null");
        else {
            json_print_field(out, tuned_get_title(i), text);
            fputs(", ", out);
        }
    }
    if (!o->made) {
        char text[CHOICE_TEXT];
        choice_get_text(&o->row.choice, text, sizeof text);
        json_print_field(out, "choice", text);
        fputs(", ", out);
    }
    json_print_field(out, "message", o->why);
    fputs(",\n     \"ways\": [", out);
    for (size_t i = 0; i < o->count; i++) {
        fputs(i ? ",\n       " : "\n       ", out);
        print_way(out, &o->ways[i]);
    }
    fputs("]}", out);
}

void tune_print_list(FILE *out, const choice_list *choices) {
    for (size_t i = 0; i < choices->count; i++) {
        const kernel *ways[CHOICE_WAYS];
        char text[CHOICE_TEXT];
        size_t count = choice_list_ways(&choices->items[i], ways);
        choice_get_text(&choices->items[i], text, sizeof text);
        fprintf(out, "%-44s", text);
        for (size_t k = 0; k < count; k++)
            fprintf(out, "%s%s", k ? ", " : " ", ways[k]->name);
        fputc('\n', out);
    }
}
