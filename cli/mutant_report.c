/* mutant_report: the outcome of all mutants, counted by operator and by what caught them, and the
 * list of those that are known to survive. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "mutant_report.h"
#include "output.h"

static const char *const fates[MUTANT_FATES] = {
    [MUTANT_UNCOMPILED] = "does not compile",
    [MUTANT_CHECKED] = "check",
    [MUTANT_VALIDATED] = "validate",
    [MUTANT_CRASHED] = "crash",
    [MUTANT_TIMED_OUT] = "time-out",
    [MUTANT_EQUIVALENT] = "same code",
    [MUTANT_KNOWN] = "known",
    [MUTANT_SURVIVED] = "survived",
};

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

/* Rows ---------------------------------------------------------------------------------------- */

/* A mutant and its fate. */
typedef struct {
    const char *file, *function, *mutation, *fate, *class, *by;
    int line;
    char *before, *after;
} mutant_row;

static const field fields[] = {
    FIELD(mutant_row, file, FIELD_TEXT, "file"),
    FIELD(mutant_row, line, FIELD_INTEGER, "line"),
    FIELD(mutant_row, function, FIELD_TEXT, "in"),
    FIELD(mutant_row, mutation, FIELD_TEXT, "mutation"),
    FIELD(mutant_row, before, FIELD_TEXT, "before"),
    FIELD(mutant_row, after, FIELD_TEXT, "after"),
    FIELD(mutant_row, fate, FIELD_TEXT, "fate"),
    FIELD(mutant_row, class, FIELD_TEXT, "class"),
    FIELD(mutant_row, by, FIELD_TEXT, "by"),
};
static const record rows = RECORD(fields);

static mutant_row make_row(const mutant *m, const mutant_outcome *o) {
    mutant_row r = {.file = m->file->name,
                    .function = m->edit->where,
                    .mutation = mutate_get_name(m->edit->kind),
                    .fate = fates[o->fate],
                    .class = o->class,
                    .by = o->by,
                    .line = m->edit->line};
    mutate_describe(m->file->source, m->edit, &r.before, &r.after);
    return r;
}

static void free_row(mutant_row *r) {
    free(r->before);
    free(r->after);
}

void mutant_add_csv(csv *c, const mutant_list *l, const mutant_outcome *outcomes) {
    sink s = {.record = rows, .csv = c};
    record_add_titles(&rows, c);
    csv_end_row(c);
    for (size_t i = 0; i < l->count; i++) {
        mutant_row r = make_row(&l->items[i], &outcomes[i]);
        sink_add(&s, &r, PAINT_NONE);
        free_row(&r);
    }
}

/* Is this the row of the mutant, whatever its fate was? */
static bool is_row_of(const mutant_row *r, const mutant *m) {
    mutant_row own = make_row(m, &(mutant_outcome){.fate = MUTANT_SURVIVED});
    bool is_same = strcmp(r->file, own.file) == 0 && r->line == own.line &&
                   strcmp(r->function, own.function) == 0 &&
                   strcmp(r->mutation, own.mutation) == 0 && strcmp(r->before, own.before) == 0 &&
                   strcmp(r->after, own.after) == 0;
    free_row(&own);
    return is_same;
}

bool mutant_read_csv(const csv_file *f, const mutant_list *l, mutant_outcome *outcomes,
                     size_t *count, err *e) {
    *count = csv_count_rows(f);
    bool ok = *count <= l->count;
    for (size_t i = 0; ok && i < *count; i++) {
        mutant_outcome *o = &outcomes[i];
        mutant_row r;
        ok = record_read(&rows, f, i, &r, e) && is_row_of(&r, &l->items[i]);
        while (ok && o->fate < MUTANT_FATES && strcmp(fates[o->fate], r.fate) != 0)
            o->fate++;
        ok = ok && o->fate != MUTANT_FATES;
        if (ok) {
            snprintf(o->class, sizeof o->class, "%s", r.class);
            snprintf(o->by, sizeof o->by, "%s", r.by);
        }
    }
    return ok || err_set(e, EXIT_USAGE,
                         "%.160s is not of these mutants: remove it, or give another --csv FILE",
                         csv_get_path(f));
}

/* Counts -------------------------------------------------------------------------------------- */

/* Of the mutants of a kind, or of all: how many had each fate. */
typedef struct {
    const char *kind;
    size_t all, of[MUTANT_FATES], ended; /* ended: by a crash or a time-out */
    char percent[16];                    /* of those that could be caught */
} tally;

static const field tally_fields[] = {
    FIELD(tally, kind, FIELD_TEXT, NULL, "mutation"),
    FIELD(tally, all, FIELD_COUNT, NULL, "mutants"),
    FIELD(tally, of[MUTANT_UNCOMPILED], FIELD_COUNT, NULL, "not compiled"),
    FIELD(tally, of[MUTANT_CHECKED], FIELD_COUNT, NULL, "check"),
    FIELD(tally, of[MUTANT_VALIDATED], FIELD_COUNT, NULL, "validate"),
    FIELD(tally, ended, FIELD_COUNT, NULL, "crash, time"),
    FIELD(tally, of[MUTANT_EQUIVALENT], FIELD_COUNT, NULL, "same code"),
    FIELD(tally, of[MUTANT_KNOWN], FIELD_COUNT, NULL, "known"),
    FIELD(tally, of[MUTANT_SURVIVED], FIELD_COUNT, NULL, "survived", .is_painted = true),
    FIELD(tally, percent, FIELD_CHARS, NULL, "score"),
};

