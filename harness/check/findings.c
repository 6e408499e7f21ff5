#include "findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/record.h"

/* What is unknown, or makes no sense for the class, is empty. */
typedef struct {
    finding of;
    const char *class;
    char where[160], buffer[64], index[16]; /* buffer: index and label */
    char thread[40], group[40], element[24], outside[24];
    char threads[40], groups[40]; /* with blanks, in files */
} finding_row;

static const field fields[] = {
    FIELD(finding_row, of.kernel, FIELD_CHARS, "case"),
    FIELD(finding_row, class, FIELD_TEXT, "class", "finding", .is_painted = true),
    FIELD(finding_row, where, FIELD_CHARS, NULL, "where"),
    FIELD(finding_row, of.file, FIELD_CHARS, "file"),
    FIELD(finding_row, of.line, FIELD_INTEGER, "line"),
    FIELD(finding_row, thread, FIELD_CHARS, NULL, "thread"),
    FIELD(finding_row, group, FIELD_CHARS, NULL, "threadgroup", .rank = 1),
    FIELD(finding_row, threads, FIELD_CHARS, "thread"),
    FIELD(finding_row, groups, FIELD_CHARS, "group"),
    FIELD(finding_row, buffer, FIELD_CHARS, NULL, "buffer"),
    FIELD(finding_row, index, FIELD_CHARS, "buffer"),
    FIELD(finding_row, of.label, FIELD_CHARS, "label"),
    FIELD(finding_row, element, FIELD_CHARS, NULL, "element"),
    FIELD(finding_row, outside, FIELD_CHARS, NULL, "bytes outside", .rank = 2),
    FIELD(finding_row, of.element, FIELD_INTEGER, "element"),
    FIELD(finding_row, of.by, FIELD_INTEGER, "outside_by"),
    FIELD(finding_row, of.bytes, FIELD_COUNT, "bytes"),
    FIELD(finding_row, of.count, FIELD_COUNT, "count", "times", .rank = 3),
    FIELD(finding_row, of.text, FIELD_CHARS, "text"),
};

static void print_position(char *text, size_t size, const uint32_t at[3], char between) {
    snprintf(text, size, "%" PRIu32 "%c%" PRIu32 "%c%" PRIu32, at[0], between, at[1], between,
             at[2]);
}

static finding_row make_row(const finding *f) {
    finding_row r = {.of = *f, .class = finding_get_name(f->what)};
    int used = snprintf(r.where, sizeof r.where, "%s", f->file);
    if (f->line > 0)
        snprintf(r.where + used, sizeof r.where - (size_t)used, ":%d", f->line);
    print_position(r.thread, sizeof r.thread, f->thread, ',');
    print_position(r.group, sizeof r.group, f->group, ',');
    print_position(r.threads, sizeof r.threads, f->thread, ' ');
    print_position(r.groups, sizeof r.groups, f->group, ' ');
    if (f->buffer >= 0)
        snprintf(r.index, sizeof r.index, "%d", f->buffer);
    snprintf(r.buffer, sizeof r.buffer, "%s%s%s", r.index, r.index[0] ? " " : "", f->label);
    if (f->label[0])
        snprintf(r.element, sizeof r.element, "%" PRId64, f->element);
    if (f->by)
        snprintf(r.outside, sizeof r.outside, "%" PRId64, f->by);
    return r;
}

void findings_print(FILE *out, const finding_list *list, size_t most) {
    sink s = {.record = RECORD(fields), .out = out};
    for (size_t i = 0; i < list->count && i < most; i++) {
        char text[sizeof list->items->kernel + sizeof list->items->text + 2];
        finding_row r = make_row(&list->items[i]);
        snprintf(text, sizeof text, "%s: %s", r.of.kernel, r.of.text);
        sink_add(&s, &r, PAINT_BAD);
        sink_note(&s, 4, text);
    }
    if (list->count > 0 && most > 0)
        sink_end(&s);
    if (most < list->count)
        fprintf(out, "and %zu more; --max-findings shows more of them\n", list->count - most);
}

void findings_add_csv(csv *file, const finding_list *list) {
    sink s = {.record = RECORD(fields), .csv = file};
    record_add_titles(&s.record, file);
    csv_end_row(file);
    for (size_t i = 0; i < list->count; i++) {
        finding_row r = make_row(&list->items[i]);
        sink_add(&s, &r, PAINT_NONE);
    }
}
