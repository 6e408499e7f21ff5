#include "plot.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "freshness.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "results.h"

enum { PRELUDE_BYTES = 32768 };

bool plot_is_available(void) {
    char path[PATH_MAX];
    return os_find_program("gnuplot", path, sizeof path);
}

/* The script for a name, or else the one for rows of any kind: true if it has its own. */
static bool find_script(const char *home, const char *name, char *script, size_t size) {
    snprintf(script, size, "%s/plots/%s.gp", home, name);
    if (access(script, R_OK) == 0)
        return true;
    snprintf(script, size, "%s/plots/common/rows.gp", home);
    return false;
}

static double find_largest(const csv_file *f, const char *title) {
    double most = NAN;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        most = fmax(most, csv_find_double(f, r, title));
    return most;
}

/* A chart without a single time cannot be drawn. */
static bool has_times(const csv_file *f) {
    return find_largest(f, "n") > 0;
}

bool plot_has_chart(const char *name, const char *path) {
    char home[PATH_MAX - 64], script[PATH_MAX + 64];
    if (!os_find_home(home, sizeof home, NULL))
        return false;
    if (find_script(home, name, script, sizeof script))
        return true;
    csv_file *f = csv_read(path, NULL);
    bool is_ours = f && ((results_has_rows(f) && has_times(f)) ||
                         (csv_get_meta(f, "schema") && /* to be refused */
                          !results_check_schema(f, NULL)));
    csv_file_free(f);
    return is_ours;
}

/* What gnuplot reads before the script. */
typedef struct {
    char text[PRELUDE_BYTES];
    size_t used;
    char title[600]; /* the finding, as one line */
} prelude;

