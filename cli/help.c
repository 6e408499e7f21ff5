/* help: the manual pages and the completion of verbs. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "experiments/experiment.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "kernels/formats/formats.h"
#include "kernels/ops.h"
#include "project/project.h"
#include "report/html.h"
#include "runner/gguf/convert.h"
#include "verb.h"

/* Manual pages: plain man(7) macros -------------------------------------------------------------- */

/* Text for troff: hyphens stay hyphens that can be copied, and no line begins with a control
 * character. */
static void escape(FILE *out, const char *text) {
    if (text[0] == '.' || text[0] == '\'')
        fputs("\\&", out);
    for (; *text; text++)
        if (*text == '\\' || *text == '-')
            fputs(*text == '-' ? "\\-" : "\\e", out);
        else
            fputc(*text, out);
}
#define MAN(...) print_escaped(out, escape, __VA_ARGS__)

/* Running text is filled; indented lines (examples, tables) keep their form. */
static void print_notes(FILE *out, const char *text) {
    bool is_form = false;
    for (const char *line = text; *line;) {
        int length = (int)strcspn(line, "\n");
        bool is_indented = line[0] == ' ';
        if (is_indented != is_form)
            fputs(is_indented ? ".PP\n.nf\n" : ".fi\n.PP\n", out);
        is_form = is_indented;
        MAN(length == 0 ? ".PP%.*s\n" : "%.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    if (is_form)
        fputs(".fi\n", out);
}

static void print_options(FILE *out, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    fputs(".SH OPTIONS\n", out);
    for (const option *o = options; o < options + count; o++) {
        if (!o->about)
            continue;
        fputs(".TP\n", out);
        if (option_get_letter(o))
            MAN("\\fB\\-%c\\fR, ", option_get_letter(o));
        MAN("\\fB\\-\\-%s\\fR", option_get_name(o));
        if (o->argument)
            MAN(" \\fI%s\\fR", o->argument);
        fputc('\n', out);
        print_notes(out, o->about);
    }
    fputs(".TP\n\\fB\\-\\-help\\fR\nprint the same as text\n", out);
}

/* title: "assay-model-info" */
static void print_page(FILE *out, const char *title, const verb *v) {
    char words[96], upper[96];
    for (size_t i = 0; i <= strlen(title); i++) {
        words[i] = title[i] == '-' ? ' ' : title[i];
        upper[i] = (char)toupper((unsigned char)title[i]);
    }
    fprintf(out, ".TH %s 1 \"\" \"assay " ASSAY_VERSION "\" \"User Commands\"\n", upper);
    MAN(".SH NAME\n%s \\- %s\n", title, v->about);
    fprintf(out, ".SH SYNOPSIS\n.B %s\n", words);
    if (!strchr(title, '-'))
        fputs("VERB [options]\n.br\n.B assay help\n[VERB]\n.br\n.B assay \\-\\-version\n", out);
    else {
        const char *names = v->verbs ? "VERB" : v->names ? v->names : "";
        MAN(*names ? "%s\n[options]\n" : "%s[options]\n", names);
    }
    if (v->notes) {
        fputs(".SH DESCRIPTION\n", out);
        print_notes(out, v->notes);
    }
    if (v->verbs)
        fputs(".SH VERBS\n", out);
    else
        print_options(out, v);
    for (size_t i = 0; i < v->verb_count; i++)
        MAN(".TP\n.BR %s\\-%s (1)\n%s\n", title, v->verbs[i]->name, v->verbs[i]->about);
    fputs(".SH \"EXIT STATUS\"\n"
          "0 fine; 1 a kernel or model is wrong, or validation or lint found something; 2 bad "
          "command\nline or input; 3 not possible on this machine; 4 slower than the baseline; 5 "
          "not enough data\nto tell; 130 interrupted.\n.SH \"SEE ALSO\"\n.BR assay (1)\n",
          out);
}

/* The page of a verb, and those of its own. */
static bool write_pages(const char *folder, const char *title, const verb *v, err *e) {
    char path[PATH_MAX];
    if (!path_print(path, sizeof path, e, "%s/%s.1", folder, title))
        return false;
    memory_file *text = memory_file_new();
    print_page(text->out, title, v);
    bool ok = memory_file_write(text, path, e);
    for (size_t i = 0; ok && i < v->verb_count; i++) {
        char inner[64];
        snprintf(inner, sizeof inner, "%.30s-%.30s", title, v->verbs[i]->name);
        ok = write_pages(folder, inner, v->verbs[i], e);
    }
    return ok;
}

bool manual_write_all(const verb *all, const char *folder, err *e) {
    return os_make_folder(folder, e) && write_pages(folder, all->name, all, e);
}

/* Completion ------------------------------------------------------------------------------------- */

/* The words that the help of an option lists, "soft, metal, cuda or auto (default ...": each is a word and
 * they are two or more; "" if it has no such list. */
static const char *read_words(const option *o) {
    static char all[256];
    const char *begin = strchr(o->about, ':'), *p;
    size_t used = 0, words = 0;
    all[0] = 0;
    for (p = begin ? begin + 2 : o->about; *p && *p != '('; p += strspn(p, ", ")) {
        size_t length = strcspn(p, ", ");
        bool is_or = length == 2 && strncmp(p, "or", 2) == 0, is_last = p[length] != ',';
        if (!is_or)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s", words++ ? " " : "",
                                     (int)length, p);
        p += length;
        if (is_last && !is_or && *p && strncmp(p, " or ", 4) != 0 && strncmp(p, " (", 2) != 0)
            return "";
    }
    return words > 1 ? all : "";
}

/* The words an option takes; "" where it takes a file, or what cannot be listed. */
static const char *get_words(const option *o) {
#define NAME(format, ...) #format " "
    static const char formats[] = FORMATS(NAME);
    static char types[128];
    if (strcmp(option_get_name(o), "format") == 0)
        return formats;
    if (strcmp(option_get_name(o), "type") == 0) {
        convert_list_types(types, sizeof types);
        return types;
    }
    if (o->argument && strcmp(o->argument, "yes|no") == 0)
        return "yes no";
    bool is_text = o->kind == OPTION_TEXT || o->kind == OPTION_MAYBE || o->kind == OPTION_LIST;
    return is_text ? read_words(o) : "";
}

/* ops and kernels of the project, or experiments. */
static bool print_names(FILE *out, const verb *v, err *e) {
    const char *takes = v->names ? v->names : "";
    if (strcmp(takes, "[NAME...|all]") == 0) {
        for (size_t i = 0; i < experiment_count; i++)
            fprintf(out, "%s\n", experiments[i]->name);
        fputs("all\n", out);
    }
    if (strcmp(takes, "[FILTER...]") != 0 && strcmp(takes, "[NAME...]") != 0)
        return true;
    if (!project_load(e))
        return false;
    for (size_t i = 0; i < registry_count; i++) {
        fprintf(out, "%s\n", registry[i]->name);
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            if (strcmp(registry[i]->kernels[k].name, registry[i]->name) != 0)
                fprintf(out, "%s\n", registry[i]->kernels[k].name);
    }
    return true;
}

const verb *verb_find(const verb *family, const char *name) {
    for (size_t i = 0; i < family->verb_count; i++)
        if (strcmp(family->verbs[i]->name, name) == 0)
            return family->verbs[i];
    return NULL;
}

/* The option that the word before takes its value from; NULL if there is none. */
static const option *find_open(const option *options, size_t count, const char *before) {
    for (size_t i = 0; i < count; i++) {
        const char letter[] = {'-', option_get_letter(&options[i]), 0};
        bool is_it =
            strncmp(before, "--", 2) == 0 && strcmp(before + 2, option_get_name(&options[i])) == 0;
        if (options[i].about && options[i].kind != OPTION_FLAG &&
            (is_it || (letter[1] && strcmp(before, letter) == 0)))
            return &options[i];
    }
    return NULL;
}

bool completion_answer(FILE *out, const verb *all, const char *const *words, size_t word_count,
                       err *e) {
    option options[OPTIONS_MAX];
    size_t at = word_count > 1 && strcmp(words[0], "help") == 0;
    const verb *v = all;
    while (v && v->verbs && at + 1 < word_count)
        v = verb_find(v, words[at++]);
    for (size_t i = 0; v && i < v->verb_count; i++) /* the word is a verb */
        fprintf(out, "%s\n", v->verbs[i]->name);
    if (!v || v->verbs)
        return true;
    size_t option_count = verb_list_options(v, options);
    const option *open = find_open(options, option_count, words[word_count - 2]);
    for (const char *p = open ? get_words(open) : ""; *p;
         p += strcspn(p, ", "), p += strspn(p, ", "))
        fprintf(out, "%.*s\n", (int)strcspn(p, ", "), p);
    if (open)
        return true;
    for (size_t i = 0; i < option_count && words[word_count - 1][0] == '-'; i++)
        if (options[i].about)
            fprintf(out, "--%s\n", option_get_name(&options[i]));
    return words[word_count - 1][0] == '-' || print_names(out, v, e);
}

bool completion_print(FILE *out, const char *shell, err *e) {
    static const char *const scripts[][2] = {
        {"bash", "_assay() {\n"
                 "    local words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\")\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]}\n"
                 "    COMPREPLY=($(compgen -W \"$(assay --complete \"${words[@]}\" 2> /dev/null)\" "
                 "-- \"$word\"; compgen -f -- \"$word\"))\n"
                 "}\n"
                 "complete -o filenames -F _assay assay\n"},
        {"zsh",
         "#compdef assay\n"
         "_assay() {\n"
         "    local -a found\n"
         "    found=(${(f)\"$(assay --complete \"${(@)words[2,CURRENT]}\" 2> /dev/null)\"})\n"
         "    compadd -a found\n"
         "    (( CURRENT > 2 )) && _files\n"
         "}\n"
         "_assay \"$@\"\n"},
        {"fish", "complete -c assay -a '(assay --complete (commandline -opc)[2..-1] "
                 "(commandline -ct) 2> /dev/null)'\n"}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(shell, scripts[i][0]) == 0) {
            fputs(scripts[i][1], out);
            return true;
        }
    return err_set(e, EXIT_USAGE, "completion is for bash, zsh and fish, not '%.40s'", shell);
}
