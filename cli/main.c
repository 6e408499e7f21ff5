/* main: the table of verbs. The only place that prints errors and exits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/err.h"
#include "verb.h"

static const verb *const verbs[] = {&verb_info,    &verb_list,   &verb_check, &verb_validate,
                                    &verb_mutants, &verb_launch, &verb_lint,
                                    &verb_bench,   &verb_compare};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static void print_help(FILE *out) {
    fputs("assay checks, validates, times and explains Metal compute kernels.\n\n"
          "usage: assay VERB [options]\n\n",
          out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-10s %s\n", verbs[i]->name, verbs[i]->about);
    fputs(
        "\n"
        "  assay VERB --help says what a verb takes; assay --version says which assay this is.\n\n"
        "environment:\n"
        "  ASSAY_DEVICE    device to use where --device is not given: soft, metal, cuda, auto\n"
        "  ASSAY_KERNELS   folder of .metal files to use in place of the project's kernels/\n"
        "  ASSAY_CLANG     clang that the software device compiles kernels with\n"
        "  ASSAY_HOME      the project's root, where it is not above the program\n"
        "  NO_COLOR        no colours on terminals\n\n"
        "exit status: 0 fine; 1 a kernel is wrong; 2 the command line is; 3 this machine cannot;\n"
        "  4 slower than the baseline; 5 not enough data to say\n",
        out);
}

static void print_verb_help(FILE *out, const verb *v) {
    fprintf(out, "usage: assay %s%s%s [options]\n\n%s\n\n", v->name, v->names ? " " : "",
            v->names ? v->names : "", v->about);
    if (v->notes)
        fprintf(out, "%s\n", v->notes);
    options_print_help(out, v->options, v->option_count);
}

static const verb *find_verb(const char *name, err *e) {
    const char *names[VERB_COUNT];
    char valid[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
        names[i] = verbs[i]->name;
        used += (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "",
                                 verbs[i]->name);
    }
    const char *nearest = options_find_nearest(name, names, VERB_COUNT);
    if (nearest)
        err_set(e, EXIT_USAGE, "no verb '%.40s'; did you mean '%s'? (valid: %s)", name, nearest,
                valid);
    else
        err_set(e, EXIT_USAGE, "no verb '%.40s' (valid: %s)", name, valid);
    return NULL;
}

static exit_code run_verb(const verb *v, int argc, const char **argv, err *e) {
    bool help = false;
    if (!options_parse(v->options, v->option_count, &argc, argv, &help, e))
        return e->code;
    if (help) {
        print_verb_help(stdout, v);
        return EXIT_OK;
    }
    if (argc > 0 && !v->names) {
        err_set(e, EXIT_USAGE, "%s takes no names, but was given '%.40s'", v->name, argv[0]);
        return e->code;
    }
    return v->run(argv, (size_t)argc, e);
}

static exit_code run(int argc, const char **argv, err *e) {
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("assay " ASSAY_VERSION);
        return EXIT_OK;
    }
    const verb *v = find_verb(argv[1], e);
    return v ? run_verb(v, argc - 2, argv + 2, e) : e->code;
}

int main(int argc, char **argv) {
    static err e;
    exit_code code = run(argc, (const char **)argv, &e);
    if (e.text[0])
        fprintf(stderr, "assay: %s\n", e.text);
    if (e.detail[0])
        fprintf(stderr, "%s%s", e.detail, e.detail[strlen(e.detail) - 1] == '\n' ? "" : "\n");
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("assay: cannot write the output");
        return code ? (int)code : EXIT_CANNOT;
    }
    return (int)code;
}
