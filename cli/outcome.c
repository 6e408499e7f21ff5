#include "outcome.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/record.h"
#include "harness/base/root.h"
#include "report/html.h"
#include "verb.h"

static const char *get_name(outcome_kind k) {
    static const char *const names[] = {"pass", "fail", "error", "skip"};
    return names[k];
}

const outcome *outcome_add(outcome_list *l, const kernel_case *c, const case_report *r) {
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
        return o;
    o->kind = result->verdict == CHECK_PASS   ? OUTCOME_PASS
              : result->verdict == CHECK_SKIP ? OUTCOME_SKIP
                                              : OUTCOME_FAIL;
    o->seconds = (double)result->gpu_ns * 1e-9;
    o->has_numbers = o->kind == OUTCOME_PASS || (o->kind == OUTCOME_FAIL && result->buffer[0]);
    o->numbers = result->worst;
    return o;
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
    json j = verb_open_json(out, name, f, seed);
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

/* Characters that XML 1.0 does not have are written as a question mark. */
static void escape_xml(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text == '\n')
            fputs("&#10;", out);
        else
            html(out, "%c", *text < 0x20 || *text >= 0x7f ? '?' : *text);
}
#define XML(...) print_escaped(out, escape_xml, __VA_ARGS__)

static void print_case(FILE *out, const outcome *o) {
    const bool is_wrong = o->kind == OUTCOME_FAIL;
    const char *element = is_wrong ? "failure" : "error";
    XML("    <testcase classname=\"%s\" name=\"%s\" time=\"%.6f\"", o->kernel->name, o->name,
        o->seconds);
    if (o->kind == OUTCOME_PASS)
        fputs("/>\n", out);
    else if (o->kind == OUTCOME_SKIP)
        XML(">\n      <skipped message=\"%s\"/>\n    </testcase>\n", o->message);
    else
        XML(">\n      <%s type=\"%s\" message=\"%s\">%s: %s</%s>\n    </testcase>\n", element,
            is_wrong ? "wrong" : "not checked", o->message, o->kernel->file, o->message, element);
}

static void print_junit(FILE *out, const char *name, const device_facts *f, const outcome_list *l,
                        double seconds) {
    char host[256] = "", date[32];
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    host_get_date(date, sizeof date);
    date[strcspn(date, "Z")] = 0; /* its schema has no time zones */
    XML("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
        "  <testsuite id=\"0\" package=\"assay\" name=\"assay %s\" timestamp=\"%s\" "
        "hostname=\"%s\" "
        "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n"
        "    <properties>\n      <property name=\"assay\" value=\"" ASSAY_VERSION "\"/>\n"
        "      <property name=\"device\" value=\"%s\"/>\n"
        "      <property name=\"compiler\" value=\"%s\"/>\n    </properties>\n",
        name, date, host, l->count, count_kind(l, OUTCOME_FAIL), count_kind(l, OUTCOME_ERROR),
        count_kind(l, OUTCOME_SKIP), seconds, f->name, f->compiler);
    for (size_t i = 0; i < l->count; i++)
        print_case(out, &l->items[i]);
    fputs("    <system-out/>\n    <system-err/>\n  </testsuite>\n</testsuites>\n", out);
}

bool outcome_write_junit(const char *path, const char *name, const device_facts *f,
                         const outcome_list *l, double seconds, err *e) {
    memory_file *text = memory_file_new();
    print_junit(text->out, name, f, l, seconds);
    return memory_file_write(text, path, e);
}

/* Relative to the checkout (GITHUB_WORKSPACE, else the current folder) if it is inside. */
static char *make_relative(const char *path) {
    char real[PATH_MAX], base[PATH_MAX];
    const char *workspace = getenv("GITHUB_WORKSPACE");
    if (!realpath(path, real)) /* a file that is missing is pointed to as well */
        snprintf(real, sizeof real, "%s", path);
    bool has_base = workspace && *workspace ? realpath(workspace, base) != NULL
                                            : getcwd(base, sizeof base) != NULL;
    size_t length = has_base ? strlen(base) : 0;
    bool is_inside = length > 1 && strncmp(real, base, length) == 0 && real[length] == '/';
    return strdup(is_inside ? real + length + 1 : real);
}

