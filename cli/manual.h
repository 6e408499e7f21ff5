/* manual: the manual pages, assay(1) and one per verb, written from the help texts. */
#pragma once

#include "verb.h"

/* Writes assay.1 and assay-VERB.1 for each verb to a folder, which is made. */
bool manual_write_all(const verb *const *verbs, size_t count, const char *folder, err *e);
