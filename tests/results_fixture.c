/* results_fixture: see results_fixture.h. */
#include "results_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"

const char *fixture_get_path(const char *path) {
    static char whole[512];
    snprintf(whole, sizeof whole, "%s/test-%ld/%s", os_find_tmp(), (long)getpid(), path);
    return whole;
}

bool fixture_put(const char *path, const char *text) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s", fixture_get_path(path));
    *strrchr(folder, '/') = 0;
    return os_make_folder(folder, NULL) &&
           os_write_file(fixture_get_path(path), text, strlen(text), NULL);
}

void fixture_clear(void) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s", fixture_get_path(""));
    os_remove_folder(folder);
}
