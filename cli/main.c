/* main: the table of verbs. The only place that prints errors and exits. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/err.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/device/code_cache.h"
#include "verb.h"

#define ADDRESS(name) &verb_##name,
static const verb *const verbs[] = {VERBS(ADDRESS)};
enum { MAX_VERBS = 32 };
static const verb assay = {.name = "assay",
                           .about = "check, validate, time and explain Metal compute kernels",
                           .verbs = verbs,
                           .verb_count = sizeof verbs / sizeof *verbs};

static void print_verbs(FILE *out, const verb *family) {
    for (size_t i = 0; i < family->verb_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "  %s", family->verbs[i]->name);
        table_print_item(out, 13, name, family->verbs[i]->about);
    }
}

static void print_help(FILE *out) {
    fputs("assay checks, validates, times and explains Metal compute kernels.\n\n"
          "usage: assay VERB [options]\n\n",
          out);
    print_verbs(out, &assay);
    verb_print_lines(
        out,
        "\n"
        "assay help VERB describes a verb and its options; assay --version prints the version;\n"
        "assay --completion bash|zsh|fish prints what makes that shell complete them, and\n"
        "assay --manuals DIR writes the manual pages to a folder.\n\n"
        "environment:\n"
        "  ASSAY_DEVICE    device to use if --device is not given: soft, metal, cuda, auto\n"
        "  ASSAY_KERNELS   folder of .metal files to use instead of the project's kernels/\n"
        "  ASSAY_CLANG     clang that compiles kernels for the software device\n"
        "  ASSAY_HOME      where the program's own files are, if not above it or in share/assay\n"
        "  ASSAY_TUNED     table of the fastest kernels, or off (default "
        "results/<device>/tuned.csv)\n"
        "  NO_COLOR        no colours on terminals\n\n"
        "exit status: 0 fine; 1 a kernel is wrong; 2 bad command line or input; 3 not possible on\n"
        "this machine; 4 slower than the baseline; 5 not enough data to tell; 130 Ctrl-C,\n"
        "143 SIGTERM\n",
        true);
}

/* family: of the verb; of one of assay itself, assay. */
static void print_usage(FILE *out, const verb *family, const verb *v) {
    const bool is_inner = family != &assay;
    option options[OPTIONS_MAX];
    fprintf(out, "usage: assay %s%s%s%s%s%s\n\n", is_inner ? family->name : "", is_inner ? " " : "",
            v->name, v->names ? " " : "", v->names ? v->names : "",
            v->verbs ? " VERB [options]" : " [options]");
    table_print_item(out, 0, "", v->about);
    fputc('\n', out);
    if (v->notes) {
        verb_print_lines(out, v->notes, true);
        fputc('\n', out);
    }
    if (v->verbs)
        print_verbs(out, v);
    else
        options_print_help(out, options, verb_list_options(v, options));
}

static void print_family(FILE *out, const verb *v) {
    if (v == &assay)
        print_help(out);
    else
        print_usage(out, &assay, v);
}

static const verb *find_verb(const verb *family, const char *name, err *e) {
    const char *names[MAX_VERBS];
    char what[32] = "verb", where[64] = "assay help lists them";
    assert(family->verb_count <= MAX_VERBS);
    for (size_t i = 0; i < family->verb_count; i++)
        names[i] = family->verbs[i]->name;
    if (family != &assay) {
        snprintf(what, sizeof what, "verb of %s", family->name);
        snprintf(where, sizeof where, "assay help %s lists them", family->name);
    }
    size_t i = options_find_name(what, name, names, family->verb_count, where, e);
    return i < family->verb_count ? family->verbs[i] : NULL;
}

static exit_code run_verb(const verb *family, const verb *v, int argc, const char **argv, err *e) {
    bool help = false;
    option options[OPTIONS_MAX];
    if (!options_parse(options, verb_list_options(v, options), &argc, argv, &help, e))
        return e->code;
    if (help) {
        print_usage(stdout, family, v);
        return EXIT_OK;
    }
    if (argc > 0 && !v->names)
        return err_code(e, EXIT_USAGE, "%s takes no names, but was given '%.40s'", v->name,
                        argv[0]);
    if (v->runs_ops)
        cache_room_start_log();
    exit_code code = !verb_prepare(v, e) ? e->code
                     : v->names          ? v->run(argv, (size_t)argc, e)
                                         : v->run_alone(e);
    if (v->runs_ops)
        verb_end_compiling();
    return code;
}

static exit_code run_family(const verb *v, int argc, const char **argv, err *e) {
    bool help = argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
    if (argc == 0 || help) {
        print_family(help ? stdout : stderr, v);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    const verb *inner = find_verb(v, argv[0], e);
    return !inner         ? e->code
           : inner->verbs ? run_family(inner, argc - 1, argv + 1, e)
                          : run_verb(v, inner, argc - 1, argv + 1, e);
}

/* `assay help`, `assay help VERB`, `assay help model info`. */
static exit_code help(int count, const char **names, err *e) {
    const verb *family = &assay, *v = &assay;
    int used = 0;
    for (; v && v->verbs && used < count; used++) {
        family = v;
        v = find_verb(family, names[used], e);
    }
    if (v && count > used)
        err_set(e, EXIT_USAGE, "help takes the name of one verb, but was given '%.40s' too",
                names[used]);
    if (!v || count > used)
        return e->code;
    if (v->verbs)
        print_family(stdout, v);
    else
        print_usage(stdout, family, v);
    return EXIT_OK;
}

static exit_code run(int argc, const char **argv, err *e) {
    if (argc < 2)
        return run_family(&assay, 0, argv, e);
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 2, argv + 2, e);
    if (strcmp(argv[1], "--manuals") == 0 && argc == 3)
        return manual_write_all(&assay, argv[2], e) ? EXIT_OK : e->code;
    if (strcmp(argv[1], "--completion") == 0 && argc == 3)
        return completion_print(stdout, argv[2], e) ? EXIT_OK : e->code;
    if (strcmp(argv[1], "--complete") == 0 && argc > 2)
        return completion_answer(stdout, &assay, argv + 2, (size_t)argc - 2, e) ? EXIT_OK : e->code;
    if (strcmp(argv[1], "--version") == 0) {
        puts("assay " ASSAY_VERSION);
        return EXIT_OK;
    }
    return run_family(&assay, argc - 1, argv + 1, e);
}

int main(int argc, char **argv) {
    static err e;
    scratch_start();
    exit_code code = run(argc, (const char **)argv, &e);
    const err *fault = err_get_machine_fault();
    if (code != EXIT_OK && code != EXIT_INTERRUPTED && fault) {
        e = *fault;
        code = EXIT_CANNOT;
    }
    int status = code == EXIT_INTERRUPTED && os_stop_signal ? 128 + (int)os_stop_signal : (int)code;
    err written;
    bool is_written = verb_flush(&written);
    if (e.code == EXIT_CLOSED || (!is_written && written.code == EXIT_CLOSED))
        return EXIT_CLOSED;
    if (e.text[0])
        verb_say("assay: %s", e.text);
    if (!strstr(e.text, e.detail)) /* which may be a list that the sentence has whole */
        verb_print_lines(stderr, e.detail, false);
    if (!is_written)
        verb_say("assay: %s", written.text);
    return is_written || status ? status : EXIT_CANNOT;
}
