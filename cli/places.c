#include "places.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/root.h"
#include "verb.h"

/* Paths --------------------------------------------------------------------------------------- */

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
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    return strncmp(message, name, length) == 0 && message[length] == ':'
               ? atoi(message + length + 1)
               : 0;
}

/* The list ------------------------------------------------------------------------------------ */

static place *add(place_list *l, char *path, int line, int column, bool is_error) {
    place *p = ARRAY_ADD(l->items, l->count, l->room);
    *p = (place){.path = path, .line = line, .column = column, .is_error = is_error};
    assert(path);
    return p;
}

static void set_rule(place *p, const char *name) {
    snprintf(p->rule, sizeof p->rule, "%s", name);
    for (char *c = p->rule; *c; c++)
        *c = *c == ' ' ? '-' : *c;
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

static void print_text(FILE *out, const char *text) {
    json_print_text(out, text, strlen(text));
}

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
    for (size_t i = 0; i < l->count; i++) {
        if (find_rule(l, i) < count)
            continue;
        fputs(count++ ? ",\n" : "\n", out);
        fputs("      {\"id\": ", out);
        print_text(out, l->items[i].rule);
        fputs(", \"shortDescription\": {\"text\": ", out);
        print_text(out, l->items[i].rule);
        fputs("}}", out);
    }
}

/* A path as a URI: what may not stand in one is escaped. */
static void print_uri(FILE *out, const char *path) {
    fputs(path[0] == '/' ? "\"file://" : "\"", out);
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("/._-~", *path))
            fputc(*path, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*path);
    fputc('"', out);
}

static void print_result(FILE *out, const place_list *l, size_t at) {
    const place *p = &l->items[at];
    fprintf(
        out,
        "    {\"ruleId\": \"%s\", \"ruleIndex\": %zu, \"level\": \"%s\", \"message\": {\"text\": ",
        p->rule, find_rule(l, at), p->is_error ? "error" : "warning");
    print_text(out, p->text);
    fputs("},\n     \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", out);
    print_uri(out, p->path);
    fputs(p->path[0] == '/' ? "}" : ", \"uriBaseId\": \"%SRCROOT%\"}", out);
    if (p->line > 0)
        fprintf(out, ", \"region\": {\"startLine\": %d", p->line);
    if (p->line > 0 && p->column > 0)
        fprintf(out, ", \"startColumn\": %d", p->column);
    fputs(p->line > 0 ? "}}}]}" : "}}]}", out);
}

/* "assay/validate/soft/kernels/": GitHub refuses two runs of one category, which is all before the last
 * slash. */
static void print_category(FILE *out, const char *run) {
    char project[PATH_MAX], text[PATH_MAX + 64];
    char *name = root_find_project(project, sizeof project) ? make_relative(project) : NULL;
    bool is_inside = name && name[0] != '/';
    snprintf(text, sizeof text, "assay/%s/%s%s", run, is_inside ? name : "", is_inside ? "/" : "");
    print_text(out, text);
    free(name);
}

static void print_sarif(FILE *out, const char *run, const place_list *l) {
    fputs("{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
          "  \"version\": \"2.1.0\",\n  \"runs\": [{\n"
          "    \"tool\": {\"driver\": {\"name\": \"assay\", \"version\": \"" ASSAY_VERSION
          "\", \"rules\": [",
          out);
    print_rules(out, l);
    fputs("]}},\n    \"automationDetails\": {\"id\": ", out);
    print_category(out, run);
    fputs("},\n    \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [", out);
    for (size_t i = 0; i < l->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        print_result(out, l, i);
    }
    fputs("]\n  }]\n}\n", out);
}

bool places_write_sarif(const char *path, const char *run, const place_list *l, err *e) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    print_sarif(out, run, l);
    fclose(out);
    bool ok = os_write_file(path, text, bytes, e);
    free(text);
    return ok;
}

/* Annotations --------------------------------------------------------------------------------- */

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
        fprintf(out, "::%s file=", p->is_error ? "error" : "warning");
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
