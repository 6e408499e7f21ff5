/* completion: see completion.h. What an option takes is told by its kind and by the name of its
 * argument; where that says nothing, files are completed. */
#include "completion.h"

#include <string.h>

#include "axes.h"
#include "experiments/experiment.h"
#include "harness/device/msl/msl.h"
#include "kernels/ops.h"
#include "project/project.h"

typedef void (*verb_printer)(FILE *out, const verb *family, const verb *v);

/* Calls print for each verb that has options, those of families included. */
static void each_verb(FILE *out, const verb *const *verbs, size_t count, const verb *family,
                      verb_printer print) {
    for (size_t i = 0; i < count; i++)
        if (verbs[i]->verbs)
            each_verb(out, verbs[i]->verbs, verbs[i]->verb_count, verbs[i], print);
        else
            print(out, family, verbs[i]);
}

static void print_names(FILE *out, const verb *const *verbs, size_t count) {
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? " " : "", verbs[i]->name);
}

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

static const char *list_languages(void) {
    static char all[MSL_LANGUAGES * (MSL_LANGUAGE_TEXT + 1)];
    size_t used = 0;
    for (size_t i = 0; i < MSL_LANGUAGES; i++) {
        char one[MSL_LANGUAGE_TEXT];
        msl_spell_language(msl_languages[i], one);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? " " : "", one);
    }
    return all;
}

/* The words an option takes, or "" where it takes a file, "-" where it takes what cannot be
 * listed. */
static const char *get_words(const option *o) {
    static const char *const words[][2] = {
        {"device", "soft metal cuda auto"},
        {"input", "uniform normal zeros denormals large negative"},
        {"regime", "single chained independent all"},
        {"cache", "warm cold all"},
        {"math", "safe relaxed fast"},
        {"accumulate", "yes no"},
        {"clock", "gpu encode wall"},
        {"output", "md csv json jsonl sql"},
        {"type", "q4_0 q4_1 q5_0 q5_1 q8_0 q4_k q5_k q6_k f16 f32"},
    };
    bool is_text = o->kind == OPTION_TEXT || o->kind == OPTION_MAYBE || o->kind == OPTION_LIST;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(option_get_name(o), words[i][0]) == 0 && is_text)
            return words[i][1];
    if (strcmp(option_get_name(o), "format") == 0)
        return list_formats();
    if (strcmp(option_get_name(o), "language") == 0)
        return list_languages();
    bool is_path = is_text && o->argument &&
                   (strstr(o->argument, "FILE") || strstr(o->argument, "DIR") ||
                    strchr(o->argument, '.') || strcmp(o->argument, "B") == 0);
    return is_path ? "" : "-";
}

static bool takes_experiments(const verb *v) {
    return v->names && strcmp(v->names, "[NAME...|all]") == 0;
}

static bool takes_ops(const verb *v) {
    return v->names && (strcmp(v->names, "[FILTER...]") == 0 || strcmp(v->names, "[NAME...]") == 0);
}

