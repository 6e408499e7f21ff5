/* os_stop: the signals that ask this process to stop. See os.h. */
#include <signal.h>

#include "os.h"

volatile sig_atomic_t os_stop_signal;

void os_note_stop(int number) {
    os_stop_signal = number;
}

void os_watch_stop(bool on) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    static struct sigaction before[SIGNALS];
    static bool is_on;
    struct sigaction action = {.sa_handler = os_note_stop};
    sigemptyset(&action.sa_mask);
    if (on)
        os_stop_signal = 0;
    for (size_t i = 0; on != is_on && i < SIGNALS; i++)
        sigaction(signals[i], on ? &action : &before[i], on ? &before[i] : NULL);
    is_on = on;
}
