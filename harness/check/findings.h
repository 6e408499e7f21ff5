/* findings: what a device's validation found: a row each, for people with the whole text below it. */
#pragma once

#include <stdio.h>

#include "harness/base/csv.h"
#include "harness/device/finding.h"

/* The first `most` of them, and how many more there are. Prints nothing for an empty list. */
void findings_print(FILE *out, const finding_list *list, size_t most);
/* All of them, with a line of titles. */
void findings_add_csv(csv *file, const finding_list *list);
