#include "outcome.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "output.h"
#include "report/html.h"
#include "verb.h"

static const char *get_name(outcome_kind k) {
    static const char *const names[] = {"pass", "fail", "error", "skip"};
    return names[k];
}

void outcome_add(outcome_list *l, const kernel_case *c, const case_report *r) {
    const check_result *result = r->made && !r->failure ? &r->result : NULL;
    outcome *o = ARRAY_ADD(l->items, l->count, l->room);
    *o = (outcome){.op = c->op,
                   .kernel = c->kernel,
                   .kind = OUTCOME_ERROR,
                   .is_untried = r->is_untried,
                   .has_findings = r->findings.count > 0};
    snprintf(o->name, sizeof o->name, "%s", c->name);
    snprintf(o->message, sizeof o->message, "%s",
             r->failure ? r->failure
             : result   ? result->message
                        : r->error.text);
    if (!result)
        return;
    o->kind = result->verdict == CHECK_PASS   ? OUTCOME_PASS
              : result->verdict == CHECK_SKIP ? OUTCOME_SKIP
                                              : OUTCOME_FAIL;
    o->seconds = (double)result->gpu_ns * 1e-9;
    o->has_numbers = o->kind == OUTCOME_PASS || (o->kind == OUTCOME_FAIL && result->buffer[0]);
    o->numbers = result->worst;
}

static size_t count_kind(const outcome_list *l, outcome_kind k) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += l->items[i].kind == k;
    return count;
}

void outcome_free(outcome_list *l) {
    free(l->items);
    *l = (outcome_list){.count = 0};
}

/* JSON ---------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *op, *kernel, *file, *verdict;
} outcome_view;

static const field outcome_fields[] = {
    FIELD(outcome_view, name, FIELD_TEXT, "case"),
    FIELD(outcome_view, op, FIELD_TEXT, "op"),
    FIELD(outcome_view, kernel, FIELD_TEXT, "kernel"),
    FIELD(outcome_view, file, FIELD_TEXT, "file"),
    FIELD(outcome_view, verdict, FIELD_TEXT, "verdict"),
};

static const field number_fields[] = {
    FIELD(comparison, max_abs, FIELD_REAL, "max_abs"),
    FIELD(comparison, max_rel, FIELD_REAL, "max_rel"),
    FIELD(comparison, max_ulp, FIELD_REAL, "max_ulp"),
    FIELD(comparison, nmse, FIELD_REAL, "nmse"),
    FIELD(comparison, margin, FIELD_REAL, "margin"),
    FIELD(comparison, count, FIELD_COUNT, "elements"),
    FIELD(comparison, bad, FIELD_COUNT, "bad"),
    FIELD(comparison, worst, FIELD_COUNT, "worst"),
};

static void add_outcome(json *j, const outcome *o) {
    const record all = RECORD(outcome_fields), numbers = RECORD(number_fields);
    const outcome_view v = {o->name, o->op->name, o->kernel->name, o->kernel->file,
                            get_name(o->kind)};
    json_open(j, NULL, '{');
    record_add_json(&all, &v, j);
    if (o->has_numbers)
        record_add_json(&numbers, &o->numbers, j);
    if (o->message[0])
        json_add_text(j, "message", o->message);
    json_close(j);
}

static void add_position(json *j, const char *key, const uint32_t *position) {
    json_open(j, key, '[');
    for (int i = 0; i < 3; i++)
        json_add_count(j, NULL, position[i]);
    json_close(j);
}

static void add_finding(json *j, const finding *f) {
    json_open(j, NULL, '{');
    json_add_text(j, "case", f->kernel);
    json_add_text(j, "class", finding_get_name(f->what));
    json_add_text(j, "file", f->file);
    json_add_integer(j, "line", f->line);
    json_add_count(j, "count", f->count);
    add_position(j, "thread", f->thread);
    add_position(j, "group", f->group);
    json_add_integer(j, "buffer", f->buffer);
    if (f->macro[0]) {
        json_add_text(j, "macro", f->macro);
        json_add_text(j, "expanded_at", f->expanded);
    }
    json_add_text(j, "message", f->text);
    json_close(j);
}

void outcome_print_json(FILE *out, const char *name, const device_facts *f, uint64_t seed,
                        const outcome_list *l, const finding_list *found) {
    json j = output_open_json(out, name, f, seed);
    json_open(&j, "cases", '[');
    for (size_t i = 0; i < l->count; i++)
        add_outcome(&j, &l->items[i]);
    json_close(&j);
    if (found)
        json_open(&j, "findings", '[');
    for (size_t i = 0; found && i < found->count; i++)
        add_finding(&j, &found->items[i]);
    if (found)
        json_close(&j);
    for (outcome_kind k = OUTCOME_PASS; k <= OUTCOME_SKIP; k++)
        json_add_count(&j, get_name(k), count_kind(l, k));
    json_close(&j);
}

/* JUnit --------------------------------------------------------------------------------------- */

