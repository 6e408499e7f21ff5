#include "judge_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/table.h"
#include "output.h"

enum { SOURCE_LINES = 2 }; /* before and after the one that is named */

static bool is_rejected(const judgement *j) {
    return !j->answer.is_our_failure && (!j->answer.is_right || j->time.refusal[0]);
}

/* One word: faster, same, slower, ambiguous, right (not timed), REJECT or not judged. */
static const char *get_verdict(const judgement *j) {
    return j->answer.is_our_failure ? "not judged"
           : is_rejected(j)         ? "REJECT"
           : j->time.is_timed       ? verdict_get_name(j->time.test.verdict)
                                    : "right";
}

exit_code judge_get_code(const judgement *j) {
    if (j->answer.is_our_failure)
        return j->answer.error.code;
    if (is_rejected(j))
        return EXIT_WRONG;
    if (!j->time.is_timed)
        return EXIT_OK;
    return j->time.test.verdict == VERDICT_SLOWER      ? EXIT_REGRESSION
           : j->time.test.verdict == VERDICT_AMBIGUOUS ? EXIT_INCONCLUSIVE
                                                       : EXIT_OK;
}

/* Of a candidate that was timed: how many times as fast as its base. */
static double get_speedup(const judgement *j) {
    return j->time.is_timed ? 1 / j->time.test.interval.ratio : 0;
}

static const char *get_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *get_stage(const judgement *j) {
    return judge_get_stage_name(j->answer.is_right ? JUDGE_TIME : j->answer.stage);
}

static const char *get_reason(const judgement *j) {
    return j->answer.is_our_failure ? j->answer.error.text
           : !is_rejected(j)        ? ""
           : j->answer.is_right     ? j->time.refusal
                                    : j->answer.reason;
}

/* For people --------------------------------------------------------------------------------- */

static int get_limit(FILE *out) {
    int limit = table_find_limit(out);
    return limit > 0 ? limit : 100;
}

/* The lines around the place, if it is in the candidate's own text. */
static void print_source(FILE *out, const judgement *j) {
    const judge_answer *a = &j->answer;
    char *text = strcmp(a->file, get_file(j->given.path)) == 0 && a->line > 0
                     ? os_read_plain(j->given.path, 1 << 20, NULL, NULL)
                     : NULL;
    int number = 1;
    for (char *line = text; line && number <= a->line + SOURCE_LINES; number++) {
        size_t length = strcspn(line, "\n");
        if (number >= a->line - SOURCE_LINES) {
            fprintf(out, "  %c %4d | ", number == a->line ? '>' : ' ', number);
            json_print_escaped(out, line, length < 100 ? length : 100);
            fputc('\n', out);
        }
        line = line[length] ? line + length + 1 : NULL;
    }
    free(text);
}

static void print_elements(FILE *out, const judge_answer *a) {
    if (a->shown == 0)
        return;
    fprintf(out, "  %-10s %14s %14s %14s   of %s\n", "element", "expected", "found", "tolerance",
            a->buffer);
    for (size_t i = 0; i < a->shown; i++) {
        char found[32];
        snprintf(found, sizeof found, "%.7g", a->first[i].got);
        fprintf(out, "  %-10zu %14.7g %14s %14.3g\n", a->first[i].index, a->first[i].want,
                a->first[i].unwritten ? "not written" : found, a->first[i].tolerance);
    }
}

static void print_explanation(FILE *out, const judge_heading *h, const judgement *j) {
    const judge_answer *a = &j->answer;
    if (a->case_name[0])
        fprintf(out, "case:  %s%s\n", a->case_name, a->is_held_out ? " (held out)" : "");
    print_elements(out, a);
    if (a->file[0])
        fprintf(out, "where: %s:%d%s%s\n", a->file, a->line, a->class[0] ? ", " : "", a->class);
    print_source(out, j);
    if (a->detail[0])
        fprintf(out, "%s\n", a->detail);
    fprintf(out, "again: %s\n", h->again);
}

