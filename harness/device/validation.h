/* validation: Metal's shader validation, which reports on stderr only.
 *
 * It is enabled by variables that a process reads when it makes its first GPU device, it never
 * changes an exit status, and its reports arrive at any time, even in the middle of other lines. So
 * validated cases run in processes of their own (workers), started with every MTL_* variable
 * pinned and with stderr in a file: a worker reads its own file while it runs, and when all have
 * ended every file is read again. Nothing here uses Metal: it is all text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"
#include "harness/device/finding.h"

/* In the process that starts workers: unsets every MTL_* variable but those that it sets. */
void validation_pin_environment(void);
/* Is Metal's validation on for this process, with reports to stderr? */
bool validation_is_on(void);
/* ASSAY_STRICT=1: milder findings fail a run, too. */
bool validation_is_strict(void);

/* Makes and removes a folder for the files of the workers, which find it in the environment. */
bool validation_open_folder(char *path, size_t size, err *e);
void validation_close_folder(const char *path);

/* The name of this process's file in the folder. False if there is no folder. */
bool validation_name_log(char *path, size_t size, err *e);
/* In a worker: stderr goes to a file of the folder from here on. Does nothing without a folder. */
bool validation_start_log(err *e);
/* Adds the reports since the last call, after a moment for those still on their way. */
void validation_read_log(finding_list *out);

typedef struct {
    size_t files, banners; /* a worker that was not validated has no banner */
    size_t reports;
} validation_count;

/* What an engine writes. */
typedef struct {
    const char *engine;
    bool (*is_watched)(const char *text); /* does it say that it looked? */
    size_t (*parse)(const char *text, finding_list *out);
} log_format;
extern const log_format metal_log;

/* All files of the folder, when no worker is left. path NULL: of the one that is open now. */
bool validation_read_folder(const char *path, const log_format *format, validation_count *count,
                            finding_list *out, err *e);
/* Adds the reports of a text; returns how many there are. Nothing else in it matters. */
size_t validation_parse(const char *text, finding_list *out);
