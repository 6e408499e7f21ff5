/* os: the few things the project asks of the operating system. POSIX only; Linux and macOS. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "err.h"

uint64_t os_now_ns(void);    /* monotonic */
uint64_t os_thread_ns(void); /* CPU time of the calling thread; 0: not known */
/* The signal that asked this process to stop, as handlers note it; 0: none did. */
extern volatile sig_atomic_t os_stop_signal;
/* From now on Ctrl-C, SIGTERM and SIGHUP are noted there and nothing else, until it is called as often with
 * false. Those that were ignored before, as under nohup, stay ignored. */
void os_watch_stop(bool on);

int os_count_cpus(void); /* that this process may use */

/* Where the program's own files are (kernels, shim, plots, page, headers): ASSAY_HOME, or the
 * nearest folder above the executable that has kernels/ and harness/ in it, as a source tree has,
 * or that has them in share/assay, as make install puts them. */
bool os_find_home(char *path, size_t size, err *e);
bool os_join_home(char *path, size_t size, err *e,
                  const char *name); /* a file of it: "plots/bench.gp" */
/* $XDG_CACHE_HOME/assay, ~/.cache/assay or a private folder under $TMPDIR; made if missing. */
bool os_find_cache(char *path, size_t size, err *e);
bool os_find_self(char *path, size_t size, err *e); /* the running executable */

/* Whole files. A NUL follows the `bytes` of the text; the caller frees it. */
char *os_read_file(const char *path, size_t *bytes, err *e);
/* The same for a plain file of at most `most` bytes: a device, a FIFO and an endless file are
 * refused. */
char *os_read_plain(const char *path, size_t most, size_t *bytes, err *e);
/* The same for a text that may be a stranger's: a link out of its folder and its project is not followed. */
char *os_read_source(const char *path, size_t most, size_t *bytes, err *e);
/* With links followed. */
bool os_is_below(const char *path, const char *folder);
/* What is read of a descriptor so far; a NUL follows it. NULL: there is no memory. */
typedef struct {
    char *text;
    size_t used, room;
} os_text;
ssize_t os_read_more(int fd, os_text *t); /* what read gives, and more room before it is full */
/* All of the bytes, however many calls that takes; false where the other end is closed. */
bool os_write_all(int fd, const void *data, size_t bytes);
/* Written to a temporary file and renamed: readers see the old file or the whole new one. A
 * symbolic link is followed; a device or a FIFO is written to and never replaced. */
bool os_write_file(const char *path, const void *data, size_t bytes, err *e);
/* The same for a file of ours, in the cache or a scratch folder: a failure is the machine's fault (err.h). */
bool os_write_own(const char *path, const void *data, size_t bytes, err *e);
/* What is printed to memory, to be written or sent as a whole; `text` is there once `out` was flushed. */
typedef struct {
    FILE *out;
    char *text;
    size_t bytes;
} memory_file;
memory_file *memory_file_new(void);
bool memory_file_write(memory_file *m, const char *path, err *e); /* as os_write_file; frees it */
void memory_file_free(memory_file *m);
/* To the disk, so that what is written later is there only if this is, whenever the power goes. */
bool os_sync(const char *path, err *e);
/* Renames a temporary file TO.PID.tmp, may sync the folder, and removes those that killed processes left beside it. */
bool os_settle(const char *from, const char *to, bool syncs, err *e);
/* Removes files that are called STEM, a number of a process that is gone, and what this pattern matches. */
void os_remove_left(const char *folder, const char *stem, const char *ending);
/* Whether os_write_file can make a file there, before there is anything to write. */
bool os_check_writable(const char *path, err *e);
/* Says that a file cannot be written, and why; EXIT_USAGE if its path is at fault. False. */
bool os_refuse_write(const char *path, int why, err *e);
/* A file under $TMPDIR that has no name any more: it goes with its descriptor. -1 if there is none. */
int os_open_unnamed(void);
bool os_is_folder(const char *path);
bool os_is_same_file(const char *a, const char *b);
bool os_make_folder(const char *path, err *e); /* with parents */
const char *os_find_tmp(void);                 /* $TMPDIR, or /tmp */
/* Makes a new empty folder under $TMPDIR; removes one with everything in it. */
bool os_make_scratch(char *path, size_t size, err *e);
void os_remove_folder(const char *path);
bool os_find_program(const char *name, char *path, size_t size); /* along PATH */

/* At most one process writes a file at a time. The lock is the system's: it ends with the process that
 * holds it, however that ends. */
typedef struct lock lock;
/* The lock of a file, which need not exist; its folder must. NULL with EXIT_CANNOT and a sentence if
 * another process holds it, for longer than wait_ms. A file .NAME.lock stands beside it meanwhile. */
lock *lock_take(const char *path, unsigned wait_ms, err *e);
void lock_release(lock *l); /* NULL is fine */

/* One folder for all temporary files of a run: its own, those of its workers and those of the compilers that
 * they start. It is TMPDIR for all of them and goes with the process that made it, also on Ctrl-C, SIGTERM and
 * SIGHUP. What a killed run left is removed by a run a day later. Does nothing in a worker, which has its
 * parent's. Without the folder temporary files are in the user's TMPDIR, as they are with
 * ASSAY_KEEP_REPORTS. */
void scratch_start(void);