static void add(prelude *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(prelude *p, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (p->used < sizeof p->text)
        p->used += (size_t)vsnprintf(p->text + p->used, sizeof p->text - p->used, format, values);
    va_end(values);
}

/* A single-quoted string of gnuplot: in it only the quote is special, and is doubled. Double quotes
 * would end the word of a list. */
static void add_quoted(prelude *p, const char *text) {
    for (; *text; text++)
        if (*text == '\'')
            add(p, "''");
        else
            add(p, "%c", *text == '"' || iscntrl((unsigned char)*text) ? ' ' : *text);
}

/* name='"first" "second"' */
static void add_list(prelude *p, const char *name, const char *const *items, size_t count) {
    add(p, "%s='", name);
    for (size_t i = 0; i < count; i++) {
        add(p, "%s\"", i ? " " : "");
        add_quoted(p, items[i]);
        add(p, "\"");
    }
    add(p, "';");
}

/* The files of samples beside those of rows; "" where there is none. */
static void add_samples(prelude *p, const char *const *tables, size_t count) {
    char paths[PLOT_FILES][PATH_MAX];
    const char *items[PLOT_FILES];
    for (size_t i = 0; i < count; i++) {
        bool is_there = results_find_samples_path(tables[i], paths[i], PATH_MAX, NULL) &&
                        access(paths[i], R_OK) == 0;
        items[i] = is_there ? paths[i] : "";
    }
    add_list(p, "samples", items, count);
}

/* "# metric: NAME = VALUE", or "# spread: NAME = LOW to HIGH", among the lines of the head. */
typedef struct {
    char name[64];
    double value, high;
} metric;

static bool read_metric(const csv_file *f, size_t *i, const char *kind, metric *out) {
    const char *key, *value;
    out->high = NAN;
    while (csv_list_meta(f, (*i)++, &key, &value))
        if (strcmp(key, kind) == 0 &&
            sscanf(value, "%63s = %lf to %lf", out->name, &out->value, &out->high) >= 2)
            return true;
    return false;
}

static bool find_metric(const csv_file *f, const char *kind, const char *name, metric *out) {
    for (size_t i = 0; read_metric(f, &i, kind, out);)
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

static void add_metrics(prelude *p, const csv_file *f) {
    metric m;
    for (size_t i = 0; read_metric(f, &i, "metric", &m);) {
        for (char *c = m.name; *c; c++)
            if (!isalnum((unsigned char)*c))
                *c = '_';
        if (isfinite(m.value))
            add(p, "m_%s=%.9g;", m.name, m.value);
    }
}

/* A list that is longer than a line of a chart ends with what fits. */
static void shorten(char *text) {
    enum { LINE = 110 };
    if (strlen(text) <= LINE)
        return;
    char *end = text + LINE - 5;
    while (end > text && *end != ',')
        end--;
    strcpy(end > text ? end : text + LINE - 5, ", ...)");
}

/* "software Metal device, 2 threads, 2025-01-31, EMULATED": one line per file; if there are
 * several, with how the device is drawn. What is not the work of the code as it is now has a line
 * of its own. */
static void add_footer(prelude *p, freshness *fresh, csv_file *const *files, size_t count) {
    file_origin made;
    char warning[256];
    size_t lines = count;
    static const char *const dashes[PLOT_FILES] = {
        "solid, large points: ", "dashed, small: ", "dotted, small: ", "dash-dotted, small: ",
        "dash-dot-dotted, small: "};
    add(p, "footer='");
    for (size_t i = 0; i < count; i++) {
        const char *facts[] = {csv_find_meta(files[i], "date"), csv_find_meta(files[i], "model"),
                               csv_find_meta(files[i], "level")};
        add(p, "%s%s", i ? "'.\"\\n\".'" : "", count > 1 && dashes[i] ? dashes[i] : "");
        add_quoted(p, csv_find_meta(files[i], "device"));
        for (int k = 0; k < 3; k++) {
            char text[128];
            snprintf(text, sizeof text, k == 0 ? "%.10s" : "%.120s", facts[k]);
            if (!text[0] || strcmp(text, "full") == 0)
                continue;
            add(p, k == 2 ? ", a " : ", ");
            add_quoted(p, text);
            add(p, k == 2 ? " run" : "");
        }
        add(p, "%s", strcmp(csv_find_meta(files[i], "api"), "soft") == 0 ? ", EMULATED" : "");
        freshness_judge_file(fresh, files[i], &made);
        file_origin_get_warning(&made, warning, sizeof warning);
        shorten(warning);
        add(p, "%s", warning[0] ? "'.\"\\n\".'" : "");
        add_quoted(p, warning);
        lines += warning[0] != 0;
    }
    add(p, "';footer_lines=%zu;", lines);
}

/* The finding of the first file, in lines that fit a chart's width. */
static void add_finding(prelude *p, const char *name, const char *sentence, const csv_file *f,
                        size_t count) {
    enum { LINE = 88, MOST = 5 };
    char text[400], *whole = p->title;
    plot_find(name, sentence, f, text, sizeof text);
    snprintf(whole, sizeof p->title, "%s%s%s", count > 1 ? csv_find_meta(f, "device") : "",
             count > 1 ? ": " : "", text);
    /* Lines of about the same length, instead of a last one of a single word. */
    size_t lines = 0, count_of = (strlen(whole) + LINE - 1) / LINE;
    size_t most = count_of > 1 ? strlen(whole) / count_of + 12 : LINE;
    most = most > LINE ? LINE : most;
    add(p, "finding='");
    for (const char *at = whole; *at && lines < MOST; lines++) {
        size_t length = strlen(at);
        if (length > most)
            for (length = most; length > 0 && (at[length] != ' ' || at[length + 1] == '%');)
                length--;
        length = length > 0 ? length : most; /* a word that is longer than a line */
        char line[LINE + 1];
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        add(p, "%s", lines ? "'.\"\\n\".'" : "");
        add_quoted(p, line);
        at += length + strspn(at + length, " ");
    }
    add(p, "';finding_lines=%zu;", lines);
}

/* gnuplot's words for an empty chart help no one. */
static bool check_rows(const csv_file *f, err *e) {
    if (csv_count_rows(f) == 0)
        return err_set(e, EXIT_USAGE, "%.160s has no rows, so there is nothing to draw",
                       csv_get_path(f));
    return !results_has_rows(f) || has_times(f) ||
           err_set(e, EXIT_USAGE, "no row of %.160s has a time, so there is nothing to draw",
                   csv_get_path(f));
}

static bool make_prelude(prelude *p, const char *name, const char *sentence,
                         const char *const *tables, size_t count, const char *home, err *e) {
    csv_file *files[PLOT_FILES] = {NULL};
    const char *devices[PLOT_FILES];
    freshness *fresh = freshness_new(e);
    bool ok = fresh != NULL;
    p->used = 0;
    for (size_t i = 0; ok && i < count; i++) {
        files[i] = csv_read(tables[i], e);
        ok = files[i] && results_check_schema(files[i], e) && check_rows(files[i], e);
        devices[i] = ok ? csv_find_meta(files[i], "device") : "";
    }
    if (ok) {
        add_list(p, "csv", tables, count);
        add_list(p, "titles", devices, count);
        add_samples(p, tables, count);
        add(p, "files=%zu;", count);
        add_finding(p, name, sentence, files[0], count);
        add_footer(p, fresh, files, count);
        add(p, "common='");
        add_quoted(p, home);
        add(p, "/plots/common/';");
        add_metrics(p, files[0]);
    }
    for (size_t i = 0; i < count; i++)
        csv_file_free(files[i]);
    freshness_free(fresh);
    return ok &&
           (p->used < sizeof p->text ||
            err_set(e, EXIT_CANNOT, "%.160s has more metrics than a chart can take", tables[0]));
}

/* gnuplot ends with status 0 on a full disk: a chart is whole if its last bytes are there. */
static bool is_whole(const char *path) {
    enum { END = 8 }; /* "</svg>" and two newlines, or "IEND" and its sum */
    size_t bytes;
    char *text = os_read_file(path, &bytes, NULL);
    const char *end = text && bytes >= END ? text + bytes - END : "";
    bool is = strncmp(end, "</svg>", 6) == 0 || strncmp(end, "IEND\xae\x42\x60\x82", END) == 0;
    free(text);
    return is;
}

/* What gnuplot cannot say: bold, a choice of fonts, and for screen readers that it is an image, and its title. */
static bool finish_svg(const char *path, const char *title, err *e) {
    static const char *const parts[][2] = {
        {"Gnuplot</title>", "</title>"},
        {" ><title>", ">"}, /* of a series: what the script says, which no one needs to hear */
        {"<svg", "<svg role=\"img\""},
        {"\"Helvetica:Bold\"", "\"Helvetica, Arial, sans-serif\" font-weight=\"bold\""},
        {"\"Helvetica\"", "\"Helvetica, Arial, sans-serif\""}};
    enum { PARTS = sizeof parts / sizeof *parts };
    char *text = os_read_file(path, NULL, e);
    if (!text)
        return false;
    memory_file *made = memory_file_new();
    for (const char *p = text; *p;) {
        size_t k = 0;
        while (k < PARTS && strncmp(p, parts[k][0], strlen(parts[k][0])) != 0)
            k++;
        for (const char *t = title; k == 0 && *t; t++)
            fprintf(made->out, strchr("<&", *t) ? "&#%d;" : "%c", *t);
        fputs(k < PARTS ? parts[k][1] : (char[]){*p, 0}, made->out);
        const char *past = k == 1 ? strstr(p, "</title>") : NULL;
        p = past ? past + strlen("</title>") : k < PARTS ? p + strlen(parts[k][0]) : p + 1;
    }
    free(text);
    return memory_file_write(made, path, e);
}

static bool call_gnuplot(const char *script, const char *commands, const char *out, err *e) {
    const char *argv[] = {"env", "LC_ALL=C", "gnuplot", "-e", commands, script, NULL};
    char *output = NULL;
    int status = -1;
    bool ok = child_run(argv, &output, &status, e);
    if (ok && status != 0) {
        ok = err_set(e, EXIT_CANNOT, "gnuplot could not draw %.160s", out);
        err_set_detail(e, output ? output : "");
    }
    free(output);
    return ok;
}

/* The chart is drawn beside its place and moved there when it is whole. The prelude stays as it was. */
static bool run_gnuplot(const char *script, prelude *p, const char *out, const char *format,
                        err *e) {
    size_t used = p->used;
    char part[PATH_MAX];
    if (!path_print(part, sizeof part, e, "%s.%ld.tmp", out, (long)getpid()))
        return false;
    add(p, "out='");
    add_quoted(p, part);
    add(p, "';format='%s'", format);
    bool ok = (p->used < sizeof p->text ||
               err_set(e, EXIT_CANNOT, "%.160s: too much for one chart", out)) &&
              call_gnuplot(script, p->text, out, e) &&
              (is_whole(part) ||
               err_set(e, EXIT_CANNOT, "%.160s is incomplete: is the disk full?", out)) &&
              (strcmp(format, "svg") != 0 || finish_svg(part, p->title, e)) &&
              os_settle(part, out, false, e);
    if (!ok)
        unlink(part);
    p->used = used;
    p->text[used] = 0;
    return ok;
}

bool plot_draw(const char *name, const char *sentence, const char *const *tables, size_t count,
               const char *folder, err *e) {
    static const char *const formats[] = {"svg", "png"};
    char home[PATH_MAX - 64], script[PATH_MAX + 64], out[PATH_MAX];
    assert(count > 0 && count <= PLOT_FILES);
    if (!plot_is_available())
        return err_set(e, EXIT_CANNOT,
                       "gnuplot is missing, so no chart was drawn; results are written without it. "
                       "Install the package gnuplot-nox, or gnuplot");
    if (!os_find_home(home, sizeof home, e))
        return false;
    prelude *p = array_new(1, sizeof *p);
    find_script(home, name, script, sizeof script);
    bool ok = make_prelude(p, name, sentence, tables, count, home, e) && os_make_folder(folder, e);
    for (size_t i = 0; ok && i < 2; i++)
        ok = path_print(out, sizeof out, e, "%s/%s.%s", folder, name, formats[i]) &&
             run_gnuplot(script, p, out, formats[i], e);
    free(p);
    return ok;
}

/* Sentences with metrics ----------------------------------------------------------------------- */

/* Adds the text of one {...}; false if its number is not known. */
static bool fill(const csv_file *f, const char *field, char *out, size_t size) {
    char name[64], number[32];
    size_t length = strcspn(field, "|");
    snprintf(name, sizeof name, "%.*s", (int)length, field);
    metric m;
    double value = strncmp(name, "max:", 4) == 0        ? find_largest(f, name + 4)
                   : find_metric(f, "metric", name, &m) ? m.value
                                                        : NAN;
    bool is_more = strcmp(field + length, "|more") == 0;
    bool is_change = strcmp(field + length, "|change") == 0;
    format_number(is_more || is_change ? fabs(value) : value, 3, number, sizeof number);
    if (is_change && find_metric(f, "spread", name, &m) && m.value <= 0 && m.high >= 0)
        snprintf(out, size,
                 fmax(-m.value, m.high) > PLOT_SAME_PCT ? "too noisy to tell a difference"
                                                        : "no clear difference");
    else if (strcmp(field + length, "|overlap") == 0)
        snprintf(out, size, value < -1 ? "; %s %% in all, since launches overlap" : "%.0s",
                 format_number(100 - value, 4, number, sizeof number));
    else if (is_change)
        snprintf(out, size, "%c%s %%", value < 0 ? '-' : '+', number);
    else
        snprintf(out, size, "%s%s", number, !is_more ? "" : value < 0 ? " % less" : " % more");
    return isfinite(value);
}

static bool fill_sentence(const csv_file *f, const char *sentence, char *text, size_t size) {
    size_t used = 0;
    for (const char *p = sentence; *p && used + 1 < size;) {
        if (*p != '{') {
            text[used++] = *p++;
            continue;
        }
        char field[80], value[48];
        size_t length = strcspn(++p, "}");
        snprintf(field, sizeof field, "%.*s", (int)length, p);
        if (!fill(f, field, value, sizeof value))
            return false;
        used += (size_t)snprintf(text + used, size - used, "%s", value);
        p += length + 1;
    }
    text[used < size ? used : size - 1] = 0;
    return used < size;
}

/* Sentences from rows -------------------------------------------------------------------------- */

/* A row with a time. Rows that do the same have the same key. */
typedef struct {
    char key[400];
    bool is_theirs; /* kernels of others are named FILE.metal:KERNEL */
    double ns;
} timed_row;

static timed_row *list_rows(const csv_file *f, size_t *count) {
    static const char *const titles[] = {"op",    "format", "shape", "matrix",
                                         "input", "regime", "cache"};
    timed_row *rows = array_new(csv_count_rows(f) + 1, sizeof *rows);
    size_t column;
    bool has_matrix =
        csv_find_column(f, "matrix", &column, NULL); /* a shape may have tokens, too */
    *count = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        timed_row *row = &rows[*count];
        *row = (timed_row){.ns = csv_find_double(f, r, "gpu_ns"),
                           .is_theirs = strstr(csv_find_text(f, r, "kernel"), ".metal:")};
        for (size_t i = 0, used = 0; i < sizeof titles / sizeof *titles; i++)
            if ((i != 2 || !has_matrix) && used < sizeof row->key)
                used += (size_t)snprintf(row->key + used, sizeof row->key - used, "%s/",
                                         csv_find_text(f, r, titles[i]));
        *count += row->ns > 0;
    }
    return rows;
}

/* The fastest of theirs over the fastest of ours among rows with the key of `first`; NaN where there are not both,
 * or where it is not the first of them. */
static double compare_fastest(const timed_row *rows, size_t count, size_t first) {
    double ns[2] = {NAN, NAN};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].key, rows[first].key) != 0)
            continue;
        if (i < first)
            return NAN;
        ns[rows[i].is_theirs] = fmin(ns[rows[i].is_theirs], rows[i].ns);
    }
    return ns[1] / ns[0];
}

