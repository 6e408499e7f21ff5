/* os_stop: the signals that ask this process to stop. See os.h. */
#include <signal.h>

#include "os.h"

volatile sig_atomic_t os_stop_signal;

void os_note_stop(int number) {
    os_stop_signal = number;
}

void os_watch_stop(bool on) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on ? os_note_stop : SIG_DFL};
    sigemptyset(&action.sa_mask);
    if (on)
        os_stop_signal = 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}
