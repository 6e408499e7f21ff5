/* Tests of README.md, CONTRIBUTING.md and docs/: commands, lists and links agree with the program and
 * with the files. docs_commands.awk and docs_links.awk read them. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

SUITE(docs_suite);

#define TEXTS "README.md CONTRIBUTING.md docs/*.md"
#define COMMANDS "cd \"$H\" && awk -f tests/docs_commands.awk " TEXTS
#define FAIL_WITH(...)                                                                             \
    do {                                                                                           \
        static char why_[4096];                                                                    \
        snprintf(why_, sizeof why_, __VA_ARGS__);                                                  \
        FAILm(why_);                                                                               \
    } while (0)

typedef struct {
    char *text; /* all of them; the others point into it */
    const char *place, *kind, *program, *rest;
    char *next;
} command;

/* The next line of docs_commands.awk: four fields. */
static bool next_command(command *c) {
    char *line = c->next, *end = line ? strchr(line, '\n') : NULL;
    if (!end)
        return false;
    *end = 0;
    c->next = end + 1;
    const char **fields[] = {&c->place, &c->kind, &c->program, &c->rest};
    for (size_t i = 0; i < 4; i++) {
        *fields[i] = line;
        line += strcspn(line, "\t");
        if (*line)
            *line++ = 0;
    }
    return true;
}

/* Options are read in order and --help ends the reading: what comes before it has been parsed. */
static int try_assay(const char *rest) {
    char line[2048];
    bool has_help = strncmp(rest, "help", 4) == 0 || strncmp(rest, "--", 2) == 0;
    snprintf(line, sizeof line, "mkdir -p \"$T\" && cd \"$T\" && \"$A\" %s%s", rest,
             has_help ? "" : " --help");
    return command_run(line);
}

static int try_make(const char *word) {
    char line[512];
    int length = (int)strcspn(word, "=");
    if (word[length])
        snprintf(line, sizeof line,
                 "grep -Eq '^%.*s *[:?]?=|[$][(](or [$][(])?%.*s[,)]' \"$H\"/Makefile", length,
                 word, length, word);
    else
        snprintf(line, sizeof line, "grep -Eq '^([a-z-]+ )*%s( [a-z-]+)*:' \"$H\"/Makefile", word);
    return command_run(line);
}

TEST every_command_has_verbs_options_and_targets_that_exist(void) {
    ASSERT_RUN(COMMANDS, 0);
    command c = {.text = strdup(command_get_output())};
    size_t blocks = 0, spans = 0;
    for (c.next = c.text; next_command(&c);) {
        bool is_assay = strcmp(c.program, "assay") == 0;
        if (is_assay ? try_assay(c.rest) != 0 || (!command_says("usage: ") && !strstr(c.rest, "--"))
                     : try_make(c.rest) != 0)
            FAIL_WITH("%s: %s %s: %.2000s", c.place, c.program, c.rest, command_get_output());
        *(strcmp(c.kind, "block") == 0 ? &blocks : &spans) += 1;
    }
    free(c.text);
    ASSERT(blocks > 40 && spans > 60); /* the docs have them; fewer were found */
    PASS();
}

/* Those that need no GPU, no download and no minutes are run as they stand. `kernels` is a new project, and
 * the other folders are those of the source tree. */
static const char *const run[] = {
    "check buffer_copy",
    "experiment",
    "info",
    "init my_kernels",
    "list",
    "lint -C kernels --sarif lint.sarif",
    "model info FILE",
    "results results/nvidia-h200",
    "tune --list -m model.gguf",
};
enum { RUN_COUNT = sizeof run / sizeof *run };

