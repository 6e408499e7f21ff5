/* results_fixture: folders of small result files, for the suites of claims and of the report. */
#ifndef ASSAY_TESTS_RESULTS_FIXTURE_H
#define ASSAY_TESTS_RESULTS_FIXTURE_H

#include <stdbool.h>

/* Writes a file below a folder of this test run ($T of command.h); folders are made. */
bool fixture_put(const char *path, const char *text);
const char *fixture_get_path(const char *path); /* valid until the next call */
void fixture_clear(void);

/* Of a commit; rows that cannot be stale, because ? is no kernel. */
#define FIXTURE_ORIGIN "# commit: abc\n# made of: kernel:?=0\n"
/* Heads: a software device and an Apple GPU. */
#define FIXTURE_SOFT                                                                               \
    "# schema: 2\n# device: software Metal device\n# api: soft\n# emulated: yes\n"                 \
    "# os: Linux 6 test\n# cpu: a CPU\n# date: 2026-01-02T03:04:05Z\n" FIXTURE_ORIGIN
#define FIXTURE_M4                                                                                 \
    "# schema: 2\n# device: Apple M4\n# api: metal\n# emulated: no\n"                              \
    "# os: Darwin 25\n# cpu: Apple M4\n# date: 2026-01-03T03:04:05Z\n" FIXTURE_ORIGIN
/* The rest of an experiment's head. */
#define FIXTURE_EXPERIMENT(name, metrics)                                                          \
    "# experiment: " name "\n# question: What is asked?\n# claim: it was claimed\n"                \
    "# how: by looking\n# conclusion: It is so.\n# conclusion: And so.\n" metrics
#define FIXTURE_CLAIMS                                                                             \
    "id,text,relation,value,high,unit,tolerance_pct,kind,conditions,model,device,experiment,"      \
    "metric,obstacle\n"

#endif