/* Ours and theirs where there are both. */
static bool find_rows(const csv_file *f, char *text, size_t size) {
    size_t count, both = 0, faster = 0;
    timed_row *rows = list_rows(f, &count);
    double least = INFINITY, most = 0;
    char low[32], high[32];
    for (size_t r = 0; r < count; r++) {
        double ratio = compare_fastest(rows, count, r);
        if (isnan(ratio))
            continue;
        both++;
        faster += ratio > 1;
        least = fmin(least, ratio);
        most = fmax(most, ratio);
    }
    free(rows);
    if (both > 0)
        snprintf(text, size,
                 "Our fastest kernel is faster than theirs in %zu of %zu cases: %s to %s times as "
                 "fast",
                 faster, both, format_number(least, 3, low, sizeof low),
                 format_number(most, 3, high, sizeof high));
    else
        snprintf(text, size, "Times of %zu %s", count, count == 1 ? "case" : "cases");
    return count > 0;
}

static bool find_check(const csv_file *f, char *text, size_t size) {
    size_t passed = 0, failed = 0;
    const double worst = find_largest(f, "margin");
    char margin[32];
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *verdict = csv_find_text(f, r, "verdict");
        passed += strcmp(verdict, "pass") == 0;
        failed += strcmp(verdict, "fail") == 0;
    }
    snprintf(
        text, size,
        "%zu of %zu checked cases are within their tolerance; the largest error is %s %% of it",
        passed, passed + failed,
        format_number(floor(1000 * fmax(0, worst)) / 10, 4, margin, sizeof margin));
    return passed + failed > 0;
}

