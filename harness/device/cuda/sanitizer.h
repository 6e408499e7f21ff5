/* sanitizer: NVIDIA's compute-sanitizer, which watches a whole process and writes to a file.
 *
 * A worker that is to be watched replaces itself by compute-sanitizer, which starts it again. It has
 * four tools, and one run has one of them. The variable ASSAY_SANITIZER names the tool; the workers
 * find the folder of their files in the environment (validation.h) and read their own file while
 * they run. When all have ended every file is read again. Nothing here uses CUDA: it is all text. */
#pragma once

#include "harness/device/validation.h"

enum { SANITIZER_TOOLS = 4 };
extern const char *const sanitizer_tools[SANITIZER_TOOLS]; /* "memcheck", ... */

/* In the process that starts workers: they run under this tool from here on; NULL: under none.
 * False, with EXIT_CANNOT, where there is no compute-sanitizer. */
bool sanitizer_choose(const char *tool, err *e);
/* The tool that is chosen, or NULL. */
const char *sanitizer_get_tool(void);

/* In a worker, before anything else: it is this program with these arguments (ending in NULL),
 * started again under the tool that is chosen. Returns true if none is, or if it already is under
 * it; otherwise it returns only if that cannot be done. */
bool sanitizer_enter(const char *const *arguments, err *e);
/* Is this process watched? */
bool sanitizer_is_watching(void);

/* In a worker: adds the reports since the last call. */
void sanitizer_read_log(finding_list *out);

/* What its files look like. */
extern const log_format sanitizer_log;
/* Adds the reports of a text; returns how many there are. */
size_t sanitizer_parse(const char *text, finding_list *out);
