/* part_claims: published numbers and what the devices say about them.
 *
 * One device gets columns for number, verdict and reason; several get one column each, so that a
 * claim is one row and devices are side by side. Claims that no device can answer, for the same
 * reasons, are one row that opens into their list. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "page_parts.h"

static void print_published(FILE *out, const claim *c) {
    char published[96];
    claim_get_published(c, published, sizeof published);
    html_print(out, published);
}

static void print_claim(FILE *out, const claim *c) {
    fputs("<tr><td class=\"wide\">", out);
    html_print(out, c->text);
    fputs("<br><span class=\"dim\">", out);
    html_print(out, c->conditions);
    fprintf(out, "</span></td><td class=\"n\" data-v=\"%.9g\">", c->value);
    print_published(out, c);
    fputs("<br><span class=\"dim\">", out);
    html_print(out, c->device);
    fputs("</span></td>", out);
}

static void print_verdict(FILE *out, claim_verdict v) {
    static const char *const kinds[CLAIM_VERDICTS] = {
        [CLAIM_HOLDS] = "good",      [CLAIM_FAILS] = "bad",        [CLAIM_ELSEWHERE] = "plain",
        [CLAIM_UNCLEAR] = "unknown", [CLAIM_CONTRADICTED] = "bad", [CLAIM_UNKNOWN] = "unknown"};
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

static void print_among_others(FILE *out, const page *p, const claim *c, const store_folder *f) {
    claim_answer a = claim_judge(c, f);
    if (claims_count_same(p->content->claims, f, &a) >= CLAIMS_FOLDED) {
        fputs("<td class=\"dim\">", out);
        html_print(out, f->emulated ? "not measured: emulated" : "not measured");
        fputs("</td>", out);
        return;
    }
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

/* Folding ------------------------------------------------------------------------------------- */

/* No device answers it, and those that do not answer give reasons that other claims share. */
static bool is_folded(const page *p, const claim *c, size_t shown) {
    for (size_t f = 0; f < shown; f++) {
        claim_answer a = claim_judge(c, &p->store->folders[f]);
        if (claims_count_same(p->content->claims, &p->store->folders[f], &a) < CLAIMS_FOLDED)
            return false;
    }
    return true;
}

/* Both get the same answers of all devices. */
static bool is_alike(const page *p, const claim *a, const claim *b, size_t shown) {
    for (size_t f = 0; f < shown; f++)
        if (strcmp(claim_judge(a, &p->store->folders[f]).reason,
                   claim_judge(b, &p->store->folders[f]).reason) != 0)
            return false;
    return true;
}

static bool is_told(const page *p, size_t claim_index, size_t shown) {
    const claim *items = p->content->claims->items;
    for (size_t i = 0; i < claim_index; i++)
        if (is_folded(p, &items[i], shown) && is_alike(p, &items[i], &items[claim_index], shown))
            return true;
    return false;
}

/* One row for a claim and all that are like it. */
static void print_folded(FILE *out, const page *p, const claim *like, size_t shown) {
    const claim_list *l = p->content->claims;
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += is_folded(p, &l->items[i], shown) && is_alike(p, like, &l->items[i], shown);
    fprintf(out, "<tr><td class=\"wide\"><details><summary>%zu claim%s</summary><ul>", count,
            count == 1 ? "" : "s");
    for (size_t i = 0; i < l->count; i++) {
        if (!is_folded(p, &l->items[i], shown) || !is_alike(p, like, &l->items[i], shown))
            continue;
        fputs("<li>", out);
        html_print(out, l->items[i].text);
        fputs(" <span class=\"dim\">(", out);
        print_published(out, &l->items[i]);
        fputs(")</span></li>", out);
    }
    fputs("</ul></details></td><td></td>", out);
    for (size_t f = 0; f < shown; f++) {
        claim_answer a = claim_judge(like, &p->store->folders[f]);
        fputs(p->store->count > 1 ? "<td class=\"wide\">" : "<td></td><td>", out);
        print_verdict(out, a.verdict);
        fputs(p->store->count > 1 ? "<br><span class=\"dim\">" : "</td><td class=\"wide\"><span>",
              out);
        html_print_prose(out, a.reason);
        fputs("</span></td>", out);
    }
    fputs("</tr>\n", out);
}

bool page_print_claims(page *p, FILE *out, err *e) {
    (void)e;
    static const html_column alone[] = {{"claim", false, NULL},
                                        {"published", true, "and the device it was published for"},
                                        {"measured here", true, NULL},
                                        {"verdict", false, NULL},
                                        {"reason", false, NULL}};
    bool is_many = p->store->count > 1;
    size_t shown = p->store->count;
    html_column *columns = array_new(5 + shown, sizeof *columns);
    memcpy(columns, alone, sizeof alone);
    for (size_t f = 0; is_many && f < shown; f++)
        columns[2 + f] = (html_column){p->store->folders[f].device, true, NULL};
    html_start_table(out, columns, is_many ? 2 + shown : 5,
                     "Published claims and what was measured here");
    for (size_t i = 0; i < p->content->claims->count; i++) {
        const claim *c = &p->content->claims->items[i];
        if (is_folded(p, c, shown)) {
            if (!is_told(p, i, shown))
                print_folded(out, p, c, shown);
            continue;
        }
        print_claim(out, c);
        for (size_t f = 0; f < shown; f++)
            if (is_many)
                print_among_others(out, p, c, &p->store->folders[f]);
            else
                print_alone(out, c, &p->store->folders[f]);
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    free(columns);
    return true;
}
