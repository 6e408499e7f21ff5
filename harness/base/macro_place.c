#include "macro_place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"

enum { LONGEST_NAME = 120 }; /* a finding has room for it */

bool macro_place_name(const char *file, const macro_place *p, char *name, size_t size) {
    char tail[3 * MACRO_NAME];
    int n = snprintf(tail, sizeof tail, "@%s@%s@%d", p->macro, p->file, p->line);
    bool fits = strlen(path_get_name(file)) + (size_t)n < LONGEST_NAME && !strchr(p->file, '@') &&
                strlen(file) + (size_t)n < size;
    snprintf(name, size, "%s%s", file, fits ? tail : "");
    return fits;
}

static const char *skip_word(const char *p) {
    while (isalnum((unsigned char)*p) || *p == '_' || *p == '$')
        p++;
    return p;
}

/* "@FOO@kernel.metal@90", which may be followed by anything but a digit; its end, or NULL. */
static const char *read_tail(const char *at, macro_place *p) {
    const char *name = at + 1, *after = skip_word(name);
    if (*at != '@' || after == name || *after != '@' || after - name >= MACRO_NAME)
        return NULL;
    const char *file = after + 1, *last = file + strcspn(file, "@/\n");
    if (*last != '@' || last == file || last - file >= MACRO_NAME ||
        !isdigit((unsigned char)last[1]))
        return NULL;
    char *end;
    *p = (macro_place){.line = (int)strtol(last + 1, &end, 10)};
    memcpy(p->macro, name, (size_t)(after - name));
    memcpy(p->file, file, (size_t)(last - file));
    return end;
}

bool macro_place_cut(char *name, macro_place *p) {
    for (char *at = strchr(name, '@'); at; at = strchr(at + 1, '@')) {
        const char *end = read_tail(at, p);
        if (end && !*end) {
            *at = 0;
            return true;
        }
    }
    return false;
}

void macro_place_spell(const macro_place *p, const char *file, char *text, size_t size) {
    if (strcmp(path_get_name(file), p->file) == 0)
        snprintf(text, size, ", in macro %s expanded at line %d", p->macro, p->line);
    else
        snprintf(text, size, ", in macro %s expanded at %s:%d", p->macro, p->file, p->line);
}

/* Cuts the names of one line; says what the first of them said. */
static bool cut_line(char *line, char *note, size_t size) {
    macro_place p;
    bool is_found = false;
    for (char *at = line; (at = strchr(at, '@')) && at < line + strcspn(line, "\n");) {
        const char *end = read_tail(at, &p);
        if (!end || *end != ':') {
            at++;
            continue;
        }
        if (!is_found) {
            char file[MACRO_NAME] = "";
            const char *begin = at;
            while (begin > line && !strchr("/ '\"", begin[-1]))
                begin--;
            snprintf(file, sizeof file, "%.*s", (int)(at - begin), begin);
            macro_place_spell(&p, file, note, size);
        }
        is_found = true;
        memmove(at, end, strlen(end) + 1);
    }
    return is_found;
}

void macro_place_tell(char *text, size_t size) {
    if (!strchr(text, '@'))
        return;
    for (char *line = text; *line;) {
        char note[3 * MACRO_NAME];
        bool is_found = cut_line(line, note, sizeof note);
        char *end = line + strcspn(line, "\n");
        size_t bytes = is_found ? strlen(note) : 0;
        if (strlen(text) + bytes < size) {
            memmove(end + bytes, end, strlen(end) + 1);
            memcpy(end, note, bytes);
            end += bytes;
        }
        line = end + (*end == '\n');
    }
}