static void describe_time(const judgement *j, char *text, size_t size) {
    const verdict_case *t = &j->time.test;
    char was[32], now[32];
    format_time(t->base_median, was, sizeof was);
    format_time(t->now_median, now, sizeof now);
    snprintf(text, size, "%.3g times as fast (%.3g to %.3g), %s instead of %s",
             1 / t->interval.ratio, 1 / t->interval.high, 1 / t->interval.low, now, was);
}

static const char *get_heading(const judgement *j) {
    exit_code code = judge_get_code(j);
    return code == EXIT_OK           ? "ACCEPT"
           : code == EXIT_REGRESSION ? "SLOWER"
           : is_rejected(j)          ? "REJECT"
                                     : "UNCLEAR";
}

void judge_print_one(FILE *out, const judge_heading *h, const judgement *j) {
    const judge_answer *a = &j->answer;
    char text[1024], time[256] = "";
    bool rejected = is_rejected(j);
    if (j->time.is_timed)
        describe_time(j, time, sizeof time);
    snprintf(text, sizeof text, "%s %s%s%s against %s: %s%s%s", get_heading(j),
             get_file(j->given.path), a->kernel[0] ? ":" : "", a->kernel, j->given.base,
             rejected ? get_stage(j) : get_verdict(j), rejected || time[0] ? ": " : "",
             rejected ? get_reason(j) : time);
    table_print_text(out, get_limit(out), 0, text);
    if (rejected) {
        print_explanation(out, h, j);
        return;
    }
    fprintf(out, "right in %zu cases, %zu of them held out; %zu validated; %zu lint warnings\n",
            a->checked, a->held_out, a->validated, a->warnings);
    if (j->time.is_timed)
        fprintf(out, "timed: %s, %zu samples each, interleaved; %s\n", j->time.name,
                j->time.samples, j->time.labels);
    fprintf(out, "again: %s\n", h->again);
}

static int by_rank(const void *a, const void *b) {
    const judgement *x = a, *y = b;
    int p = is_rejected(x) + 2 * x->answer.is_our_failure,
        q = is_rejected(y) + 2 * y->answer.is_our_failure;
    double s = get_speedup(x), t = get_speedup(y);
    return p != q ? p - q : s != t ? (s < t) - (s > t) : strcmp(x->given.path, y->given.path);
}

void judge_print_all(FILE *out, const judge_heading *h, judgement *list, size_t count) {
    table_column columns[] = {{.title = "candidate"},
                              {.title = "verdict"},
                              {.title = "speed-up", .right = true},
                              {.title = "time", .right = true},
                              {.title = "why"}};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    size_t accepted = 0, rejected = 0;
    char(*cells)[COLUMNS][600] = calloc(count + 1, sizeof *cells);
    qsort(list, count, sizeof *list, by_rank);
    for (size_t i = 0; cells && i < count; i++) {
        const judgement *j = &list[i];
        rejected += is_rejected(j);
        accepted += judge_get_code(j) == EXIT_OK;
        snprintf(cells[i][0], sizeof cells[i][0], "%s", get_file(j->given.path));
        snprintf(cells[i][1], sizeof cells[i][1], "%s", get_verdict(j));
        if (j->time.is_timed) {
            snprintf(cells[i][2], sizeof cells[i][2], "%.3g", get_speedup(j));
            format_time(j->time.test.now_median, cells[i][3], sizeof cells[i][3]);
        }
        snprintf(cells[i][4], sizeof cells[i][4], "%s%s%s", is_rejected(j) ? get_stage(j) : "",
                 is_rejected(j) ? ": " : "", get_reason(j));
        for (int k = 0; k < COLUMNS; k++)
            table_fit(&columns[k], cells[i][k]);
    }
    table t = table_new(out, columns, COLUMNS);
    if (!getenv("COLUMNS") && table_find_limit(out) == 0)
        columns[COLUMNS - 1].width = 0;
    table_print_header(&t);
    for (size_t i = 0; cells && i < count; i++) {
        const char *row[COLUMNS];
        for (int k = 0; k < COLUMNS; k++)
            row[k] = cells[i][k];
        table_print_row(&t, row, 1, is_rejected(&list[i]) ? PAINT_BAD : PAINT_GOOD);
    }
    free(cells);
    fprintf(out, "%zu accepted, %zu slower or unclear, %zu rejected; again: %s\n", accepted,
            count - accepted - rejected, rejected, h->again);
}

