/* launch_options: one launch of any kernel, described on the command line: what `launch` and `profile` take. */
#pragma once

#include "harness/check/launch_run.h"
#include "options.h"

typedef struct {
    const char *grid, *threads, *group, *only;
    const char *args_file;
    option_list args, constants, threadgroups, prints, saves, folders, macros, overreads, assumed;
} launch_settings;

/* Options that both verbs have, for their tables. */
/* clang-format off */
#define LAUNCH_OPTIONS(settings) \
    LIST_OPTION("arg", &(settings).args, "I=WHAT", "what buffer I is given, such as 0=f32[1024]:ramp or 2=u32:576"), \
    TEXT_OPTION("args", &(settings).args_file, "FILE", \
                "read more options from a file, separated by blanks or lines; # begins a comment"), \
    LIST_OPTION("assumed", &(settings).assumed, "I", \
                "the size of buffer I is a guess: accesses outside are listed, and fail nothing"), \
    LIST_OPTION("I|include", &(settings).folders, "DIR", "look for included files in DIR"), \
    LIST_OPTION("D|define", &(settings).macros, "NAME[=V]", "define a macro"), \
    LIST_OPTION("constant", &(settings).constants, "I=T:V", \
                "value of function constant I, such as 0=u32:64 (a bool is u8:1)"), \
    LIST_OPTION("threadgroup", &(settings).threadgroups, "I=N", \
                "bytes of threadgroup memory for [[threadgroup(I)]]"), \
    TEXT_OPTION("grid", &(settings).grid, "X[,Y,Z]", "size of the grid in threadgroups"), \
    TEXT_OPTION("threads", &(settings).threads, "X[,Y,Z]", \
                "or in threads; the last threadgroups may then be smaller"), \
    TEXT_OPTION("group", &(settings).group, "X[,Y,Z]", "size of a threadgroup in threads")
/* clang-format on */

/* The file and the kernel, arguments and geometry; the rest of the request stays as it is. */
bool launch_options_read(const launch_settings *s, const char *const *names, size_t count,
                         const char *verb, launch_request *r, err *e);

/* The words of the file that --args names are read like those of the command line, by the verb's table of
 * options; the texts stay, because the request points into them. At most two names. */
bool launch_options_read_file(launch_settings *s, const option *options, size_t option_count,
                              const char **names, size_t *count, err *e);