/* Of a file of the kernels' folder. */
static char *find_kernel_file(const char *file) {
    char path[PATH_MAX];
    library *lib = library_new(NULL, NULL, NULL);
    bool ok = lib && library_find_path(lib, file, path, sizeof path, NULL);
    library_free(lib);
    return make_relative(ok ? path : file);
}

/* The line on which a function of this name begins: its name, then a parenthesis. 0 if unknown. */
static int find_kernel_line(const char *path, const char *name) {
    char *text = os_read_file(path, NULL, NULL);
    size_t length = strlen(name);
    int line = 1, found = 0;
    for (const char *p = text; p && *p && !found; p++) {
        bool begins = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (begins && strncmp(p, name, length) == 0 && p[length + strspn(p + length, " \t")] == '(')
            found = line;
        line += *p == '\n';
    }
    free(text);
    return found;
}

char *places_find_kernel(const kernel *k, int *line) {
    char *path = find_kernel_file(k->file);
    *line = find_kernel_line(path, k->name);
    return path;
}

/* The line that a message about this file begins with, as "mul.op:10: "; 0 if it has none. */
static int read_line(const char *message, const char *path) {
    const char *name = path_get_name(path);
    size_t length = strlen(name);
    return strncmp(message, name, length) == 0 && message[length] == ':'
               ? atoi(message + length + 1)
               : 0;
}

static place *add(place_list *l, char *path, int line, int column, bool is_error) {
    place *p = ARRAY_ADD(l->items, l->count, l->room);
    *p = (place){
        .path = path, .line = line, .column = column, .level = is_error ? "error" : "warning"};
    assert(path);
    return p;
}

static void set_rule(place *p, const char *name) {
    snprintf(p->rule, sizeof p->rule, "%s", name);
    for (char *c = p->rule; *c; c++)
        *c = *c == ' ' ? '-' : *c;
}

void places_add(place_list *l, const char *path, int line, const char *level, const char *rule,
                const char *text) {
    place *p = add(l, make_relative(path), line, 0, false);
    p->level = level;
    set_rule(p, rule);
    snprintf(p->text, sizeof p->text, "%s", text);
}

finding_list places_fold(const finding_list *found) {
    finding_list folded = {0};
    for (size_t i = 0; i < found->count; i++) {
        finding f = found->items[i];
        f.kernel[strcspn(f.kernel, "/")] = 0;
        finding_add(&folded, &f);
    }
    return folded;
}

void places_add_findings(place_list *l, const finding_list *found, bool is_strict) {
    finding_list folded = places_fold(found);
    for (size_t i = 0; i < folded.count; i++) {
        const finding *f = &folded.items[i];
        place *p =
            add(l, find_kernel_file(f->file), f->line, 0, is_strict || !finding_is_mild(f->what));
        set_rule(p, finding_get_name(f->what));
        snprintf(p->text, sizeof p->text, "%s", f->text);
    }
    finding_free(&folded);
}

void places_add_outcomes(place_list *l, const outcome_list *outcomes) {
    const kernel *last = NULL;
    for (size_t i = 0; i < outcomes->count; i++) {
        const outcome *o = &outcomes->items[i];
        bool is_wrong = o->kind == OUTCOME_FAIL || o->kind == OUTCOME_ERROR;
        if (!is_wrong || o->has_findings || o->is_untried || o->kernel == last)
            continue;
        last = o->kernel;
        int begins;
        char *path = places_find_kernel(o->kernel, &begins);
        int line = read_line(o->message, path);
        place *p = add(l, path, line ? line : begins, 0, true);
        set_rule(p, o->kind == OUTCOME_FAIL ? "wrong" : "not checked");
        snprintf(p->text, sizeof p->text, "%s: %s", o->name, o->message);
    }
}

void places_add_remarks(place_list *l, const remark_list *remarks) {
    for (size_t i = 0; i < remarks->count; i++) {
        const remark *m = &remarks->items[i];
        place *p = add(l, make_relative(m->file), m->line, m->column, m->kind == REMARK_ERROR);
        set_rule(p, m->rule);
        snprintf(p->text, sizeof p->text, "%s", m->text);
    }
}

void places_free(place_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].path);
    free(l->items);
    *l = (place_list){.count = 0};
}

