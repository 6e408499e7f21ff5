/* manual: see manual.h. Plain man(7) macros. */
#include "manual.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/base/path.h"

/* Text for troff: hyphens stay hyphens that can be copied, and no line begins with a control
 * character. */
static void print_text(FILE *out, const char *text, size_t length) {
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
}

static void print_word(FILE *out, const char *text) {
    print_text(out, text, strlen(text));
}

/* Running text is filled; indented lines (examples, tables) keep their form. */
static void print_notes(FILE *out, const char *text) {
    bool is_form = false;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        bool is_indented = line[0] == ' ';
        if (is_indented != is_form)
            fputs(is_indented ? ".PP\n.nf\n" : ".fi\n.PP\n", out);
        is_form = is_indented;
        if (length == 0)
            fputs(".PP", out);
        print_text(out, line, length);
        fputc('\n', out);
        line += length + (line[length] == '\n');
    }
    if (is_form)
        fputs(".fi\n", out);
}

static void print_head(FILE *out, const char *title, const char *about) {
    fputs(".TH ", out);
    for (const char *p = title; *p; p++)
        fputc(toupper((unsigned char)*p), out);
    fprintf(out, " 1 \"\" \"assay %s\" \"User Commands\"\n.SH NAME\n", ASSAY_VERSION);
    print_word(out, title);
    fputs(" \\- ", out);
    print_word(out, about);
    fputc('\n', out);
}

static void print_options(FILE *out, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < count; i++) {
        const option *o = &options[i];
        if (!o->about)
            continue;
        fputs(".TP\n", out);
        if (option_get_letter(o))
            fprintf(out, "\\fB\\-%c\\fR, ", option_get_letter(o));
        fputs("\\fB\\-\\-", out);
        print_word(out, option_get_name(o));
        fputs("\\fR", out);
        if (o->argument) {
            fputs(" \\fI", out);
            print_word(out, o->argument);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        print_notes(out, o->about);
    }
    fputs(".TP\n\\fB\\-\\-help\\fR\nprint the same as text\n", out);
}

static void print_verbs(FILE *out, const char *family, const verb *const *verbs, size_t count) {
    fputs(".SH VERBS\n", out);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n.BR ", out);
        print_word(out, family);
        print_word(out, verbs[i]->name);
        fputs(" (1)\n", out);
        print_word(out, verbs[i]->about);
        fputc('\n', out);
    }
}

static void print_end(FILE *out) {
    fputs(".SH \"EXIT STATUS\"\n"
          "0 fine; 1 a kernel or model is wrong, or validation or lint found something; 2 bad "
          "command\nline or input; 3 not possible on this machine; 4 slower than the baseline; 5 "
          "not enough data\nto tell; 130 interrupted.\n.SH \"SEE ALSO\"\n.BR assay (1)\n",
          out);
}

/* title: "assay-model-info" */
static void print_verb(FILE *out, const char *title, const verb *v) {
    char words[96], family[96];
    snprintf(words, sizeof words, "%s", title);
    for (char *p = words; *p; p++)
        *p = *p == '-' ? ' ' : *p;
    print_head(out, title, v->about);
    fprintf(out, ".SH SYNOPSIS\n.B %s\n", words);
    print_word(out, v->verbs ? "VERB" : v->names ? v->names : "");
    fputs(v->verbs || v->names ? "\n[options]\n" : "[options]\n", out);
    if (v->notes) {
        fputs(".SH DESCRIPTION\n", out);
        print_notes(out, v->notes);
    }
    snprintf(family, sizeof family, "%.90s-", title);
    if (v->verbs)
        print_verbs(out, family, v->verbs, v->verb_count);
    else
        print_options(out, v);
    print_end(out);
}

static void print_assay(FILE *out, const verb *const *verbs, size_t count) {
    print_head(out, "assay", "check, validate, time and explain Metal compute kernels");
    fputs(".SH SYNOPSIS\n.B assay\nVERB [options]\n.br\n.B assay help\n[VERB]\n.br\n.B assay "
          "\\-\\-version\n",
          out);
    print_verbs(out, "assay-", verbs, count);
    print_end(out);
}

/* verbs: those of all of assay, when v is NULL. */
static bool write_page(const char *folder, const char *title, const verb *v,
                       const verb *const *verbs, size_t count, err *e) {
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    if (v)
        print_verb(out, title, v);
    else
        print_assay(out, verbs, count);
    fclose(out);
    bool ok = path_print(path, sizeof path, e, "%s/%s.1", folder, title) &&
              os_write_file(path, text, bytes, e);
    free(text);
    return ok;
}

static bool write_verbs(const char *folder, const char *prefix, const verb *const *verbs,
                        size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        char title[64];
        snprintf(title, sizeof title, "%.30s-%.30s", prefix, verbs[i]->name);
        if (!write_page(folder, title, verbs[i], NULL, 0, e) ||
            !write_verbs(folder, title, verbs[i]->verbs, verbs[i]->verb_count, e))
            return false;
    }
    return true;
}

bool manual_write_all(const verb *const *verbs, size_t count, const char *folder, err *e) {
    return os_make_folder(folder, e) && write_page(folder, "assay", NULL, verbs, count, e) &&
           write_verbs(folder, "assay", verbs, count, e);
}
