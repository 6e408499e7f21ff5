/* part_claims: published numbers and what the devices say about them: one row per claim, one column per
 * device. Claims that no device can answer come after the others, folded. */
#include "page.h"

static void print_claim(FILE *out, const claim *c) {
    char published[96];
    claim_get_published(c, published, sizeof published);
    html(
        out,
        "<tr><td class=\"wide\">%s<br><small>%s</small></td><td class=n data-v=%.6g>%s<br><small>%s"
        "</small></td>",
        c->text, c->conditions, c->value, published, c->device);
}

static void print_answer(FILE *out, const claim *c, const store_folder *f) {
    static const char *const kinds[CLAIM_VERDICTS] = {
        [CLAIM_HOLDS] = "good",      [CLAIM_FAILS] = "bad",        [CLAIM_ELSEWHERE] = "plain",
        [CLAIM_UNCLEAR] = "unknown", [CLAIM_CONTRADICTED] = "bad", [CLAIM_UNKNOWN] = "unknown"};
    claim_answer a = claim_judge(c, f);
    char measured[96];
    claim_get_measured(c, &a, f->emulated, measured, sizeof measured);
    if (a.has_value)
        html(out, "<td class=\"wide\" data-v=%.6g>%s ", a.value, measured);
    else
        fputs("<td class=\"wide\">", out);
    html(out, "<span class=\"badge %s\">%s</span><br><small>", kinds[a.verdict],
         claim_get_verdict_name(a.verdict));
    html_print_prose(out, a.reason);
    fputs("</small></td>", out);
}

static bool is_answered(const page *p, const claim *c) {
    for (size_t f = 0; f < p->store->count; f++)
        if (!page_is_folded(p, &p->store->folders[f]) &&
            claim_judge(c, &p->store->folders[f]).verdict != CLAIM_UNKNOWN)
            return true;
    return false;
}

static void print_claims(const page *p, FILE *out, bool are_answered, const char *caption) {
    html_open_table(out, caption);
    html_add_column(out, false, "claim", NULL);
    html_add_column(out, true, "published", "and the device it was published for");
    for (size_t f = 0; f < p->store->count; f++)
        if (!page_is_folded(p, &p->store->folders[f]))
            html_add_column(out, true, p->store->folders[f].device, NULL);
    html_start_rows(out);
    for (size_t i = 0; i < p->content->claims->count; i++) {
        const claim *c = &p->content->claims->items[i];
        if (is_answered(p, c) != are_answered)
            continue;
        print_claim(out, c);
        for (size_t f = 0; f < p->store->count; f++)
            if (!page_is_folded(p, &p->store->folders[f]))
                print_answer(out, c, &p->store->folders[f]);
        fputs("</tr>\n", out);
    }
    html_end_table(out);
}

void page_print_claims(const page *p, FILE *out) {
    size_t answered = 0, count = p->content->claims->count;
    for (size_t i = 0; i < count; i++)
        answered += is_answered(p, &p->content->claims->items[i]);
    if (answered > 0)
        print_claims(p, out, true, "Published claims and what was measured here");
    if (answered == count)
        return;
    html(out, "<details><summary>%zu claim%s cannot be measured here</summary>\n", count - answered,
         count - answered == 1 ? "" : "s");
    print_claims(p, out, false, "Claims that cannot be measured here, and why");
    fputs("</details>\n", out);
}
