/* part_agx: a warning for each kernel that uses scratch memory on an M1, as Mesa's compiler sees it. */
#include "page_parts.h"

/* In the order of the rows. */
void page_print_agx(const page *p, FILE *out, const store_folder *f, const store_file *file) {
    static const html_column columns[] = {{"kernel", false, NULL},
                                          {"scratch", true, "bytes of memory per thread"},
                                          {"spills", true, "stores of spilled registers"},
                                          {"fills", true, "loads of spilled registers"},
                                          {"registers", true, "of 16 bits, per thread"},
                                          {"threads", true, "that have room on a core"}};
    static const char *const titles[] = {"scratch_bytes", "spills", "fills", "half_registers",
                                         "threads"};
    const csv_file *c = file->csv;
    const char *compiler = csv_get_meta(c, "agx compiler");
    size_t compiled = 0, spilling = 0;
    for (size_t r = 0; r < csv_count_rows(c); r++) {
        compiled += page_get_number(c, r, "threads") > 0;
        spilling += page_get_number(c, r, "scratch_bytes") > 0;
    }
    fputs("<p><strong>Registers (Mesa's compiler, M1).</strong> ", out);
    fprintf(out, "Of %zu kernels %zu compile, and %zu of these spill or use scratch memory. ",
            csv_count_rows(c), compiled, spilling);
    fputs("It is not Apple's compiler. ", out);
    if (compiler)
        html_printf(out, "%.120s. ", compiler);
    page_print_table_files(p, out, f, file);
    fputs("</p>\n", out);
    if (spilling == 0)
        return;
    html_start_table(out, columns, 6, "Warning: scratch memory (Mesa's compiler, M1)");
    for (size_t r = 0; r < csv_count_rows(c); r++) {
        if (!(page_get_number(c, r, "scratch_bytes") > 0))
            continue;
        fputs("<tr>", out);
        html_print_text_cell(out, page_get_cell(c, r, "kernel"));
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
            html_print_number_cell(out, page_get_number(c, r, titles[i]),
                                   page_get_cell(c, r, titles[i]));
        fputs("</tr>\n", out);
    }
    html_end_table(out);
}