bool completion_print_names(FILE *out, const verb *v, err *e) {
    if (takes_experiments(v)) {
        for (size_t i = 0; i < experiment_count; i++)
            fprintf(out, "%s\n", experiments[i]->name);
        fputs("all\n", out);
    }
    if (!takes_ops(v))
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

/* A description inside '...' of a shell, without a line end. */
static void print_quoted(FILE *out, const char *text) {
    for (size_t i = 0; text[i]; i++)
        if (text[i] == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:", text[i]))
            fprintf(out, "\\%c", text[i]);
        else
            fputc(text[i] == '\n' ? ' ' : text[i], out);
}

/* bash ---------------------------------------------------------------------------------------- */

static void print_bash_verb(FILE *out, const verb *family, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    fprintf(out, "    '%s%s%s') options='", family ? family->name : "", family ? " " : "", v->name);
    for (size_t i = 0; i < count; i++)
        if (options[i].about)
            fprintf(out, "--%s ", option_get_name(&options[i]));
    fputs("--help' ;;\n", out);
}

static void print_bash_words(FILE *out, const verb *family, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    for (size_t i = 0; i < count; i++) {
        const option *o = &options[i];
        if (!o->about || o->kind == OPTION_FLAG)
            continue;
        fprintf(out, "    '%s%s%s --%s') words='%s' ;;\n", family ? family->name : "",
                family ? " " : "", v->name, option_get_name(o), get_words(o));
    }
}

static void print_bash(FILE *out, const verb *const *verbs, size_t count) {
    fputs("# bash completion of assay\n"
          "_assay() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local verb=${COMP_WORDS[1]} first=2 options='' words='none' verbs=''\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_names(out, verbs, count);
    fputs(" help --help --version' -- \"$word\"))\n        return\n    fi\n"
          "    case $verb in\n",
          out);
    for (size_t i = 0; i < count; i++)
        if (verbs[i]->verbs) {
            fprintf(out, "    %s) verbs='", verbs[i]->name);
            print_names(out, verbs[i]->verbs, verbs[i]->verb_count);
            fputs("' ;;\n", out);
        }
    fputs("    help) verbs='", out);
    print_names(out, verbs, count);
    fputs("' ;;\n    esac\n"
          "    if [ -n \"$verbs\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
          "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\"))\n        return\n    fi\n"
          "    if [ -n \"$verbs\" ]; then verb=\"$verb ${COMP_WORDS[2]}\"; fi\n"
          "    case \"$verb $before\" in\n",
          out);
    each_verb(out, verbs, count, NULL, print_bash_words);
    fputs("    esac\n"
          "    case $words in\n"
          "    none) ;;\n"
          "    '') COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
          "    -) return ;;\n"
          "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); return ;;\n"
          "    esac\n"
          "    case $verb in\n",
          out);
    each_verb(out, verbs, count, NULL, print_bash_verb);
    fputs("    esac\n"
          "    case $word in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
          "    *) COMPREPLY=($(compgen -W \"$(assay --names \"$verb\" 2> /dev/null)\" -- "
          "\"$word\"; compgen -f -- \"$word\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -o filenames -F _assay assay\n",
          out);
}

/* zsh ----------------------------------------------------------------------------------------- */

static void print_zsh_verb(FILE *out, const verb *family, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    fprintf(out, "    '%s%s%s') _arguments", family ? family->name : "", family ? " " : "",
            v->name);
    for (size_t i = 0; i < count; i++) {
        const option *o = &options[i];
        if (!o->about)
            continue;
        fprintf(out, " \\\n        '%s--%s[", o->kind == OPTION_LIST ? "*" : "",
                option_get_name(o));
        print_quoted(out, o->about);
        fputc(']', out);
        if (o->kind != OPTION_FLAG) {
            const char *words = get_words(o);
            fputc(':', out);
            print_quoted(out, o->argument);
            if (!*words)
                fputs(":_files", out);
            else if (*words != '-')
                fprintf(out, ":(%s)", words);
            else
                fputs(": ", out);
        }
        fputc('\'', out);
    }
    fprintf(out,
            " \\\n        '--help[describe the verb]' '*:name:_alternative "
            "\"names:name:($(assay --names %s 2> /dev/null))\" \"files:file:_files\"' ;;\n",
            v->name);
}

static void print_zsh_described(FILE *out, const verb *const *verbs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fprintf(out, " '%s:", verbs[i]->name);
        print_quoted(out, verbs[i]->about);
        fputc('\'', out);
    }
}

static void print_zsh(FILE *out, const verb *const *verbs, size_t count) {
    fputs("#compdef assay\n"
          "_assay() {\n"
          "    local -a verbs\n"
          "    local verb=$words[2]\n"
          "    if (( CURRENT == 2 )); then\n"
          "        verbs=(",
          out);
    print_zsh_described(out, verbs, count);
    fputs(")\n        _describe verb verbs\n        return\n    fi\n    case $verb in\n", out);
    for (size_t i = 0; i < count; i++)
        if (verbs[i]->verbs) {
            fprintf(out, "    %s) verbs=(", verbs[i]->name);
            print_zsh_described(out, verbs[i]->verbs, verbs[i]->verb_count);
            fputs(") ;;\n", out);
        }
    fputs("    esac\n"
          "    if (( $#verbs )); then\n"
          "        if (( CURRENT == 3 )); then _describe verb verbs; return; fi\n"
          "        verb=\"$verb $words[3]\"\n"
          "    fi\n"
          "    case $verb in\n",
          out);
    each_verb(out, verbs, count, NULL, print_zsh_verb);
    fputs("    esac\n}\n_assay \"$@\"\n", out);
}

/* fish ---------------------------------------------------------------------------------------- */

/* fish takes a backslash and a quote in '...' with a backslash before them, and nothing else. */
static void print_fish_text(FILE *out, const char *text) {
    for (size_t i = 0; text[i]; i++)
        if (text[i] == '\'' || text[i] == '\\')
            fprintf(out, "\\%c", text[i]);
        else
            fputc(text[i] == '\n' ? ' ' : text[i], out);
}

static void print_fish_name(FILE *out, const verb *family, const verb *v) {
    fprintf(out, "complete -c assay -n '%s%s%s' -f -a %s -d '",
            family ? "__fish_seen_subcommand_from " : "__fish_use_subcommand",
            family ? family->name : "", "", v->name);
    print_fish_text(out, v->about);
    fputs("'\n", out);
}

static void print_fish_verb(FILE *out, const verb *family, const verb *v) {
    option options[OPTIONS_MAX];
    size_t count = verb_list_options(v, options);
    if (family)
        print_fish_name(out, family, v);
    if (takes_ops(v) || takes_experiments(v))
        fprintf(out,
                "complete -c assay -n '__fish_seen_subcommand_from %s' -a '(assay --names %s 2> "
                "/dev/null)'\n",
                v->name, v->name);
    for (size_t i = 0; i < count; i++) {
        const option *o = &options[i];
        if (!o->about)
            continue;
        fprintf(out, "complete -c assay -n '%s%s%s__fish_seen_subcommand_from %s' -l %s",
                family ? "__fish_seen_subcommand_from " : "", family ? family->name : "",
                family ? "; and " : "", v->name, option_get_name(o));
        if (option_get_letter(o))
            fprintf(out, " -s %c", option_get_letter(o));
        if (o->kind != OPTION_FLAG) {
            const char *words = get_words(o);
            fputs(!*words ? " -r -F" : " -x", out);
            if (*words && *words != '-')
                fprintf(out, " -a '%s'", words);
        }
        fputs(" -d '", out);
        print_fish_text(out, o->about);
        fputs("'\n", out);
    }
}

static void print_fish(FILE *out, const verb *const *verbs, size_t count) {
    fputs("# fish completion of assay\n", out);
    for (size_t i = 0; i < count; i++)
        print_fish_name(out, NULL, verbs[i]);
    each_verb(out, verbs, count, NULL, print_fish_verb);
}

bool completion_print(FILE *out, const verb *const *verbs, size_t count, const char *shell,
                      err *e) {
    if (strcmp(shell, "bash") == 0)
        print_bash(out, verbs, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out, verbs, count);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out, verbs, count);
    else
        return err_set(e, EXIT_USAGE, "completion is for bash, zsh and fish, not '%.40s'", shell);
    return true;
}
