/* profile_print: profiles for people and for programs. */
#pragma once

#include "harness/measure/profile_say.h"

typedef struct {
    profile *items;
    size_t count, room;
} profile_set;

/* The sentences and the hottest lines with their source; all lines of the files if `annotate`. */
void profile_print(profile *p, const profile_gpu *g, size_t top, bool annotate);
/* Two side by side, number by number. */
void profile_print_pair(const profile *a, const profile *b, const profile_gpu *g);
void profile_print_json(const profile_set *s, const profile_gpu *g);
/* A row per case with line 0, and one per line. */
bool profile_write_csv(const profile_set *s, const profile_gpu *g, const char *path, err *e);

/* A row per case: what each roof alone would take, the prediction, and the measured time; prints how near
 * they are. */
bool profile_write_times(const profile_set *s, const profile_gpu *g, const char *path, err *e);
