/* wanted: what the reports of a tool should be read as. */
#ifndef ASSAY_TESTS_WANTED_H
#define ASSAY_TESTS_WANTED_H

#include "harness/device/finding.h"

typedef struct {
    finding_class what;
    const char *kernel, *file;
    int line;
    const char *label; /* NULL: any */
    const char *text;  /* in its text; NULL: any */
} wanted_finding;

/* NULL if these are the findings, in this order; else what is not as it should be. */
const char *wanted_compare(const finding_list *found, const wanted_finding *want, size_t count);

#endif
