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

#include "csv.h"
#include "json.h"
#include "table.h"

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
    int width, rank;        /* as in table_column */
    bool lifts, is_painted; /* is_painted: has the colour of the row */
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
void record_add_titles(const record *r, csv *c); /* a line without its end: more may follow */
void record_add_csv(const record *r, const void *row, csv *c);
/* A row of a file that has these columns, among others. Texts stay the file's; what does not fit a FIELD_CHARS
 * is cut. A count is a whole number, or empty, which is 0. */
bool record_read(const record *r, const csv_file *f, size_t row, void *out, err *e);
double field_get_number(const field *f, const void *row); /* of any that is one */
/* A field as people see it. */
const char *field_print(const field *f, const void *row, char *text, size_t size);

/* Where rows go; what is NULL gets none. It stays where it is once it has a row. */
enum { SINK_COLUMNS = 16, SINK_CELL = 1200 };

typedef struct {
    record record;
    FILE *out; /* for people, as a table */
    bool is_markdown;
    bool streams; /* rows are printed as they come, as wide as sink_fit found; else at the end */
    int heads;    /* as in table */
    json *json;   /* an open list, which gets objects */
    csv *csv;     /* lines; whoever opened it has written its head */
    /* Found by the sink. */
    table table;
    table_column columns[SINK_COLUMNS];
    bool is_open, has_header;
    struct sink_line *held;
    size_t held_count, held_room;
} sink;

void sink_fit(sink *s, const void *row);
void sink_add(sink *s, const void *row, paint p);
/* A text between the rows of a table. */
void sink_note(sink *s, int indent, const char *text);
void sink_end(sink *s);
