#include "profile_source.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"

static char *read_source(const char *file) {
    char folder[PATH_MAX], path[PATH_MAX];
    err e;
    char *text = os_read_file(file, NULL, &e);
    for (int i = 0; i < 2 && !text; i++)
        if ((i == 0 ? root_find_project(folder, sizeof folder)
                    : os_find_home(folder, sizeof folder, &e)) &&
            path_join(path, sizeof path, &e, folder, file))
            text = os_read_file(path, NULL, &e);
    return text;
}

const char *source_find(source_list *s, const char *file) {
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].file, file) == 0)
            return s->items[i].text;
    const size_t size = strlen(file) + 1;
    struct source_file *f = ARRAY_ADD(s->items, s->count, s->room);
    *f = (struct source_file){array_new(size, 1), read_source(file)};
    memcpy(f->file, file, size);
    return f->text;
}

void source_copy_line(source_list *s, const char *file, int n, char *out, size_t size) {
    const char *text = source_find(s, file);
    for (int i = 1; i < n && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    text = text ? text + strspn(text, " \t") : "";
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

void source_free(source_list *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->items[i].file);
        free(s->items[i].text);
    }
    free(s->items);
    *s = (source_list){.items = NULL};
}

/* A line such as //## File "/a/b.metal", line 44 comes before its instructions, each of which begins with its
 * address as a comment. */
code_list code_read(const char *disassembly) {
    static const char place[] = "//## File \"", middle[] = "\", line ";
    code_list c = {.items = NULL};
    code_line at = {.file = ""};
    for (const char *line = disassembly, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *p = line + strspn(line, " \t");
        if (strncmp(p, place, strlen(place)) == 0) {
            const char *file = p + strlen(place), *quote = strstr(file, middle);
            if (!quote || quote > end)
                continue;
            at.file = file;
            at.file_length = (int)(quote - file);
            at.line = (int)strtol(quote + strlen(middle), NULL, 10);
        } else if (p[0] == '/' && p[1] == '*') {
            at.text = p;
            at.text_length = (int)(end - p);
            *ARRAY_ADD(c.items, c.count, c.room) = at;
        }
    }
    return c;
}

/* "   4: fe0990098000           mov      $r2, u8 ; kernels/softmax.metal:34", or ";~" and a line that is near. */
code_list code_read_agx(const char *disassembly) {
    static const char place[] = " ;", part[] = "; once per launch";
    code_list c = {.items = NULL};
    for (const char *line = disassembly, *end; *line && strncmp(line, part, strlen(part)) != 0;
         line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *found = strstr(line, place), *colon = end;
        code_line at = {.file = "", .text = line, .text_length = (int)(end - line)};
        while (found && colon > found && *colon != ':')
            colon--;
        if (found && found < end && colon > found) {
            at.is_near = found[strlen(place)] == '~';
            at.file = found + strlen(place) + at.is_near + 1;
            at.file_length = (int)(colon - at.file);
            at.line = (int)strtol(colon + 1, NULL, 10);
            at.text_length = (int)(found - line);
        }
        *ARRAY_ADD(c.items, c.count, c.room) = at;
    }
    return c;
}

/* nvdisasm puts the current folder before a path that is not absolute. */
static bool is_of_file(const code_line *l, const char *file) {
    const int length = (int)strlen(file), before = l->file_length - length;
    return before >= 0 && memcmp(l->file + before, file, (size_t)length) == 0 &&
           (before == 0 || l->file[before - 1] == '/');
}

void code_print(code_list *c, const char *file, int line) {
    for (size_t i = 0; i < c->count; i++) {
        const code_line *l = &c->items[i];
        if (l->line != line || !is_of_file(l, file))
            continue;
        printf("    %.*s\n", l->text_length, l->text);
        c->printed++;
    }
}

void code_free(code_list *c) {
    free(c->items);
    *c = (code_list){.items = NULL};
}
