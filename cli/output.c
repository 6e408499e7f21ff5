#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "harness/base/json.h"
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

void output_start_json(FILE *out, const char *name, const device_facts *f, uint64_t seed) {
    fputs("{\n  ", out);
    json_print_field(out, "assay", ASSAY_VERSION);
    fputs(",\n  ", out);
    json_print_field(out, "verb", name);
    if (f) {
        fputs(",\n  ", out);
        json_print_field(out, "device", f->name);
        fputs(",\n  ", out);
        json_print_field(out, "api", f->api);
    }
    fprintf(out, ",\n  \"seed\": %" PRIu64, seed);
}
