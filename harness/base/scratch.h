/* scratch: one folder for all temporary files of a run: its own, those of its workers and those of the
 * compilers that they start. It is TMPDIR for all of them and goes with the process that made it, also
 * on Ctrl-C, SIGTERM and SIGHUP. What a killed run left is removed by a run a day later. */
#pragma once

/* Makes the folder and sets TMPDIR; does nothing in a worker, which has its parent's. Without the folder
 * temporary files are in the user's TMPDIR, as they are with ASSAY_KEEP_REPORTS. */
void scratch_start(void);
/* The user's TMPDIR, or /tmp. */
const char *scratch_find_outer(void);
