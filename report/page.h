/* page: the report as one HTML page, drawn from stored results and nothing else.
 *
 * The frame, fixed texts, style and script are files beside this one, read when a page is drawn:
 * page.html has {{placeholders}} for the parts. The same files give the same page: no clock is
 * read, nothing is measured. */
#pragma once

#include "claims.h"
#include "store.h"

typedef struct {
    const store *store;
    const claim_list *claims;
    const char *const *experiments; /* all that exist, in order; unknown ones come after them */
    size_t experiment_count;
} page_content;

/* Experiments that failed, and checks and validations with something wrong. */
size_t page_count_failures(const store *s);

/* Its links are relative to the folder of `path`. `home` is the project's root. */
bool page_write(const page_content *c, const char *home, const char *path, err *e);
