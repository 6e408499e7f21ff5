/* completion: see completion.h. What an option takes is told by its kind and by the name of its
 * argument; where that says nothing, the shell completes files. */
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "axes.h"
#include "experiments/experiment.h"
#include "kernels/ops.h"
#include "project/project.h"
#include "runner/gguf/convert.h"

/* Of the weights of Assay's kernels: "f32 f16 q4_0". */
static const char *list_formats(void) {
    static char all[256];
    char one[32], around[40], padded[sizeof all + 2];
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++) {
            const kernel *x = &registry[i]->kernels[k];
            if (!x->format)
                continue;
            axes_get_format(x, one, sizeof one);
            snprintf(around, sizeof around, " %s ", one);
            snprintf(padded, sizeof padded, " %s ", all);
            size_t used = strlen(all);
            if (!strstr(padded, around))
                snprintf(all + used, sizeof all - used, "%s%s", used ? " " : "", one);
        }
    return all;
}

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

/* The words an option takes, or "" where it takes a file, "-" where it takes what cannot be
 * listed. */
static const char *get_words(const option *o) {
    static char types[128];
    bool is_text = o->kind == OPTION_TEXT || o->kind == OPTION_MAYBE || o->kind == OPTION_LIST;
    if (strcmp(option_get_name(o), "format") == 0)
        return list_formats();
    if (strcmp(option_get_name(o), "type") == 0) {
        convert_list_types(types, sizeof types);
        for (char *p = types; (p = strchr(p, ','));)
            memmove(p, p + 1, strlen(p));
        return types;
    }
    if (o->argument && strcmp(o->argument, "yes|no") == 0)
        return "yes no";
    bool is_path = is_text && o->argument &&
                   (strstr(o->argument, "FILE") || strstr(o->argument, "DIR") ||
                    strchr(o->argument, '.') || strcmp(o->argument, "B") == 0);
    const char *words = is_text ? read_words(o) : "";
    return *words ? words : is_path ? "" : "-";
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

static void print_words(FILE *out, const char *words) {
    for (; *words; words += strcspn(words, " "), words += strspn(words, " "))
        fprintf(out, "%.*s\n", (int)strcspn(words, " "), words);
}

static const verb *find(const verb *const *verbs, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
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

bool completion_answer(FILE *out, const verb *const *verbs, size_t count, const char *const *words,
                       size_t word_count, err *e) {
    option options[OPTIONS_MAX];
    size_t at = 0;
    const verb *v = NULL;
    if (word_count > 1 && strcmp(words[0], "help") == 0)
        at++;
    while (at + 1 < word_count && (v = find(verbs, count, words[at])) && v->verbs) {
        verbs = v->verbs;
        count = v->verb_count;
        at++;
    }
    if (at + 1 >= word_count) { /* the word is a verb */
        for (size_t i = 0; i < count; i++)
            fprintf(out, "%s\n", verbs[i]->name);
        return true;
    }
    if (!v)
        return true;
    size_t option_count = verb_list_options(v, options);
    const option *open = find_open(options, option_count, words[word_count - 2]);
    if (open) {
        const char *takes = get_words(open);
        print_words(out, strcmp(takes, "-") == 0 ? "" : takes);
        return true;
    }
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
