/* findings: prints what a device's validation found: one row each, followed by the full texts. */
#pragma once

#include <stdio.h>

#include "harness/device/finding.h"

/* The first `most` of them, and how many more there are. Prints nothing for an empty list. */
void findings_print(FILE *out, const finding_list *list, size_t most);