static size_t count_killed(const tally *t) {
    return t->of[MUTANT_CHECKED] + t->of[MUTANT_VALIDATED] + t->ended;
}

static double get_score(const tally *t) {
    size_t killed = count_killed(t), all = killed + t->of[MUTANT_SURVIVED];
    return all ? (double)killed / (double)all : 1;
}

/* kind: MUTATE_KINDS for all. */
static tally count_fates(const mutant_list *l, const mutant_outcome *outcomes, int kind) {
    tally t = {.kind = kind < MUTATE_KINDS ? mutate_get_name((mutate_kind)kind) : "all"};
    for (size_t i = 0; i < l->count; i++)
        if (kind == MUTATE_KINDS || (int)l->items[i].edit->kind == kind) {
            t.of[outcomes[i].fate]++;
            t.all++;
        }
    t.ended = t.of[MUTANT_CRASHED] + t.of[MUTANT_TIMED_OUT];
    if (count_killed(&t) + t.of[MUTANT_SURVIVED] > 0)
        snprintf(t.percent, sizeof t.percent, "%5.1f %%", 100 * get_score(&t));
    return t;
}

static void print_classes(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    const char *before = "\nvalidation found: ";
    for (size_t i = 0; i < l->count; i++) {
        size_t same = 0, earlier = 0;
        for (size_t j = 0; outcomes[i].class[0] && j < l->count; j++)
            if (outcomes[j].fate == MUTANT_VALIDATED &&
                strcmp(outcomes[i].class, outcomes[j].class) == 0) {
                same++;
                earlier += j < i;
            }
        if (outcomes[i].fate != MUTANT_VALIDATED || same == 0 || earlier > 0)
            continue;
        fprintf(out, "%s%s %zu", before, outcomes[i].class, same);
        before = ", ";
    }
    fputs(*before == ',' ? "\n" : "", out);
}

static void print_fate(FILE *out, const mutant_list *l, const mutant_outcome *outcomes,
                       mutant_fate fate, const char *title) {
    for (size_t i = 0; i < l->count; i++) {
        if (outcomes[i].fate != fate)
            continue;
        mutant_row r = make_row(&l->items[i], &outcomes[i]);
        if (title)
            fprintf(out, "\n%s:\n", title);
        title = NULL;
        fprintf(out, "%s:%d %s, in %s\n  - %s\n  + %s\n", r.file, r.line, r.mutation, r.function,
                r.before, r.after);
        if (r.by[0])
            fprintf(out, "  = %s\n", r.by);
        free_row(&r);
    }
}

double mutant_report(FILE *out, const mutant_list *l, const mutant_outcome *outcomes) {
    sink s = {.record = RECORD(tally_fields), .out = out};
    tally all = count_fates(l, outcomes, MUTATE_KINDS);
    for (int k = 0; k <= MUTATE_KINDS; k++) {
        tally t = count_fates(l, outcomes, k);
        sink_add(&s, &t, t.of[MUTANT_SURVIVED] > 0 ? PAINT_BAD : PAINT_NONE);
    }
    sink_end(&s);
    print_classes(out, l, outcomes);
    print_fate(out, l, outcomes, MUTANT_KNOWN, "known to change nothing");
    print_fate(out, l, outcomes, MUTANT_SURVIVED, "survived");
    fprintf(out, "\n%zu mutant%s of %zu; %.1f %% of those that change something were caught",
            l->count, l->count == 1 ? "" : "s", l->all, 100 * get_score(&all));
    double score = get_score(&all);
    if (all.of[MUTANT_KNOWN] > 0) {
        all.of[MUTANT_SURVIVED] += all.of[MUTANT_KNOWN];
        fprintf(out, " (%.1f %% if the known ones counted as survivors)", 100 * get_score(&all));
    }
    fprintf(out, "\n");
    return score;
}

void mutant_print_json(FILE *out, const device_facts *f, uint64_t seed, const mutant_list *l,
                       const mutant_outcome *outcomes) {
    tally all = count_fates(l, outcomes, MUTATE_KINDS);
    json j = output_open_json(out, "mutants", f, seed);
    sink s = {.record = rows, .json = &j};
    json_open(&j, "mutants", '[');
    for (size_t i = 0; i < l->count; i++) {
        mutant_row r = make_row(&l->items[i], &outcomes[i]);
        sink_add(&s, &r, PAINT_NONE);
        free_row(&r);
    }
    json_close(&j);
    json_open(&j, "fates", '{');
    for (int i = 0; i < MUTANT_FATES; i++)
        json_add_count(&j, fates[i], all.of[i]);
    json_close(&j);
    json_add_count(&j, "tried", l->count);
    json_add_count(&j, "of", l->all);
    json_add_real(&j, "score", get_score(&all));
    json_close(&j);
}
