/* profile_print: profiles for people and for programs; the source lines and the machine code beside them;
 * numbers of an earlier run that must not grow. */
#pragma once

#include "harness/base/record.h"
#include "harness/measure/profile.h"

typedef struct {
    profile *items;
    size_t count, room;
} profile_set;

void profile_set_free(profile_set *s);
/* The sentences and the hottest lines with their source; all lines of the files if `annotate`. */
void profile_print(profile *p, const profile_gpu *g, size_t top, bool annotate);
/* Two side by side, number by number. */
void profile_print_pair(const profile *a, const profile *b, const profile_gpu *g);
void profile_print_json(const profile_set *s, const profile_gpu *g, uint64_t seed);
/* A row per case with line 0, and one per line. */
bool profile_write_csv(const profile_set *s, const profile_gpu *g, const char *path, err *e);

/* One instruction, and where it comes from. */
typedef struct {
    const char *file, *text;
    int file_length, text_length, line;
    bool is_near; /* the line is that of an instruction that it serves */
} code_line;

typedef struct {
    code_line *items;
    size_t count, room, printed;
} code_list;

/* What agx_compile gives, without the part that runs once per launch. */
code_list code_read_agx(const char *disassembly);
void code_free(code_list *c);

/* What a row about a line of the source begins with. The rest of it are its counts. */
typedef struct {
    char file[512];
    int line;
    char place[240], source[256]; /* found when it is printed */
} counted_line;

/* A table of such rows, each of `size` bytes: the first `top`, or among all lines of their files; with the
 * instructions of each line if code is not NULL. */
void counted_lines_print(record r, void *rows, size_t count, size_t size, bool annotate, size_t top,
                         code_list *code);

/* What must not grow: sectors, atomics, instructions, conflicts, idle lanes, private memory, and an NVIDIA GPU's
 * registers and spills, which are NaN where they are not known. */
enum { PROFILE_GATED = 8 };
extern const char *const profile_gated[PROFILE_GATED];
void profile_get_gated(const profile *p, double out[PROFILE_GATED]);

/* Those of a case in a file that --csv wrote; *found: is it there? On a CPU of another architecture LLVM makes
 * other instructions of the same kernel: then they are not known, and *is_other_cpu is set. Files of an earlier
 * version do not say. */
bool profile_read_gated(const csv_file *f, const char *name, double out[PROFILE_GATED], bool *found,
                        bool *is_other_cpu, err *e);
const char *profile_get_cpu(void); /* the architecture of this one */

typedef struct {
    const char *baseline; /* what it is compared with, as the user named it */
    double threshold;     /* by how much a number may grow, in percent */
    size_t compared, grown;
} gate;

/* Prints a number that grew. One that is not known on one side (NaN) is not compared. */
void gate_compare(gate *g, const char *name, const char *what, double was, double now);
/* How many were compared and grew, and what that means. things: "cases", where there were none. */
exit_code gate_end(const gate *g, const char *things, err *e);