/* Characters that XML 1.0 does not have are written as a question mark. */
static void print_xml(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text == '\n')
            fputs("&#10;", out);
        else
            html(out, "%c", *text < 0x20 || *text >= 0x7f ? '?' : *text);
}

static void print_property(FILE *out, const char *name, const char *value) {
    fprintf(out, "      <property name=\"%s\" value=\"", name);
    print_xml(out, value);
    fputs("\"/>\n", out);
}

static void print_case(FILE *out, const outcome *o) {
    fputs("    <testcase classname=\"", out);
    print_xml(out, o->kernel->name);
    fputs("\" name=\"", out);
    print_xml(out, o->name);
    fprintf(out, "\" time=\"%.6f\"", o->seconds);
    if (o->kind == OUTCOME_PASS) {
        fputs("/>\n", out);
        return;
    }
    fputs(">\n      ", out);
    if (o->kind == OUTCOME_SKIP) {
        fputs("<skipped message=\"", out);
        print_xml(out, o->message);
        fputs("\"/>", out);
    } else {
        const char *element = o->kind == OUTCOME_FAIL ? "failure" : "error";
        fprintf(out, "<%s type=\"%s\" message=\"", element,
                o->kind == OUTCOME_FAIL ? "wrong" : "not checked");
        print_xml(out, o->message);
        fputs("\">", out);
        print_xml(out, o->kernel->file);
        fputs(": ", out);
        print_xml(out, o->message);
        fprintf(out, "</%s>", element);
    }
    fputs("\n    </testcase>\n", out);
}

static void print_junit(FILE *out, const char *name, const device_facts *f, const outcome_list *l,
                        double seconds) {
    char host[256] = "", date[32];
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    host_get_date(date, sizeof date);
    date[strcspn(date, "Z")] = 0; /* its schema has no time zones */
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    fprintf(
        out,
        "  <testsuite id=\"0\" package=\"assay\" name=\"assay %s\" timestamp=\"%s\" hostname=\"",
        name, date);
    print_xml(out, host);
    fprintf(out,
            "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
            l->count, count_kind(l, OUTCOME_FAIL), count_kind(l, OUTCOME_ERROR),
            count_kind(l, OUTCOME_SKIP), seconds);
    fputs("    <properties>\n", out);
    print_property(out, "assay", ASSAY_VERSION);
    print_property(out, "device", f->name);
    print_property(out, "compiler", f->compiler);
    fputs("    </properties>\n", out);
    for (size_t i = 0; i < l->count; i++)
        print_case(out, &l->items[i]);
    fputs("    <system-out/>\n    <system-err/>\n  </testsuite>\n</testsuites>\n", out);
}

bool outcome_write_junit(const char *path, const char *name, const device_facts *f,
                         const outcome_list *l, double seconds, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    print_junit(out, name, f, l, seconds);
    fclose(out);
    bool ok = os_write_file(path, text, bytes, e);
    free(text);
    return ok;
}
