#include "harness/base/os.h"
#include "model_verbs.h"

void model_watch_start(model_watch *w) {
    *w = (model_watch){.is_started = false};
    os_watch_stop(true);
}

/* In MB: the total is known only now. */
bool model_watch_tell(void *watch, uint64_t done, uint64_t total) {
    model_watch *w = watch;
    const uint64_t mb = 1000000;
    if (!w->is_started)
        w->line = progress_new(stderr, "MB", (size_t)(total / mb));
    w->is_started = true;
    progress_update(&w->line, (size_t)(done / mb));
    return !os_stop_signal;
}

void model_watch_end(model_watch *w) {
    if (w->is_started)
        progress_hide(&w->line);
    os_watch_stop(false);
}
