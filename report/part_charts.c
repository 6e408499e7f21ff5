/* part_charts: charts, read from SVG files, with links to the files. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "page_parts.h"
#include "svg.h"

static void print_chart_links(const page *p, FILE *out, const store_folder *f, const char *name) {
    char png[160];
    fputs("<figcaption>", out);
    html_printf(out, "%s: ", f->device);
    page_print_file(p, out, f, name);
    snprintf(png, sizeof png, "%.*s.png", (int)(strlen(name) - 4), name);
    if (store_has(f, png)) {
        fputs(", ", out);
        page_print_file(p, out, f, png);
    }
    fputs("</figcaption>", out);
}

static void print_chart(page *p, FILE *out, const store_folder *f, const char *what,
                        const char *name) {
    char path[PATH_MAX + 160], prefix[32], label[400];
    err why = {.code = EXIT_OK};
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    snprintf(prefix, sizeof prefix, "c%zu-", ++p->charts);
    snprintf(label, sizeof label, "Chart of %.120s on %.120s", what, f->device);
    char *text = os_read_file(path, NULL, &why);
    fputs("<figure>", out);
    if (text) {
        fputs("<div class=\"chart\">", out);
        bool is_drawn = svg_print(out, text, path, prefix, label, &why);
        fputs(is_drawn ? "" : "The chart could not be read.", out);
        fputs("</div>", out);
    }
    if (why.text[0]) {
        fputs("<p class=\"note\">", out);
        html_print(out, why.text);
        fputs("</p>", out);
    }
    print_chart_links(p, out, f, name);
    fputs("</figure>\n", out);
    free(text);
}

size_t page_print_charts(page *p, FILE *out, const store_folder *f, const char *what) {
    const char *name;
    size_t count = 0;
    for (; (name = store_find_chart(f, what, count)); count++)
        print_chart(p, out, f, what, name);
    return count;
}
