/* power: what the machine's supply and temperature do to its clocks. */
#pragma once

#include <stdbool.h>

typedef struct {
    bool on_battery;
    bool low_power; /* the user asked for less speed */
    bool is_hot;    /* the system slows down, or is about to, because of heat */
} power_state;

/* Now. What the system does not tell is false. */
power_state power_get_state(void);

/* The same from the files of Linux, in another folder than /sys. */
power_state power_read_files(const char *sys);
