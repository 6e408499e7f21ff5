/* host: facts about the machine that the device is in. They go into the heads of result files; a
 * fact that cannot be found is "unknown", never a guess. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool host_find_cpu(char *name, size_t size); /* "Apple M4"; false if it has no name */
uint64_t host_count_memory(void);            /* bytes */
uint64_t host_count_free_memory(void); /* that programs can still take; all, where nothing says */

/* What this process has used so far, and what was taken from it. */
typedef struct {
    double cpu_s;    /* all threads */
    double switches; /* how often one of them had to give way to another program */
    double wait_s;   /* how long they could have run and had no core; 0 if unknown */
    double steal_s;  /* of all cores: what a hypervisor gave to other machines; 0 if unknown */
} host_usage;
host_usage host_get_usage(void);
/* Another process that works for this one: its usage counts as ours. */
void host_add_process(int process);
void host_remove_process(int process);

/* Bytes of the largest cache that the operating system reports; 0 if it reports none. It does not
 * know a GPU's caches, nor Apple's system-level cache. */
size_t host_find_cache(void);

void host_get_os(char *text, size_t size);   /* "Linux 6.1.0 aarch64" */
void host_get_date(char *text, size_t size); /* "2025-01-31T12:00:00Z" */
/* The commit of the program's folder, followed by "-dirty" if files differ; or what ASSAY_COMMIT says. */
void host_get_commit(char *text, size_t size);
/* Identifies this program: the start of the SHA-256 of its file. */
void host_get_build(char *text, size_t size);
/* The first line in which NVIDIA's driver describes itself, or "unknown". */
void host_get_nvidia_driver(char *text, size_t size);

/* What the supply and the temperature do to the clocks. What the system does not say is false. */
typedef struct {
    bool on_battery;
    bool low_power; /* the user asked for less speed */
    bool is_hot;    /* the system slows down, or is about to, because of heat */
} power_state;

power_state power_get_state(void);

/* The same from the files of Linux, in another folder than /sys. */
power_state power_read_files(const char *sys);
