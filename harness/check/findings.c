#include "findings.h"

#include <inttypes.h>
#include <string.h>

#include "harness/base/table.h"

enum { COLUMNS = 8, CELL = 192 };

typedef char row_cells[COLUMNS][CELL];

static void print_position(char *cell, const uint32_t at[3]) {
    snprintf(cell, CELL, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, at[0], at[1], at[2]);
}

/* Unknown values, and those that make no sense for the class, are empty cells. */
static void fill_row(const finding *f, row_cells cells) {
    memset(cells, 0, sizeof(row_cells));
    snprintf(cells[0], CELL, "%s", finding_get_name(f->what));
    if (f->line > 0)
        snprintf(cells[1], CELL, "%s:%d", f->file, f->line);
    else
        snprintf(cells[1], CELL, "%s", f->file);
    print_position(cells[2], f->thread);
    print_position(cells[3], f->group);
    if (f->buffer >= 0)
        snprintf(cells[4], CELL, "%d %s", f->buffer, f->label);
    else
        snprintf(cells[4], CELL, "%s", f->label);
    if (f->label[0])
        snprintf(cells[5], CELL, "%" PRId64, f->element);
    if (f->by)
        snprintf(cells[6], CELL, "%" PRId64, f->by);
    snprintf(cells[7], CELL, "%" PRIu64, f->count);
}

void findings_print(FILE *out, const finding_list *list, size_t most) {
    table_column columns[COLUMNS] = {
        {.title = "finding"},
        {.title = "where"},
        {.title = "thread"},
        {.title = "threadgroup", .rank = 1},
        {.title = "buffer"},
        {.title = "element", .right = true},
        {.title = "bytes outside", .right = true, .rank = 2},
        {.title = "times", .right = true, .rank = 3},
    };
    size_t shown = list->count < most ? list->count : most;
    row_cells cells;
    for (size_t i = 0; i < shown; i++) {
        fill_row(&list->items[i], cells);
        for (size_t k = 0; k < COLUMNS; k++)
            table_fit(&columns[k], cells[k]);
    }
    table t = table_new(out, columns, COLUMNS);
    if (shown > 0)
        table_print_header(&t);
    for (size_t i = 0; i < shown; i++) {
        const char *row[COLUMNS];
        fill_row(&list->items[i], cells);
        for (size_t k = 0; k < COLUMNS; k++)
            row[k] = cells[k];
        table_print_row(&t, row, 0, PAINT_BAD);
        fprintf(out, "    %s: %s\n", list->items[i].kernel, list->items[i].text);
    }
    if (shown < list->count)
        fprintf(out, "and %zu more; --max-findings shows more of them\n", list->count - shown);
}
