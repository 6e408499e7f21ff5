/* Tests of make install: the installed program works where there is no source tree, and what is
 * generated from the verbs' tables (manual pages, completions) is whole. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

SUITE(install_suite);

/* The prefix has a space in it, other things below it, and beside it a folder with the first half of its
 * name. The program under test is what is installed; nothing is built. */
#define OTHERS                                                                                     \
    "'my/keep' 'usr/share/assay/keep' 'my usr/bin/other' 'my usr/share/assay/kernels/mine.metal' " \
    "'my usr/share/man/man1/assay-other.1'"
#define MAKE "env -u MAKEFLAGS -u MFLAGS make -s -o \"$A\" PROGRAM=\"$A\" BUILD=\"$T/build\" "
#define INSTALL                                                                                    \
    "rm -rf \"$T\" && mkdir -p \"$T/empty\" && cd \"$T\" && for f in " OTHERS "; do "              \
    "mkdir -p \"${f%/*}\" && echo mine > \"$f\"; done && cd \"$H\" && " MAKE                       \
    "install PREFIX=\"$T/my usr\" && mv \"$T/my usr\" \"$T/moved\""

/* No variable but PATH, HOME, the cache of the tests and their limit for endless loops. */
#define IN_EMPTY(path)                                                                             \
    "cd \"$T/empty\" && env -i PATH=\"" path "\" HOME=\"$T\" XDG_CACHE_HOME=\"$XDG_CACHE_HOME\" "  \
    "ASSAY_LOOP_SECONDS=$ASSAY_LOOP_SECONDS "
#define INSTALLED IN_EMPTY("$PATH") "\"$T/moved/bin/assay\" "

TEST an_installed_program_finds_its_files_wherever_its_prefix_is_moved(void) {
    ASSERT_RUN(INSTALL, 0);
    ASSERT_RUN(INSTALLED "--version", 0);
    ASSERT_SAYS("assay 0.");
    ASSERT_RUN(INSTALLED "check --device soft 'buffer_copy/3[123]/normal'", 0);
    ASSERT_SAYS("3 passed");
    ASSERT_RUN(INSTALLED "report", 0);
    ASSERT_SAYS("empty/results/report.html");
    PASS();
}

/* The commands are those of the documentation. */
TEST the_five_commands_of_your_kernels_work_without_the_source_tree(void) {
    ASSERT_RUN("sed -n '/^```sh/,/^```/p' \"$H\"/docs/your-kernels.md | sed '1d; /^```/,$d' > "
               "\"$T\"/five.sh && "
               "grep -c '^assay ' \"$T\"/five.sh",
               0);
    ASSERT_SAYS("5");
    ASSERT_RUN(IN_EMPTY("$T/moved/bin:$PATH") "sh -e ../five.sh", 0);
    ASSERT_SAYS("14 passed, 0 failed");
    ASSERT_SAYS("1 timed, 0 not timed");
    ASSERT_SAYS("100.0 % of those that change something were caught");
    ASSERT_RUN("grep -q softcap \"$T\"/empty/my_kernels/results/report.html && " INSTALLED
               "info --device soft --field files",
               0);
    ASSERT_SAYS("/moved/share/assay\n");
    PASS();
}

