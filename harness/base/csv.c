#include "csv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "os.h"

struct csv {
    FILE *out; /* into text */
    char *text;
    size_t bytes;
    bool has_rows, in_row;
};

static void start_text(csv *c) {
    c->text = NULL;
    c->out = open_memstream(&c->text, &c->bytes);
    assert(c->out);
}

csv *csv_new(void) {
    csv *c = array_new(1, sizeof *c);
    start_text(c);
    return c;
}

void csv_free(csv *c) {
    if (!c)
        return;
    fclose(c->out);
    free(c->text);
    free(c);
}

static void start_field(csv *c) {
    if (c->in_row)
        fputc(',', c->out);
    c->in_row = c->has_rows = true;
}

void csv_add_meta(csv *c, const char *key, const char *value) {
    assert(!c->has_rows);
    fprintf(c->out, "# %s: ", key);
    for (const char *p = value; *p; p++)
        fputc(*p == '\n' || *p == '\r' ? ' ' : *p, c->out);
    fputc('\n', c->out);
}

void csv_add_text(csv *c, const char *text) {
    start_field(c);
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, c->out);
        return;
    }
    fputc('"', c->out);
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            fputc('"', c->out);
        fputc(*p, c->out);
    }
    fputc('"', c->out);
}

void csv_add_u64(csv *c, uint64_t value) {
    start_field(c);
    fprintf(c->out, "%" PRIu64, value);
}

void csv_add_double(csv *c, double value) {
    start_field(c);
    if (value != value) { /* one spelling: printf's depends on the sign bit */
        fputs("nan", c->out);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, c->out);
}

void csv_end_row(csv *c) {
    assert(c->in_row);
    fputc('\n', c->out);
    c->in_row = false;
}

void csv_add_row(csv *c, const char *const *cells, size_t count) {
    for (size_t i = 0; i < count; i++)
        csv_add_text(c, cells[i]);
    csv_end_row(c);
}

bool csv_write(csv *c, const char *path, err *e) {
    assert(!c->in_row);
    if (fflush(c->out) != 0)
        return err_set(e, EXIT_CANNOT, "no memory for the rows of %.160s", path);
    return os_write_file(path, c->text, c->bytes, e);
}

static bool append_bytes(const char *path, const char *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t written;
    do
        written = write(fd, data, bytes);
    while (written < 0 && errno == EINTR);
    if (written >= 0 && (size_t)written < bytes)
        errno = ENOSPC;
    int why = errno;
    bool ok = close(fd) == 0 && written == (ssize_t)bytes;
    if (!ok && why)
        errno = why;
    return ok;
}

bool csv_append(csv *c, const char *path, err *e) {
    assert(!c->in_row);
    errno = 0;
    bool ok = fflush(c->out) == 0 && append_bytes(path, c->text, c->bytes);
    int why = errno;
    fclose(c->out);
    free(c->text);
    start_text(c);
    return ok || os_refuse_write(path, why, e);
}
