/* mutant_report: the outcome of all mutants, counted by operator and by what caught them, and the
 * list of those that are known to survive. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/table.h"
#include "mutant_report.h"
#include "output.h"

static const char *get_fate(mutant_fate fate) {
    static const char *const names[MUTANT_FATES] = {
        [MUTANT_UNCOMPILED] = "does not compile",
        [MUTANT_CHECKED] = "check",
        [MUTANT_VALIDATED] = "validate",
        [MUTANT_CRASHED] = "crash",
        [MUTANT_TIMED_OUT] = "time-out",
        [MUTANT_EQUIVALENT] = "same code",
        [MUTANT_KNOWN] = "known",
        [MUTANT_SURVIVED] = "survived",
    };
    return names[fate];
}

/* The known ones ------------------------------------------------------------------------------ */

bool mutant_read_known(const char *path, mutant_known *out, err *e) {
    out->text = os_read_file(path, NULL, e);
    return out->text != NULL;
}

/* The next line, without blanks at its ends. */
static bool next_line(const char **at, const char **begin, size_t *length) {
    if (!**at)
        return false;
    *begin = *at;
    *length = strcspn(*at, "\n");
    *at += *length + (**at && (*at)[*length] == '\n');
    while (*length > 0 && isspace((unsigned char)**begin)) {
        (*begin)++;
        (*length)--;
    }
    while (*length > 0 && isspace((unsigned char)(*begin)[*length - 1]))
        (*length)--;
    return true;
}

/* Is the line this character and this text, blanks aside? */
static bool is_line(const char *line, size_t length, char first, const char *text) {
    if (length == 0 || *line != first)
        return false;
    const char *end = line + length;
    for (line++;; line++, text++) {
        while (line < end && isspace((unsigned char)*line))
            line++;
        while (isspace((unsigned char)*text))
            text++;
        if (line == end || !*text)
            return line == end && !*text;
        if (*line != *text)
            return false;
    }
}

char *mutant_find_known(const mutant_known *k, const mutant *m) {
    char place[160], *before, *after, *reason = NULL;
    snprintf(place, sizeof place, "%s %s", m->file->name, m->edit->where);
    mutate_describe(m->file->source, m->edit, &before, &after);
    const char *const wanted[] = {place, before, after};
    const char *at = k->text, *line;
    size_t length, matched = 0;
    while (at && !reason && next_line(&at, &line, &length)) {
        if (length > 0 && *line == '@')
            matched = 0;
        if (matched < 3 && is_line(line, length, "@-+"[matched], wanted[matched])) {
            matched++;
        } else if (matched == 3 && length > 1 && strchr("=!", *line)) {
            reason = array_new(length + 1, 1);
            memcpy(reason, line, length);
        } else if (length > 0 && strchr("-+", *line)) {
            matched = 4; /* another one: wait for the next @ */
        }
    }
    free(before);
    free(after);
    return reason;
}

/* The table ----------------------------------------------------------------------------------- */

enum { COLUMNS = 10 };

static bool is_killed(mutant_fate f) {
    return f == MUTANT_CHECKED || f == MUTANT_VALIDATED || f == MUTANT_CRASHED ||
           f == MUTANT_TIMED_OUT;
}

static double get_score(const size_t *counts) {
    size_t killed = 0;
    for (int f = 0; f < MUTANT_FATES; f++)
        killed += is_killed((mutant_fate)f) ? counts[f] : 0;
    size_t all = killed + counts[MUTANT_SURVIVED];
    return all ? (double)killed / (double)all : 1;
}

static void print_counts(table *t, const char *name, const size_t *counts) {
    char numbers[COLUMNS][24] = {""};
    const char *cells[COLUMNS] = {name};
    size_t all = 0;
    for (int f = 0; f < MUTANT_FATES; f++)
        all += counts[f];
    const size_t shown[] = {all,
                            counts[MUTANT_UNCOMPILED],
                            counts[MUTANT_CHECKED],
                            counts[MUTANT_VALIDATED],
                            counts[MUTANT_CRASHED] + counts[MUTANT_TIMED_OUT],
                            counts[MUTANT_EQUIVALENT],
                            counts[MUTANT_KNOWN],
                            counts[MUTANT_SURVIVED]};
    for (int i = 1; i < COLUMNS; i++)
        cells[i] = numbers[i];
    for (int i = 0; i < COLUMNS - 2; i++)
        snprintf(numbers[i + 1], sizeof numbers[0], "%zu", shown[i]);
    if (all > counts[MUTANT_UNCOMPILED] + counts[MUTANT_EQUIVALENT] + counts[MUTANT_KNOWN])
        snprintf(numbers[COLUMNS - 1], sizeof numbers[0], "%.1f %%", 100 * get_score(counts));
    table_print_row(t, cells, COLUMNS - 2, counts[MUTANT_SURVIVED] > 0 ? PAINT_BAD : PAINT_NONE);
}