/* JSON --------------------------------------------------------------------------------------- */

static void print_number(FILE *out, const char *key, double value) {
    fprintf(out, ", \"%s\": ", key);
    json_print_number(out, value, false);
}

static void print_json_time(FILE *out, const judge_time *t) {
    fputs(", \"time\": {", out);
    json_print_field(out, "case", t->name);
    json_add_field(out, "verdict", verdict_get_name(t->test.verdict));
    json_add_field(out, "labels", t->labels);
    print_number(out, "base_ns", t->test.base_median);
    print_number(out, "candidate_ns", t->test.now_median);
    print_number(out, "speedup", 1 / t->test.interval.ratio);
    print_number(out, "speedup_low", 1 / t->test.interval.high);
    print_number(out, "speedup_high", 1 / t->test.interval.low);
    print_number(out, "p", t->test.p);
    fprintf(out, ", \"samples\": %zu}", t->samples);
}

static void print_json_elements(FILE *out, const judge_answer *a) {
    fputs(", \"elements\": [", out);
    for (size_t i = 0; i < a->shown; i++) {
        const bad_element *b = &a->first[i];
        fprintf(out, "%s{\"index\": %zu", i ? ", " : "", b->index);
        print_number(out, "expected", b->want);
        print_number(out, "found", b->unwritten ? NAN : b->got);
        print_number(out, "tolerance", b->tolerance);
        fprintf(out, ", \"written\": %s}", b->unwritten ? "false" : "true");
    }
    fputs("]", out);
}

static void print_json_one(FILE *out, const judgement *j) {
    const judge_answer *a = &j->answer;
    fputs("    {", out);
    json_print_field(out, "file", j->given.path);
    json_add_field(out, "kernel", a->kernel);
    json_add_field(out, "base", j->given.base);
    json_add_field(out, "verdict", get_verdict(j));
    fprintf(out, ", \"right\": %s, \"accepted\": %s, \"exit\": %d",
            is_rejected(j) || a->is_our_failure ? "false" : "true",
            judge_get_code(j) == EXIT_OK ? "true" : "false", (int)judge_get_code(j));
    fprintf(out, ", \"checked\": %zu, \"held_out\": %zu, \"validated\": %zu, \"warnings\": %zu",
            a->checked, a->held_out, a->validated, a->warnings);
    if (is_rejected(j) || a->is_our_failure) {
        json_add_field(out, "stage", get_stage(j));
        json_add_field(out, "reason", get_reason(j));
        json_add_field(out, "case", a->case_name);
        fprintf(out, ", \"is_held_out\": %s", a->is_held_out ? "true" : "false");
        json_add_field(out, "where", a->file);
        fprintf(out, ", \"line\": %d", a->line);
        json_add_field(out, "finding", a->class);
        json_add_field(out, "buffer", a->buffer);
        print_json_elements(out, a);
        json_add_field(out, "detail", a->detail);
    }
    if (j->time.is_timed)
        print_json_time(out, &j->time);
    fputs("}", out);
}

void judge_print_json(FILE *out, const judge_heading *h, const judgement *list, size_t count) {
    output_start_json(out, "judge", h->facts, h->seed);
    if (h->op)
        json_add_field(out, "op", h->op->name);
    json_add_field(out, "again", h->again);
    fputs(",\n  \"candidates\": [\n", out);
    for (size_t i = 0; i < count; i++) {
        print_json_one(out, &list[i]);
        fputs(i + 1 < count ? ",\n" : "\n", out);
    }
    fputs("  ]\n}\n", out);
}
