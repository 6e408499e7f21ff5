/* text: strings and lists that grow. Running out of memory ends the program. */
#include "internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(text *t, const char *data, size_t bytes) {
    if (t->room - t->used <= bytes) {
        t->room = (t->used + bytes + 1) * 2;
        t->data = realloc(t->data, t->room);
        assert(t->data && "out of memory");
    }
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = 0;
}

void text_print(text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    assert(n >= 0);
    char *line = array_new(1, (size_t)n + 1);
    vsnprintf(line, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    text_add(t, line, (size_t)n);
    free(line);
}

char *text_take(text *t) {
    if (!t->data)
        text_add(t, "", 0);
    char *data = t->data;
    *t = (text){0};
    return data;
}

char *text_copy(const char *data, size_t bytes) {
    text t = {0};
    text_add(&t, data, bytes);
    return text_take(&t);
}

uint64_t text_hash(const char *data, size_t bytes, uint64_t seed) {
    uint64_t h = (seed ^ 0xcbf29ce484222325u) * 0x100000001b3u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (unsigned char)data[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}