/* The rates of all models in the test of writing 128 tokens, or else in the first one. */
static bool find_models(const csv_file *f, char *text, size_t size) {
    static const char shape[] = "random weights in the shape of "; /* "... 7b, seed 1" is 7b */
    if (csv_count_rows(f) == 0 || strcmp(csv_find_text(f, 0, "op"), "model") != 0)
        return false;
    const char *test = csv_find_text(f, 0, "variant");
    size_t models = 0;
    for (size_t r = 0; r < csv_count_rows(f); r++)
        test = strcmp(csv_find_text(f, r, "variant"), "tg128") == 0 ? "tg128" : test;
    int n = snprintf(text, size, "Tokens per second in %s: ", test);
    for (size_t r = 0; r < csv_count_rows(f); r++) {
        const char *name = csv_find_text(f, r, "model");
        char rate[32];
        double per_s =
            1e9 * strtod(strlen(test) > 2 ? test + 2 : "", NULL) / csv_find_double(f, r, "gpu_ns");
        if (strcmp(csv_find_text(f, r, "variant"), test) != 0 || !(per_s > 0) ||
            (size_t)n + 96 > size)
            continue;
        name += strncmp(name, shape, strlen(shape)) == 0 ? strlen(shape) : 0;
        n += snprintf(text + n, size - (size_t)n, "%s%.*s %s", models++ ? ", " : "",
                      (int)strcspn(name, ","), name, format_number(per_s, 3, rate, sizeof rate));
    }
    return models > 0;
}

void plot_find(const char *name, const char *sentence, const csv_file *f, char *text, size_t size) {
    const char *conclusion = csv_get_meta(f, "conclusion"), *question = csv_get_meta(f, "question");
    const bool is_smoke = strcmp(csv_find_meta(f, "level"), "smoke") == 0;
    if (is_smoke)
        snprintf(text, size, "%s: a smoke run, whose numbers mean nothing", name);
    if (is_smoke || (sentence && fill_sentence(f, sentence, text, size)))
        return;
    if (conclusion || question)
        snprintf(text, size, "%s", conclusion ? conclusion : question);
    else if (!find_check(f, text, size) && !find_models(f, text, size) && !find_rows(f, text, size))
        snprintf(text, size, "%s", name);
}
