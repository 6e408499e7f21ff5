/* page: the report: one HTML page, drawn from stored results and nothing else.
 *
 * The frame, the fixed texts, the looks and the script are files beside this one, read when a page
 * is drawn: page.html has {{marks}} where the parts go. The same files give the same page: no
 * clock is read, nothing is measured. */
#ifndef ASSAY_PAGE_H
#define ASSAY_PAGE_H

#include "claims.h"
#include "store.h"

typedef struct {
    const store *store;
    const claim_list *claims;
    const char *const *experiments; /* that there are, in their order; others come behind them */
    size_t experiment_count;
} page_content;

/* Its links are relative to the folder of `path`. `home` is the project's root. */
bool page_write(const page_content *c, const char *home, const char *path, err *e);

#endif
