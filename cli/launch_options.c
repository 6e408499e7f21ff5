/* launch_options: see launch_options.h. An option about the launch is a line of a description
 * (harness/check/description.h) in short: 0=f32[64]:ramp is `in buffer_0 f32[64] at 0 ramp`. */
#include "launch_options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

/* The whole number that *text begins with, from 0 to most; *text is then what follows it. */
static bool take_number(const char **text, uint64_t most, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(*text, &end, 10);
    bool ok = isdigit((unsigned char)**text) && !errno && *out <= most;
    *text = end;
    return ok;
}

/* The index of a buffer, before an = or a : or the end. */
static bool take_index(const char **text, char after, uint64_t *out) {
    return take_number(text, LAUNCH_BUFFERS - 1, out) && (!after || *(*text)++ == after);
}

/* Arguments ----------------------------------------------------------------------------------- */

/* Reads a line, which stays. */
static bool read_line(launch_request *r, err *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool read_line(launch_request *r, err *e, const char *format, ...) {
    enum { LONGEST = 1 << 16 };
    char *line = array_new(1, LONGEST);
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, LONGEST, format, list);
    va_end(list);
    if (length >= LONGEST)
        return err_set(e, EXIT_USAGE, "it is longer than %d characters", LONGEST);
    r->launch.kind = DESCRIBES_OPTIONS;
    return describe_read_line(&r->launch, line, e);
}

/* "1", "1+1024" or "1+1024:512" after the '@'. */
static bool read_part(launch_request *r, int index, const char *p, err *e) {
    uint64_t of, offset = 0, bytes = 0;
    bool ok = take_index(&p, 0, &of);
    if (ok && *p == '+' && p++)
        ok = take_number(&p, SIZE_MAX / 2, &offset);
    if (ok && *p == ':' && p++)
        ok = take_number(&p, SIZE_MAX / 2, &bytes) && bytes > 0;
    if (!ok || *p)
        return err_set(e, EXIT_USAGE,
                       "a buffer of another argument is written like 3=@1 or 3=@1+1024:512");
    r->parts[r->part_count].index = index;
    r->parts[r->part_count].of = (int)of;
    r->parts[r->part_count].offset = (size_t)offset;
    r->parts[r->part_count++].bytes = (size_t)bytes;
    return true;
}

/* TYPE[SIZE]:CONTENTS */
static bool read_array(launch_request *r, int index, const char *p, err *e) {
    const char *close = strchr(p, ']'), *what = close ? close + 1 : "";
    if (!close || (*what && *what != ':'))
        return err_set(e, EXIT_USAGE, "the number of elements goes between [ and ]");
    what = *what ? what + 1 : "unwritten";
    size_t word = strcspn(what, ":"), count;
    bool is_file = strncmp(what, "file:", 5) == 0;
    if (!read_line(r, e, "in buffer_%d %.*s at %d %.*s %s", index, (int)(close + 1 - p), p, index,
                   is_file ? 4 : (int)word, is_file ? "from" : what,
                   what[word] ? what + word + 1 : ""))
        return false;
    return describe_count_elements(&r->launch, &r->launch.arguments[r->launch.argument_count - 1],
                                   NULL, &count, e);
}

static bool read_arg(launch_request *r, const char *text, err *e) {
    const char *p = text;
    uint64_t given;
    if (!take_index(&p, '=', &given))
        return err_set(e, EXIT_USAGE, "it begins with a buffer index from 0 to 30 and '='");
    const int index = (int)given;
    const size_t type = strcspn(p, "[:");
    for (size_t i = 0; i < r->part_count; i++)
        if (r->parts[i].index == index)
            return err_set(e, EXIT_USAGE, "argument %d is given twice", index);
    for (size_t i = 0; i < r->launch.argument_count; i++)
        if (r->launch.arguments[i].index == index)
            return err_set(e, EXIT_USAGE, "argument %d is given twice", index);
    if (*p == '@')
        return read_part(r, index, p + 1, e);
    if (p[type] == '[')
        return read_array(r, index, p, e);
    if (!p[type] || !p[type + 1])
        return err_set(e, EXIT_USAGE, "a scalar needs ':' and a value");
    return read_line(r, e, "value buffer_%d %.*s = %s at %d", index, (int)type, p, p + type + 1,
                     index);
}