TEST commands_that_need_neither_a_GPU_nor_minutes_run(void) {
    ASSERT_RUN("rm -rf \"$T\" && mkdir -p \"$T\" && cd \"$T\" && \"$A\" init kernels && "
               "ln -s \"$H\"/results \"$H\"/models . && cp models/assay-tiny.gguf model.gguf && "
               "cp model.gguf FILE",
               0);
    ASSERT_RUN(COMMANDS, 0);
    command c = {.text = strdup(command_get_output())};
    bool done[RUN_COUNT] = {false};
    for (c.next = c.text; next_command(&c);)
        for (size_t i = 0; i < RUN_COUNT; i++) {
            if (done[i] || strcmp(c.rest, run[i]) != 0)
                continue;
            char line[1024];
            snprintf(line, sizeof line, "cd \"$T\" && ASSAY_DEVICE=soft \"$A\" %s", c.rest);
            if (command_run(line) != 0)
                FAIL_WITH("%s: assay %s: %.2000s", c.place, c.rest, command_get_output());
            done[i] = true;
        }
    free(c.text);
    for (size_t i = 0; i < RUN_COUNT; i++)
        ASSERTm(run[i], done[i]); /* no longer in the docs: take its row away */
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

/* Two lists, sorted, must be equal; what differs is printed. */
#define SAME(program, docs)                                                                        \
    "mkdir -p \"$T\" && cd \"$H\" && { " program "; } | sort -u > \"$T\"/program && { " docs       \
    "; } | sort -u > \"$T\"/docs && test -s \"$T\"/program && diff \"$T\"/program \"$T\"/docs"

/* The first cells of the table whose head begins with a word. */
#define FIRST_CELLS(head, file)                                                                    \
    "awk -F '|' '!/^[|]/ {on = 0} on && !/^[|]--/ {print $2} /^[|] " head " [|]/ {on = 1}' " file

TEST experiments_of_the_docs_are_those_of_the_program(void) {
    ASSERT_RUN(SAME("\"$A\" experiment | awk '{print $1}'",
                    FIRST_CELLS("experiment", "docs/experiments.md") " | tr -d ' `'"),
               0);
    ASSERT_RUN(COMMANDS
               " | awk -F '\t' '$3 == \"assay\" {print $4}' | awk '$1 == \"experiment\" && "
               "$2 ~ /^[a-z]/ && $2 != \"all\" {print $2}' | sort -u | comm -23 - "
               "\"$T\"/program | grep . && exit 1; true",
               0);
    PASS();
}

TEST verbs_of_the_readme_are_those_of_the_program(void) {
    ASSERT_RUN(SAME("\"$A\" help | awk '/assay help/ {exit} /^  [a-z]/ {print $1}'",
                    FIRST_CELLS("verb", "README.md") " | tr '`' '\\n' | awk '/^[a-z]/ {print $1}'"),
               0);
    PASS();
}

TEST output_formats_of_model_bench_are_those_of_the_docs(void) {
    ASSERT_RUN(
        "[ \"$(sed -n 's/.*`-o \\([a-z|]*\\)`.*/\\1/p' \"$H\"/docs/models.md | tr '|' '\\n')\" = "
        "\"$(\"$A\" --complete model bench --output '')\" ]",
        0);
    PASS();
}

TEST a_description_takes_as_many_dims_as_the_docs_say(void) {
    ASSERT_RUN("sed -n 's/^| `dims NAME\\.\\.\\.`.*at most \\([0-9]*\\).*/\\1/p' "
               "\"$H\"/docs/your-kernels.md",
               0);
    int most = atoi(command_get_output());
    ASSERT(most > 0);
    for (int count = most; count <= most + 1; count++) {
        char line[512];
        snprintf(
            line, sizeof line,
            "rm -rf \"$T\" && \"$A\" init \"$T\" > /dev/null && cd \"$T\" && d='' && s=1 && for i "
            "in "
            "$(seq 2 %d); do d=\"$d d$i\"; s=${s}x1; done && sed -i.old \"s/^dims.*/dims n$d/; "
            "s/^shapes.*/shapes $s/; s/^inputs.*/inputs $s/\" softcap.op && \"$A\" list",
            count);
        int status = command_run(line);
        ASSERT_EQm(command_get_output(), count == most, status == 0 && !command_says("up to"));
    }
    PASS();
}

/* Variables by which processes of one run tell each other something are not for users, and are not
 * spelled in the call. */
TEST environment_variables_of_the_docs_are_those_that_the_code_reads(void) {
    ASSERT_RUN(
        SAME("grep -rhoE 'getenv\\(\"[A-Z_]+\"' --include=*.[chm] cli experiments harness "
             "kernels project report runner | cut -d '\"' -f 2",
             "sed '/^## What/,$d' docs/environment.md | grep -oE '`[A-Z][A-Z_]+`' | tr -d '`'"),
        0);
    PASS();
}

TEST every_relative_link_leads_to_a_file_and_a_heading(void) {
    ASSERT_RUN("cd \"$H\" && t=\"" TEXTS
               " models/README.md\" && awk -f tests/docs_links.awk $t pass=2 $t",
               0);
    ASSERTm(command_get_output(), !command_says("there is no"));
    ASSERT(atoi(command_get_output()) > 50);
    PASS();
}

/* Of one model: decoding and a prompt of 512 by Assay, then by llama.cpp, as `words` has them. */
#define SPEEDS(model, words)                                                                       \
    "cd \"$H\" && text=$(awk -F, -v model=" model                                                  \
    " 'function say(x) { x = sprintf(\"%.0f\", x); sub(/...$/, \",&\", x); sub(/^,/, \"\", x); "   \
    "return x } $1 == model && $3 == \"tg64\" { a = say($6); c = say($4) } "                       \
    "$1 == model && $3 == \"pp512\" { b = say($5); d = say($4) } "                                 \
    "END { printf \"" words "\", a, b, c, d }' results/nvidia-h200/rivals.csv) && "                \
    "{ grep -F \"$text\" README.md || { echo \"the README does not say: $text\"; false; }; }"
TEST speeds_of_the_readme_are_those_that_are_stored(void) {
    ASSERT_RUN(SPEEDS("smollm-135m-q4_0", "%s tok/s decoding, %s reading a prompt of 512; "
                                          "llama.cpp %s and %s"),
               0);
    ASSERT_RUN(SPEEDS("7b-q4_0", "7B: %s and %s (%s and %s)"), 0);
    ASSERT_RUN("cd \"$H\" && cases=$(awk '$2 == \"check-fast\" { print $4 }' "
               "results/nvidia-h200/measured.txt | sed 's/...$/,&/') && "
               "grep -F \"$cases cases pass on an H200\" README.md",
               0);
    ASSERT_RUN("cd \"$H\" && commit=$(sed -n 's/^commit //p' results/nvidia-h200/measured.txt) && "
               "grep -F \"(commit ${commit%% *})\" README.md",
               0);
    PASS();
}

SUITE(docs_suite) {
    RUN_TEST(every_command_has_verbs_options_and_targets_that_exist);
    RUN_TEST(commands_that_need_neither_a_GPU_nor_minutes_run);
    RUN_TEST(experiments_of_the_docs_are_those_of_the_program);
    RUN_TEST(verbs_of_the_readme_are_those_of_the_program);
    RUN_TEST(output_formats_of_model_bench_are_those_of_the_docs);
    RUN_TEST(a_description_takes_as_many_dims_as_the_docs_say);
    RUN_TEST(environment_variables_of_the_docs_are_those_that_the_code_reads);
    RUN_TEST(every_relative_link_leads_to_a_file_and_a_heading);
    RUN_TEST(speeds_of_the_readme_are_those_that_are_stored);
}