/* SARIF --------------------------------------------------------------------------------------- */

static void escape_json(FILE *out, const char *text) {
    json_print_escaped(out, text, strlen(text));
}
#define SARIF(...) print_escaped(out, escape_json, __VA_ARGS__)

/* Which of the rules it has: each is listed where it first occurs. */
static size_t find_rule(const place_list *l, size_t at) {
    size_t rules = 0;
    for (size_t i = 0; i <= at; i++) {
        size_t first = 0;
        while (strcmp(l->items[first].rule, l->items[i].rule) != 0)
            first++;
        if (strcmp(l->items[i].rule, l->items[at].rule) == 0)
            return rules;
        rules += first == i;
    }
    return rules;
}

static void print_rules(FILE *out, const place_list *l) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        if (find_rule(l, i) == count)
            SARIF("%s\n      {\"id\": \"%s\", \"shortDescription\": {\"text\": \"%s\"}}",
                  count++ ? "," : "", l->items[i].rule, l->items[i].rule);
}

static void print_result(FILE *out, const place_list *l, size_t at) {
    const place *p = &l->items[at];
    SARIF("%s\n    {\"ruleId\": \"%s\", \"ruleIndex\": %zu, \"level\": \"%s\", \"message\": "
          "{\"text\": "
          "\"%s\"},\n     \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": "
          "\"%s",
          at ? "," : "", p->rule, find_rule(l, at), p->level, p->text,
          p->path[0] == '/' ? "file://" : "");
    html_print_address(out, p->path);
    fputs(p->path[0] == '/' ? "\"}" : "\", \"uriBaseId\": \"%SRCROOT%\"}", out);
    if (p->line > 0)
        fprintf(out, ", \"region\": {\"startLine\": %d", p->line);
    if (p->line > 0 && p->column > 0)
        fprintf(out, ", \"startColumn\": %d", p->column);
    fputs(p->line > 0 ? "}}}]}" : "}}]}", out);
}

/* GitHub refuses two runs of one category, which is all before the last slash: "assay/validate/soft/kernels/". */
static void print_sarif(FILE *out, const char *run, const place_list *l) {
    char project[PATH_MAX];
    char *name = root_find_project(project, sizeof project) ? make_relative(project) : NULL;
    bool is_inside = name && name[0] != '/';
    fputs("{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
          "  \"version\": \"2.1.0\",\n  \"runs\": [{\n"
          "    \"tool\": {\"driver\": {\"name\": \"assay\", \"version\": \"" ASSAY_VERSION
          "\", \"rules\": [",
          out);
    print_rules(out, l);
    SARIF("]}},\n    \"automationDetails\": {\"id\": \"assay/%s/%s%s\"},\n"
          "    \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [",
          run, is_inside ? name : "", is_inside ? "/" : "");
    for (size_t i = 0; i < l->count; i++)
        print_result(out, l, i);
    fputs("]\n  }]\n}\n", out);
    free(name);
}

bool places_write_sarif(const char *path, const char *run, const place_list *l, err *e) {
    memory_file *text = memory_file_new();
    print_sarif(text->out, run, l);
    return memory_file_write(text, path, e);
}

/* A line of GitHub's log commands: % and line ends are escaped, in properties , and : too. */
static void print_command(FILE *out, const char *text, bool is_property) {
    for (; *text; text++)
        if (*text == '%' || *text == '\n' || *text == '\r' ||
            (is_property && (*text == ',' || *text == ':')))
            fprintf(out, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, out);
}

void places_annotate(FILE *out, const place_list *l) {
    const char *actions = getenv("GITHUB_ACTIONS");
    if (!actions || strcmp(actions, "true") != 0)
        return;
    for (size_t i = 0; i < l->count; i++) {
        const place *p = &l->items[i];
        fprintf(out, "::%s file=", strcmp(p->level, "note") == 0 ? "notice" : p->level);
        print_command(out, p->path, true);
        if (p->line > 0)
            fprintf(out, ",line=%d", p->line);
        if (p->line > 0 && p->column > 0)
            fprintf(out, ",col=%d", p->column);
        fputs(",title=assay ", out);
        print_command(out, p->rule, true);
        fputs("::", out);
        print_command(out, p->text, false);
        fputc('\n', out);
    }
}
