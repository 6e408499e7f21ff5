/* validation: Metal's shader validation, which speaks to stderr and to nobody else.
 *
 * It is switched on by variables that a process reads when it makes its first GPU device, it never
 * changes an exit status, and its reports come when they come, also in the middle of other lines.
 * So what is to be validated runs in processes of its own (workers), started with every MTL_*
 * variable pinned and with stderr in a file: while a worker runs it reads its own file, and when
 * all have ended every file is read again. Nothing here knows Metal: it is all text. */
#ifndef ASSAY_VALIDATION_H
#define ASSAY_VALIDATION_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"
#include "harness/device/finding.h"

/* In the process that starts workers: no MTL_* variable is left but those that are set here. */
void validation_pin_environment(void);
/* Is Metal's validation on for this process, with reports to stderr? */
bool validation_is_on(void);
/* ASSAY_STRICT=1: milder findings fail a run, too. */
bool validation_is_strict(void);

/* A folder for the files of the workers, named to them by the environment; and its end. */
bool validation_open_folder(char *path, size_t size, err *e);
void validation_close_folder(const char *path);

/* In a worker: stderr goes to a file of the folder from here on. Where no folder is named, nothing
 * happens. */
bool validation_start_log(err *e);
/* Adds the reports that came since the last time, after a moment for those on their way. */
void validation_read_log(finding_list *out);

typedef struct {
    size_t files, banners; /* a worker that was not validated has no banner */
    size_t reports;
} validation_count;

/* All files of the folder, when no worker is left. */
bool validation_read_folder(const char *path, validation_count *count, finding_list *out, err *e);

/* Adds the reports of a text; returns how many there are. Nothing else in it matters. */
size_t validation_parse(const char *text, finding_list *out);

#endif