/* INDEX=TYPE:VALUE */
static bool read_constant(launch_request *r, const char *text, err *e) {
    size_t index = strcspn(text, "="), type = strcspn(text, ":");
    if (!text[index] || !text[type] || type < index)
        return err_set(e, EXIT_USAGE, "it has no '=', or no ':' and a value");
    return read_line(r, e, "constant %.*s %.*s = %s", (int)index, text, (int)(type - index - 1),
                     text + index + 1, text + type + 1);
}

static bool read_overread(launch_request *r, const char *p, err *e) {
    uint64_t index;
    if (!take_index(&p, 0, &index) || *p)
        return err_set(e, EXIT_USAGE, "it takes the index of a buffer");
    r->may_overread |= 1u << index;
    return true;
}

static bool read_threadgroup(launch_request *r, const char *p, err *e) {
    uint64_t index, bytes;
    if (!take_number(&p, LAUNCH_THREADGROUPS - 1, &index) || *p++ != '=' ||
        !take_number(&p, UINT32_MAX, &bytes) || *p || bytes == 0 || r->threadgroup_bytes[index])
        return err_set(e, EXIT_USAGE, "it takes INDEX=BYTES, each index once");
    r->threadgroup_bytes[index] = (uint32_t)bytes;
    return true;
}

static bool read_print(launch_request *r, const char *p, err *e) {
    uint64_t index, most = 0;
    if (!take_index(&p, 0, &index) ||
        (*p == ':' && (p++, !take_number(&p, SIZE_MAX, &most) || most == 0)) || *p)
        return err_set(e, EXIT_USAGE, "it takes an index and maybe a number of elements");
    r->has_print = r->print[index].wanted = true;
    r->print[index].most = most;
    return true;
}

static bool read_save(launch_request *r, const char *p, err *e) {
    uint64_t index;
    if (!take_index(&p, '=', &index) || !*p)
        return err_set(e, EXIT_USAGE, "it takes INDEX=PATH");
    r->save[index] = p;
    return true;
}

/* A position in the grid: unlike a size it may have zeros. */
static bool read_only(launch_request *r, const char *p, err *e) {
    bool ok = *p;
    for (int i = 0; ok && *p && i < 3; i++) {
        uint64_t at = 0;
        ok = take_number(&p, UINT32_MAX, &at) && (!*p || (*p == ',' && p[1]));
        r->only[i] = (uint32_t)at;
        p += ok && *p == ',';
    }
    r->has_only = true;
    return (ok && !*p) || err_set(e, EXIT_USAGE, "it takes the position of a threadgroup");
}

/* All ----------------------------------------------------------------------------------------- */

typedef bool option_reader(launch_request *r, const char *text, err *e);

static bool read_list(const option_list *list, const char *name, const char *example,
                      option_reader *read, launch_request *r, err *e) {
    for (size_t i = 0; i < list->count; i++) {
        err why;
        if (!read(r, list->items[i], &why))
            return err_set(e, why.code, "--%s '%.60s': %.120s; it is written like %s", name,
                           list->items[i], why.text, example);
    }
    return true;
}

