/* machine: what the computer is called and has, for reports. */
#ifndef ASSAY_MACHINE_H
#define ASSAY_MACHINE_H

#include <stddef.h>
#include <stdint.h>

void machine_get_cpu(char *name, size_t size); /* "unnamed CPU" where nobody says */
uint64_t machine_count_memory(void);           /* bytes; 0: unknown */

#endif