static void print_table(FILE *out, size_t counts[MUTATE_KINDS][MUTANT_FATES], const size_t *total) {
    table_column columns[COLUMNS] = {
        {.title = "mutation"},
        {.title = "mutants", .right = true},
        {.title = "not compiled", .right = true},
        {.title = "check", .right = true},
        {.title = "validate", .right = true},
        {.title = "crash, time", .right = true},
        {.title = "same code", .right = true},
        {.title = "known", .right = true},
        {.title = "survived", .right = true},
        {.title = "score", .right = true, .width = 7},
    };
    for (int i = 0; i < COLUMNS; i++)
        table_fit(&columns[i], columns[i].title);
    for (int k = 0; k < MUTATE_KINDS; k++)
        table_fit(&columns[0], mutate_get_name((mutate_kind)k));
    table t = table_new(out, columns, COLUMNS);
    table_print_header(&t);
    for (int k = 0; k < MUTATE_KINDS; k++)
        print_counts(&t, mutate_get_name((mutate_kind)k), counts[k]);
    print_counts(&t, "all", total);
}

static void print_classes(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    bool is_first = true;
    for (size_t i = 0; i < l->count; i++) {
        size_t same = 0, before = 0;
        for (size_t j = 0; outcomes[i].class[0] && j < l->count; j++)
            if (outcomes[j].fate == MUTANT_VALIDATED &&
                strcmp(outcomes[i].class, outcomes[j].class) == 0) {
                same++;
                before += j < i;
            }
        if (outcomes[i].fate != MUTANT_VALIDATED || same == 0 || before > 0)
            continue;
        fprintf(out, "%s%s %zu", is_first ? "\nvalidation found: " : ", ", outcomes[i].class, same);
        is_first = false;
    }
    fprintf(out, "%s", is_first ? "" : "\n");
}

static void print_fate(FILE *out, const mutant_list *l, const mutant_outcome *outcomes,
                       mutant_fate fate, const char *title) {
    bool is_first = true;
    for (size_t i = 0; i < l->count; i++) {
        if (outcomes[i].fate != fate)
            continue;
        const mutant *m = &l->items[i];
        char *before, *after;
        mutate_describe(m->file->source, m->edit, &before, &after);
        if (is_first)
            fprintf(out, "\n%s:\n", title);
        is_first = false;
        fprintf(out, "%s:%d %s, in %s\n  - %s\n  + %s\n", m->file->name, m->edit->line,
                mutate_get_name(m->edit->kind), m->edit->where, before, after);
        if (outcomes[i].by[0])
            fprintf(out, "  = %s\n", outcomes[i].by);
        free(before);
        free(after);
    }
}

double mutant_report(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    size_t counts[MUTATE_KINDS][MUTANT_FATES] = {{0}}, total[MUTANT_FATES] = {0};
    for (size_t i = 0; i < l->count; i++) {
        counts[l->items[i].edit->kind][outcomes[i].fate]++;
        total[outcomes[i].fate]++;
    }
    print_table(out, counts, total);
    print_classes(out, l, outcomes);
    print_fate(out, l, outcomes, MUTANT_KNOWN, "known to change nothing");
    print_fate(out, l, outcomes, MUTANT_SURVIVED, "survived");
    double score = get_score(total);
    fprintf(out, "\n%zu mutant%s of %zu; %.1f %% of those that change something were caught",
            l->count, l->count == 1 ? "" : "s", l->all, 100 * score);
    if (total[MUTANT_KNOWN] > 0) {
        total[MUTANT_SURVIVED] += total[MUTANT_KNOWN];
        fprintf(out, " (%.1f %% if the known ones counted as survivors)", 100 * get_score(total));
    }
    fprintf(out, "\n");
    return score;
}

/* Rows ---------------------------------------------------------------------------------------- */

enum { COLUMN_LINE = 1, COLUMN_FATE = 6, COLUMN_CLASS, COLUMN_BY, CSV_COLUMNS };
static const char *const csv_names[CSV_COLUMNS] = {"file",  "line", "in",    "mutation", "before",
                                                   "after", "fate", "class", "by"};

