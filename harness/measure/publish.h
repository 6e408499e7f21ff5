/* publish: files that replace others together, such as the rows of a run and their samples.
 *
 * The new files are written beside the old and synced to the disk. Then .NAME.csv.changes, a list of renames, is renamed into its place:
 * from then on the new files count. They are renamed one after the other, and the list is removed. Whoever next writes
 * or reads NAME.csv does what a run that was killed in between had left to do. Until there is a list, the old files stand. */
#pragma once

#include "harness/base/csv.h"
#include "harness/base/os.h"

typedef struct {
    const char *to;   /* in the folder of `path`, or below it */
    csv *rows;        /* its contents; or NULL, and another file is renamed: */
    const char *from; /* if there is one; it is removed if `to` is NULL */
} change;

/* All of them, or none: then false with e set. The caller has the lock of `path`, which names the list. */
bool publish(const char *path, const change *changes, size_t count, err *e);

/* The lock of a file that is published, with all that was published in its place. */
lock *publish_lock(const char *path, err *e);
/* For readers. Nothing happens where another process has the lock or the folder cannot be written to. */
void publish_finish(const char *path);
void publish_finish_all(const char *folder); /* whose files are read */
