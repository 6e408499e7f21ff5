/* command: see command.h. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/child.h"
#include "harness/base/os.h"

static char *output;
static err e;

int command_run(const char *line) {
    char home[1024], path[1100];
    const char *program = getenv("ASSAY_PROGRAM");
    if (!os_find_home(home, sizeof home, &e))
        return -1;
    snprintf(path, sizeof path, "%s/assay", home);
    setenv("A", program ? program : path, 1);
    setenv("H", home, 1);
    const char *device = getenv("ASSAY_DEVICE");
    setenv("D", device && *device ? device : "soft", 1);
    setenv("ASSAY_TUNED", "off", 0); /* whatever table lies in results/ */
    snprintf(path, sizeof path, "%s/test-%ld", os_find_tmp(), (long)getpid());
    setenv("T", path, 1);
    free(output);
    output = NULL;
    const char *const argv[] = {"sh", "-c", line, NULL};
    int status = -1;
    return child_run(argv, &output, &status, &e) && output ? status : -1;
}

void command_use_one_thread(void) {
    setenv("ASSAY_THREADS", "1", 0);
}

const char *command_get_output(void) {
    return output ? output : e.text;
}

bool command_says(const char *text) {
    return strstr(command_get_output(), text) != NULL;
}
