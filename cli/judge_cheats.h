/* judge_cheats: the judge on trial: kernels that cheat, all to be refused, and honest ones, all to be
 * accepted.
 *
 * A cheat is a file of harness/check/cheats. Lines at its head say what it claims to be and what must
 * become of it:
 *     // base: rmsnorm_rows          the kernel whose place it takes
 *     // refused: check validate     by which stage; any of several
 *     // because: never written      a part of the reason, or of the finding's class
 * An honest kernel is one of ours in its own place: the first of each op, or all of them.
 *
 * A file of verdicts has a row for each, appended as it is made. A later run takes a verdict from it if the
 * text of the kernel is the same and it was as expected. */
#pragma once

#include "harness/check/judge.h"

typedef struct {
    const char *const *filters; /* names of cheats, ops and kernels, or globs of them; none: all */
    size_t filter_count;
    const char *csv; /* NULL, or where verdicts are kept: those that it has are not made again */
    bool all_kernels, json;
} cheat_query;

exit_code judge_cheats_run(const judge_settings *s, const cheat_query *q, const device_facts *f,
                           err *e);