static bool read_geometry(const launch_settings *s, launch_request *r, err *e) {
    if (!s->grid == !s->threads)
        return err_set(e, EXIT_USAGE,
                       "give the grid either as --grid (threadgroups) or as --threads");
    if (!s->group)
        return err_set(e, EXIT_USAGE, "give the threads of a threadgroup with --group");
    launch sized = {.kernel = NULL};
    err why;
    return (read_line(r, &why, "kernel launch group %s %s %s", s->group,
                      s->grid ? "groups" : "dispatch", s->grid ? s->grid : s->threads) &&
            describe_set_grid(&r->launch, &r->launch.grids[0], &sized, &why)) ||
           err_set(e, EXIT_USAGE,
                   "--group and --%s take one to three whole numbers above 0, such as 64 or 8,8,1: "
                   "%.120s",
                   s->grid ? "grid" : "threads", why.text);
}

/* What is wrong with the file is said before anything about its launch. */
static bool check_file(const char *path, err *e) {
    FILE *file = fopen(path, "r");
    if (!file)
        return err_set(e, EXIT_USAGE, "cannot read %.200s: %s", path, strerror(errno));
    fclose(file);
    return true;
}

bool launch_options_read(const launch_settings *s, const char *const *names, size_t count,
                         const char *verb, launch_request *r, err *e) {
    const option_list only = {.items = {s->only}, .count = s->only != NULL};
    if (count > 0 && !check_file(names[0], e))
        return false;
    if (count != 2)
        return err_set(e, EXIT_USAGE,
                       "%s takes a file and the name of a kernel in it, as in assay %s "
                       "kernels/buffer_copy.metal buffer_copy",
                       verb, verb);
    r->file = names[0];
    r->kernel = names[1];
    r->folders = s->folders.items;
    r->folder_count = s->folders.count;
    r->macros = s->macros.items;
    r->macro_count = s->macros.count;
    return read_list(&s->overreads, "allow-overread", "3", read_overread, r, e) &&
           read_list(&s->args, "arg", "0=f32[1024]:ramp or 2=u32:576", read_arg, r, e) &&
           read_list(&s->constants, "constant", "0=u32:64 (a bool is u8:0 or u8:1)", read_constant,
                     r, e) &&
           read_list(&s->threadgroups, "threadgroup", "0=1024", read_threadgroup, r, e) &&
           read_list(&s->prints, "print", "1 or 1:64", read_print, r, e) &&
           read_list(&s->saves, "save", "1=out.bin", read_save, r, e) &&
           read_list(&only, "only", "7 or 0,3,1", read_only, r, e) && read_geometry(s, r, e);
}

bool launch_options_read_file(launch_settings *s, const option *options, size_t option_count,
                              const char **names, size_t *count, err *e) {
    enum { MOST_WORDS = 1024, MOST_BYTES = 1 << 20 };
    static const char *words[MOST_WORDS + 2];
    int used = 0;
    char *text = os_read_plain(s->args_file, MOST_BYTES, NULL, e);
    if (!text)
        return false;
    for (char *p = text; *p;) {
        p += strspn(p, " \t\r\n");
        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        size_t n = strcspn(p, " \t\r\n");
        if (n == 0)
            break;
        if (used == MOST_WORDS)
            return err_set(e, EXIT_USAGE, "%.160s has more than %d words", s->args_file,
                           MOST_WORDS);
        words[used++] = p;
        p += n;
        if (*p)
            *p++ = 0;
    }
    bool help = false;
    if (!options_parse(options, option_count, &used, words, &help, e))
        return false;
    static char beside[PATH_MAX];
    for (int i = 0; i < used; i++) {
        /* A .metal file that is not in the current folder is beside the file of words. */
        size_t folder = (size_t)(path_get_name(s->args_file) - s->args_file);
        if (*count == 0 && words[i][0] != '/' && access(words[i], R_OK) != 0 &&
            path_print(beside, sizeof beside, e, "%.*s%s", (int)folder, s->args_file, words[i]))
            words[i] = beside;
        if (*count == 2)
            return err_set(e, EXIT_USAGE, "%.160s: '%.80s' is one name too many", s->args_file,
                           words[i]);
        names[(*count)++] = words[i];
    }
    return true;
}
