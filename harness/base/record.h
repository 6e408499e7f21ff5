/* record: the fields of a row, described once, and rows in every form that follows from that: a table on
 * the screen, Markdown, JSON, CSV and back.
 *
 *     static const field fields[] = {
 *         FIELD(item, name, FIELD_CHARS, "case", "case"),
 *         FIELD(item, ns, FIELD_TIME, "gpu_ns", "time", .width = 9, .rank = 2),
 *     };
 *     sink s = {.record = RECORD(fields), .out = stdout};
 *     sink_add(&s, &row, PAINT_NONE);  ...  sink_end(&s);
 */
#pragma once

#include <stdio.h>

#include "csv.h"
#include "json.h"

/* What is in the row, and how people see it. */
typedef enum {
    FIELD_CHARS, /* char [] */
    FIELD_TEXT,  /* const char *; NULL is shown as "" */
    FIELD_FLAG,  /* bool */
    FIELD_COUNT, /* unsigned, of any size */
    FIELD_INTEGER,
    FIELD_REAL,   /* double; NaN: unknown. People see three digits, or as `format` says */
    FIELD_TIME,   /* double, ns; people see it with its unit */
    FIELD_PERCENT /* double; with a % after the number */
} field_kind;

typedef struct {
    field_kind kind;
    size_t at, size;
    const char *name;  /* in JSON and CSV; NULL: only on the screen */
    const char *title; /* on the screen; NULL: only in files */
    const char *format;
    int width;       /* on the screen: characters at least */
    int rank;        /* where there is too little room the highest goes first; 0: is always shown */
    bool lifts;      /* may go to a line above the table if every cell is the same */
    bool is_painted; /* has the colour of the row */
    bool is_optional,
        may_be_empty; /* of files: the column may be missing, and the field is left as it was; a
                                       real in it may be empty, which is NaN */
} field;

#define FIELD(row, member, kind_, ...)                                                             \
    {                                                                                              \
        .kind = kind_, .at = offsetof(row, member), .size = sizeof((row *)0)->member,              \
        .name = __VA_ARGS__                                                                        \
    }

typedef struct {
    const field *fields;
    size_t count;
} record;

#define RECORD(list)                                                                               \
    { list, sizeof list / sizeof *list }

/* The fields of an object that is open; a list of such objects from rows that follow each other. */
void record_add_json(const record *r, const void *row, json *j);
void record_list_json(const record *r, const void *rows, size_t count, size_t size, const char *key,
                      json *j);
/* Lines of a file: the titles, a row; and a whole file of rows that follow each other, after whose head was added to
 * c, which is freed. */
void record_add_titles(const record *r, csv *c);
void record_add_csv(const record *r, const void *row, csv *c);
bool record_write_csv(const record *r, const void *rows, size_t count, size_t size, csv *c,
                      const char *path, err *e);
/* A row of a file that has these columns, among others. Texts stay the file's; what does not fit a FIELD_CHARS
 * is cut. A count is a whole number, or empty, which is 0. */
bool record_read(const record *r, const csv_file *f, size_t row, void *out, err *e);
double field_get_number(const field *f, const void *row); /* of any that is one */
/* A field as people see it. */
const char *field_print(const field *f, const void *row, char *text, size_t size);

/* Rows for people: table.c ---------------------------------------------------------------------- */

typedef enum { PAINT_NONE, PAINT_GOOD, PAINT_BAD, PAINT_DIM } paint;

enum { SINK_COLUMNS = 16, SINK_CELL = 1200 };

/* Where rows go; what is NULL gets none. It stays where it is once it has a row. On a terminal a table is made to
 * fit; in a pipe all columns are printed. */
typedef struct {
    record record;
    FILE *out; /* for people, as a table */
    bool is_markdown;
    bool streams; /* rows are printed as they come, as wide as sink_fit found; else at the end */
    int heads; /* where there is too little room, the first cell goes to a line of its own: as if it had this
                   * rank */
    json *json; /* an open list, which gets objects */
    csv *csv;   /* lines; whoever opened it has written its head */
    /* Found by the sink. */
    struct sink_column {
        const field *field;
        int width;
        char same[48]; /* the text of all cells so far */
        bool varies, is_hidden;
    } columns[SINK_COLUMNS];
    size_t count;
    bool is_open, has_header, has_colour, has_heads;
    int limit;     /* characters of a line, or 0 */
    char head[96]; /* the last cell that went to a line of its own */
    struct sink_line *held;
    size_t held_count, held_room;
} sink;

void sink_fit(sink *s, const void *row);
void sink_add(sink *s, const void *row, paint p);
/* A text between the rows of a table. */
void sink_note(sink *s, int indent, const char *text);
void sink_end(sink *s);

/* True on a terminal, unless NO_COLOR is set or the terminal is dumb. */
bool table_wants_colour(FILE *out);
/* Characters of a line of the terminal; elsewhere COLUMNS, or 0 if it is not set: no limit. */
int table_find_limit(FILE *out);
/* Characters that a UTF-8 text takes on the screen (combining and wide ones count as one). */
int table_get_width(const char *text);
/* A sentence that is broken between words so that a line has at most `limit` characters (0: any
 * number): the first indented by `indent`, the others by 4 more. */
void table_print_text(FILE *out, int limit, int indent, const char *text);
/* A label, and beside it, from this column on, a text that is broken in the same way. */
void table_print_item(FILE *out, int start, const char *label, const char *text);
