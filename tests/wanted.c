/* wanted: see wanted.h. */
#include "wanted.h"

#include <stdio.h>
#include <string.h>

const char *wanted_compare(const finding_list *found, const wanted_finding *want, size_t count) {
    static char message[800];
    for (size_t i = 0; i < count && i < found->count; i++, want++) {
        const finding *f = &found->items[i];
        if (f->what == want->what && strcmp(f->kernel, want->kernel) == 0 &&
            strcmp(f->file, want->file) == 0 && f->line == want->line &&
            (!want->label || strcmp(f->label, want->label) == 0) &&
            (!want->text || strstr(f->text, want->text)))
            continue;
        snprintf(message, sizeof message, "finding %zu is %s in %s at %s:%d, %s: %.200s", i,
                 finding_get_name(f->what), f->kernel, f->file, f->line, f->label, f->text);
        return message;
    }
    snprintf(message, sizeof message, "%zu findings, not %zu", found->count, count);
    return found->count == count ? NULL : message;
}
