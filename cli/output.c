#include "output.h"

#include <errno.h>
#include <string.h>

#include "verb.h"

bool output_flush(err *e) {
    errno = 0;
    bool is_flushed = fflush(stdout) == 0;
    if (is_flushed && !ferror(stdout))
        return true;
    if (errno == EPIPE)
        return err_set(e, EXIT_CLOSED, "the reader of the output has gone");
    /* An earlier write may have failed: errno is of something else by then. */
    return err_set(e, EXIT_CANNOT, "cannot write the output%s%s", is_flushed ? "" : ": ",
                   is_flushed ? "" : strerror(errno));
}

json output_open_json(FILE *out, const char *name, const device_facts *f, uint64_t seed) {
    json j = json_start(out, '{');
    json_add_text(&j, "assay", ASSAY_VERSION);
    json_add_text(&j, "verb", name);
    if (f) {
        json_add_text(&j, "device", f->name);
        json_add_text(&j, "api", f->api);
    }
    json_add_count(&j, "seed", seed);
    return j;
}

void output_start_json(FILE *out, const char *name, const device_facts *f, uint64_t seed) {
    output_open_json(out, name, f, seed);
}
