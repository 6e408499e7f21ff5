/* verb: what all verbs share. */
#include "verb.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

static const option folder_option = {
    "C|folder", OPTION_TEXT, &folder, "DIR", "work in this folder, as if started there", 0, 0};

size_t verb_list_options(const verb *v, option out[OPTIONS_MAX]) {
    assert(v->option_count < OPTIONS_MAX);
    if (v->option_count > 0)
        memcpy(out, v->options, v->option_count * sizeof *out);
    out[v->option_count] = folder_option;
    return v->option_count + 1;
}

bool verb_enter_folder(err *e) {
    if (!folder || chdir(folder) == 0)
        return true;
    return err_set(e, EXIT_USAGE, "cannot work in the folder %.160s: %s", folder, strerror(errno));
}