TEST every_verb_has_a_manual_page_and_is_completed(void) {
    ASSERT_RUN("for verb in $(\"$A\" help | awk '/assay help/ {exit} /^  [a-z]/ {print $1}'); do "
               "test -s \"$T/moved/share/man/man1/assay-$verb.1\" || "
               "{ echo no page for $verb; exit 1; }; done",
               0);
    ASSERT_RUN("grep -l 'llama.*bench' \"$T/moved/share/man/man1/assay-model-bench.1\"", 0);
    ASSERT_RUN("grep -c 'TOLERANCES' \"$T/moved/share/man/man5/assay-op.5\"", 0);
    ASSERT_RUN(
        "mkdir -p \"$T/path\" && ln -sf \"$A\" \"$T/path/assay\" && PATH=\"$T/path:$PATH\" && "
        "cd \"$T/path\" && assay --completion bash > \"$T/c\" && bash -c '. \"$T/c\"; "
        "COMP_WORDS=(assay "
        "check --dev); COMP_CWORD=2; _assay; echo \"<${COMPREPLY[*]}>\"; COMP_WORDS=(assay "
        "model be); _assay; echo \"<${COMPREPLY[*]}>\"; COMP_WORDS=(assay check --math f); "
        "COMP_CWORD=3; _assay; echo \"<${COMPREPLY[*]}>\"'",
        0);
    ASSERT_SAYS("<--device>\n<bench>\n<fast>\n");
    ASSERT_RUN("cd \"$T/empty\" && "
               "PATH=\"$T/path:$PATH\" bash -c '. \"$T/c\"; COMP_CWORD=2; COMP_WORDS=(assay check "
               "rmsno); _assay; echo \"<${COMPREPLY[*]}>\"; COMP_WORDS=(assay experiment batch_s); "
               "_assay; echo \"<${COMPREPLY[*]}>\"; COMP_CWORD=3; COMP_WORDS=(assay bench --regime "
               "ch); _assay; echo \"<${COMPREPLY[*]}>\"; COMP_WORDS=(assay bench --format q4_0); "
               "_assay; echo \"<${COMPREPLY[*]}>\"; COMP_WORDS=(assay lint --language 3); _assay; "
               "echo \"<${COMPREPLY[*]}>\"'",
               0);
    ASSERT_SAYS("<rmsnorm");
    ASSERT_SAYS(">\n<batch_scaling>\n<chained>\n<q4_0>\n<3.0 3.1 3.2>\n");
    ASSERT_RUN("\"$A\" init \"$T/mine\" && cd \"$T/mine\" && \"$A\" --complete validate s", 0);
    ASSERT_SAYS("softcap\n");
    ASSERT_RUN("\"$A\" --completion tcsh", 2);
    ASSERT_SAYS("bash, zsh and fish");
    PASS();
}

/* A second install removes what an older version had and this one has not. */
TEST install_and_uninstall_remove_what_they_installed_and_nothing_else(void) {
    ASSERT_RUN(
        "cd \"$T\" && mv moved 'my usr' && cd 'my usr/share/assay' && touch kernels/old.metal && "
        "echo share/assay/kernels/old.metal >> installed && echo ../my/keep >> installed && "
        "cd \"$H\" && " MAKE "install PREFIX=\"$T/my usr\" && cd \"$T\" && "
        "test ! -e 'my usr/share/assay/kernels/old.metal' && cat " OTHERS,
        0);
    ASSERT_STR_EQ("mine\nmine\nmine\nmine\nmine\n", command_get_output());
    ASSERT_RUN("cd \"$H\" && " MAKE "uninstall PREFIX=\"$T/my usr\" && cd \"$T\" && "
               "find 'my usr' my usr -type f | LC_ALL=C sort",
               0);
    ASSERT_STR_EQ("my usr/bin/other\nmy usr/share/assay/kernels/mine.metal\n"
                  "my usr/share/man/man1/assay-other.1\nmy/keep\nusr/share/assay/keep\n",
                  command_get_output());
    ASSERT_RUN("test ! -e \"$T/my usr/share/assay/plots\"", 0);
    ASSERT_RUN("cd \"$H\" && " MAKE "uninstall PREFIX=\"$T/my usr\"", 2);
    ASSERT_SAYS("nothing to uninstall");
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

SUITE(install_suite) {
    RUN_TEST(an_installed_program_finds_its_files_wherever_its_prefix_is_moved);
    RUN_TEST(the_five_commands_of_your_kernels_work_without_the_source_tree);
    RUN_TEST(every_verb_has_a_manual_page_and_is_completed);
    RUN_TEST(install_and_uninstall_remove_what_they_installed_and_nothing_else);
}