/* A row of the file and of the JSON: its cells, and the texts that they point to. */
typedef struct {
    const char *cells[CSV_COLUMNS];
    char line[16], *before, *after;
} mutant_row;

static void make_row(const mutant *m, const mutant_outcome *o, mutant_row *r) {
    snprintf(r->line, sizeof r->line, "%d", m->edit->line);
    mutate_describe(m->file->source, m->edit, &r->before, &r->after);
    const char *const cells[CSV_COLUMNS] = {
        m->file->name, r->line,  m->edit->where,    mutate_get_name(m->edit->kind),
        r->before,     r->after, get_fate(o->fate), o->class,
        o->by};
    memcpy(r->cells, cells, sizeof cells);
}

static void free_row(mutant_row *r) {
    free(r->before);
    free(r->after);
}

void mutant_add_csv(csv *c, const mutant_list *l, const mutant_outcome *outcomes) {
    csv_add_row(c, csv_names, CSV_COLUMNS);
    for (size_t i = 0; i < l->count; i++) {
        mutant_row r;
        make_row(&l->items[i], &outcomes[i], &r);
        csv_add_row(c, r.cells, CSV_COLUMNS);
        free_row(&r);
    }
}

static void print_json_row(FILE *out, const mutant *m, const mutant_outcome *o) {
    mutant_row r;
    make_row(m, o, &r);
    for (size_t i = 0; i < CSV_COLUMNS; i++) {
        fputs(i ? ", " : "", out);
        if (i == COLUMN_LINE)
            fprintf(out, "\"%s\": %s", csv_names[i], r.line);
        else
            json_print_field(out, csv_names[i], r.cells[i]);
    }
    free_row(&r);
}

void mutant_print_json(FILE *out, const device_facts *f, uint64_t seed, const mutant_list *l,
                       const mutant_outcome *outcomes) {
    size_t total[MUTANT_FATES] = {0};
    output_start_json(out, "mutants", f, seed);
    fputs(",\n  \"mutants\": [", out);
    for (size_t i = 0; i < l->count; i++) {
        total[outcomes[i].fate]++;
        fputs(i ? ",\n    {" : "\n    {", out);
        print_json_row(out, &l->items[i], &outcomes[i]);
        fputc('}', out);
    }
    fprintf(out, "%s],\n  \"fates\": {", l->count ? "\n  " : "");
    for (int i = 0; i < MUTANT_FATES; i++)
        fprintf(out, "%s\"%s\": %zu", i ? ", " : "", get_fate((mutant_fate)i), total[i]);
    fprintf(out, "},\n  \"tried\": %zu,\n  \"of\": %zu,\n  \"score\": ", l->count, l->all);
    json_print_number(out, get_score(total), false);
    fputs("\n}\n", out);
}

static bool is_row_of(const csv_file *f, size_t row, const mutant *m, const mutant_outcome *o) {
    mutant_row r;
    make_row(m, o, &r);
    bool is_same = true;
    for (size_t i = 0; i < COLUMN_FATE; i++)
        is_same = is_same && strcmp(csv_get_text(f, row, i), r.cells[i]) == 0;
    free_row(&r);
    return is_same;
}

static mutant_fate find_fate(const char *name) {
    int fate = 0;
    while (fate < MUTANT_FATES && strcmp(get_fate((mutant_fate)fate), name) != 0)
        fate++;
    return (mutant_fate)fate;
}

bool mutant_read_csv(const csv_file *f, const mutant_list *l, mutant_outcome *outcomes,
                     size_t *count, err *e) {
    *count = csv_count_rows(f);
    bool ok = csv_count_columns(f) == CSV_COLUMNS && *count <= l->count;
    for (size_t i = 0; ok && i < *count; i++) {
        mutant_outcome *o = &outcomes[i];
        o->fate = find_fate(csv_get_text(f, i, COLUMN_FATE));
        snprintf(o->class, sizeof o->class, "%s", csv_get_text(f, i, COLUMN_CLASS));
        snprintf(o->by, sizeof o->by, "%s", csv_get_text(f, i, COLUMN_BY));
        ok = o->fate != MUTANT_FATES && is_row_of(f, i, &l->items[i], o);
    }
    return ok || err_set(e, EXIT_USAGE,
                         "%.160s is not of these mutants: remove it, or give another --csv FILE",
                         csv_get_path(f));
}
