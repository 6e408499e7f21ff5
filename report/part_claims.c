/* part_claims: numbers of others. What was published, and what the devices say about it: one row per
 * claim; claims that no device can answer come after the others, folded. And whole models beside another
 * engine on the same GPU. */
#include <math.h>

#include "page.h"

static void print_claim(FILE *out, const claim *c) {
    char published[96];
    claim_get_published(c, published, sizeof published);
    fputs("<tr><td class=\"wide\">", out);
    html_print_prose(out, c->text);
    html(out, "<br><small>%s</small></td><td class=n data-v=%.6g>", c->conditions, c->value);
    html_print_prose(out, published);
    html(out, "<br><small>%s</small></td>", c->device);
}

static void print_answer(const page *p, FILE *out, const claim *c, const store_folder *f) {
    static const char *const kinds[CLAIM_VERDICTS] = {
        [CLAIM_HOLDS] = "good",      [CLAIM_FAILS] = "bad",        [CLAIM_ELSEWHERE] = "plain",
        [CLAIM_UNCLEAR] = "unknown", [CLAIM_CONTRADICTED] = "bad", [CLAIM_UNKNOWN] = "unknown"};
    claim_answer a = claim_judge(c, f);
    char measured[96];
    claim_get_measured(c, &a, f->emulated, measured, sizeof measured);
    html(out, p->store->count > 1 ? "<p>%s: " : "<p>", f->device);
    html_print_prose(out, a.has_value ? measured : "");
    html(out, " <span class=\"badge %s\">%s</span><br><small>", kinds[a.verdict],
         claim_get_verdict_name(a.verdict));
    html_print_prose(out, a.reason);
    fputs("</small></p>", out);
}

static bool is_answered(const page *p, const claim *c) {
    for (size_t f = 0; f < p->store->count; f++)
        if (!page_is_folded(p, &p->store->folders[f]) &&
            claim_judge(c, &p->store->folders[f]).verdict != CLAIM_UNKNOWN)
            return true;
    return false;
}

static void print_claims(const page *p, FILE *out, bool are_answered, const char *caption) {
    html_start_table(out, caption, "claim", "#published|and the device it was published for",
                     "measured here", NULL);
    for (size_t i = 0; i < p->content->claims->count; i++) {
        const claim *c = &p->content->claims->items[i];
        if (is_answered(p, c) != are_answered)
            continue;
        print_claim(out, c);
        fputs("<td class=\"wide\">", out);
        for (size_t f = 0; f < p->store->count; f++)
            if (!page_is_folded(p, &p->store->folders[f]))
                print_answer(p, out, c, &p->store->folders[f]);
        fputs("</td></tr>\n", out);
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

/* The rows of tools/rivals.sh. */
void page_print_rivals(const page *p, FILE *out, const store_folder *f) {
    const store_file *file = store_find(f, STORE_OTHER, "rivals");
    if (!file) {
        page_print_note(out,
                        "No other engine was timed on this device: `tools/rivals.sh` does it.");
        return;
    }
    html(out, "<p>%s. ", csv_find_meta(file->csv, "conclusion"));
    page_end_source(p, out, f, file);
    page_print_charts(p, out, f, file->name);
    fputs("<details><summary>Every test</summary>\n", out);
    html_start_table(out, csv_find_meta(file->csv, "rival"), "model", "test", "#Assay, tok/s",
                     "#llama.cpp, tok/s", "#times as fast", NULL);
    for (size_t r = 0; r < csv_count_rows(file->csv); r++) {
        html(out, "<tr><td>%s<td>%s", csv_find_text(file->csv, r, "model"),
             csv_find_text(file->csv, r, "test"));
        html_print_number(out, round(csv_find_double(file->csv, r, "assay_tok_s")), "");
        html_print_number(out, round(csv_find_double(file->csv, r, "llama_tok_s")), "");
        html_print_number(out, csv_find_double(file->csv, r, "ratio"), "");
        fputs("</tr>\n", out);
    }
    html_end_table(out);
    fputs("</details>\n", out);
}
