/* cmd_list: `assay list`. The registry, for people and for the README. */
#include <assert.h>
#include <stdio.h>

#include "harness/base/table.h"
#include "harness/check/op.h"
#include "kernels/kernels.h"
#include "verb.h"

static struct { bool md; } settings;

static const option options[] = {
    {"md", OPTION_FLAG, &settings.md, NULL, "as a Markdown table", 0, 0},
};

enum { COLUMNS = 4 };

static void print_table(void) {
    table_column columns[COLUMNS] = {
        {.title = "op"}, {.title = "kernel"}, {.title = "dims"}, {.title = "about"}};
    for (size_t i = 0; i < registry_count; i++) {
        table_fit(&columns[0], registry[i]->name);
        table_fit(&columns[2], registry[i]->dims);
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            table_fit(&columns[1], registry[i]->kernels[k].name);
    }
    table t = {
        .out = stdout, .columns = columns, .count = COLUMNS, .colour = table_wants_colour(stdout)};
    table_print_header(&t);
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        const char *family[COLUMNS] = {o->name, "", o->dims, o->about};
        table_print_row(&t, family, 0, PAINT_GOOD);
        for (size_t k = 0; k < o->kernel_count; k++) {
            const char *cells[COLUMNS] = {"", o->kernels[k].name, "", o->kernels[k].about};
            table_print_row(&t, cells, 0, PAINT_NONE);
        }
    }
}

static void print_markdown_cell(const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            putchar('\\');
        putchar(*p);
    }
}

static void print_markdown(void) {
    puts("| op | computes | dims | kernel | what it tries |\n|---|---|---|---|---|");
    for (size_t i = 0; i < registry_count; i++) {
        const op *o = registry[i];
        for (size_t k = 0; k < o->kernel_count; k++) {
            printf("| %s | ", k ? "" : o->name);
            print_markdown_cell(k ? "" : o->about);
            printf(" | %s | `%s` | ", k ? "" : o->dims, o->kernels[k].name);
            print_markdown_cell(o->kernels[k].about);
            puts(" |");
        }
    }
}

static exit_code run(const char *const *names, size_t count, err *e) {
    (void)names;
    (void)e;
    assert(count == 0);
    if (settings.md)
        print_markdown();
    else
        print_table();
    return EXIT_OK;
}

const verb verb_list = {
    .name = "list",
    .about = "the ops and their kernels",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = run,
};
