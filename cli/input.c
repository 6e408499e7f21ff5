#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *input_read(size_t most, size_t *bytes, err *e) {
    size_t room = 4096, used = 0;
    char *text = malloc(room);
    while (text && used <= most) {
        used += fread(text + used, 1, room - 1 - used, stdin);
        if (used < room - 1)
            break;
        room *= 2;
        char *larger = realloc(text, room);
        if (!larger)
            free(text);
        text = larger;
    }
    if (!text)
        err_set(e, EXIT_CANNOT, "no memory for %zu bytes of standard input", room);
    else if (ferror(stdin))
        err_set(e, EXIT_CANNOT, "cannot read standard input: %s", strerror(errno));
    else if (used > most)
        err_set(e, EXIT_USAGE, "standard input is longer than %zu bytes; give it in parts", most);
    else {
        text[used] = 0;
        *bytes = used;
        return text;
    }
    free(text);
    return NULL;
}
