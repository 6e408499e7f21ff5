/* output: see output.h. */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
