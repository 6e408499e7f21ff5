/* part_claims: published numbers and what the devices say about them.
 *
 * One device gets columns for number, verdict and reason; several get one column each, so that a
 * claim is one row and devices stand beside each other. */
#include <math.h>

#include "page_parts.h"

enum { MOST_COLUMNS = 16 };

static void print_claim(FILE *out, const claim *c) {
    char published[96];
    claim_get_published(c, published, sizeof published);
    fputs("<tr><td class=\"wide\">", out);
    html_print(out, c->text);
    fputs("<br><span class=\"dim\">", out);
    html_print(out, c->conditions);
    fprintf(out, "</span></td><td class=\"n\" data-v=\"%.9g\">", c->value);
    html_print(out, published);
    fputs("<br><span class=\"dim\">", out);
    html_print(out, c->device);
    fputs("</span></td>", out);
}

static void print_verdict(FILE *out, claim_verdict v) {
    static const char *const kinds[CLAIM_VERDICTS] = {"good", "bad", "unknown"};
    html_print_badge(out, kinds[v], claim_get_verdict_name(v));
}

static void print_alone(FILE *out, const claim *c, const store_folder *f) {
    claim_answer a = claim_judge(c, f);
    char measured[96];
    claim_get_measured(c, &a, f->emulated, measured, sizeof measured);
    html_print_number_cell(out, a.has_value ? a.value : NAN, measured);
    fputs("<td>", out);
    print_verdict(out, a.verdict);
    fputs("</td><td class=\"wide\">", out);
    html_print_prose(out, a.reason);
    fputs("</td>", out);
}

static void print_among_others(FILE *out, const claim *c, const store_folder *f) {
    claim_answer a = claim_judge(c, f);
    char measured[96];
    claim_get_measured(c, &a, f->emulated, measured, sizeof measured);
    fputs("<td class=\"wide\"", out);
    if (a.has_value)
        fprintf(out, " data-v=\"%.9g\"", a.value);
    fputs(">", out);
    if (a.has_value)
        html_printf(out, "%s ", measured);
    print_verdict(out, a.verdict);
    fputs("<br><span class=\"dim\">", out);
    html_print_prose(out, a.reason);
    fputs("</span></td>", out);
}

bool page_print_claims(page *p, FILE *out, err *e) {
    (void)e;
    html_column columns[MOST_COLUMNS] = {{"claim", false, NULL},
                                         {"published", true, "and the device it was published for"},
                                         {"measured here", true, NULL},
                                         {"verdict", false, NULL},
                                         {"reason", false, NULL}};
    bool is_many = p->store->count > 1;
    size_t shown = p->store->count < MOST_COLUMNS - 2 ? p->store->count : MOST_COLUMNS - 2;
    for (size_t f = 0; is_many && f < shown; f++)
        columns[2 + f] = (html_column){p->store->folders[f].device, true, NULL};
    html_start_table(out, columns, is_many ? 2 + shown : 5,
                     "Published claims and what was measured here");
    for (size_t i = 0; i < p->content->claims->count; i++) {
        const claim *c = &p->content->claims->items[i];
        print_claim(out, c);
        for (size_t f = 0; f < shown; f++)
            if (is_many)
                print_among_others(out, c, &p->store->folders[f]);
            else
                print_alone(out, c, &p->store->folders[f]);
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    return true;
}
