/* launch_options: see launch_options.h. */
#include "launch_options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/path.h"

static bool read_args(const launch_settings *s, launch_request *r, err *e) {
    for (size_t i = 0; i < s->args.count; i++) {
        argument a;
        if (!argument_parse(s->args.items[i], &a, e))
            return false;
        for (size_t k = 0; k < r->arg_count; k++)
            if (r->args[k].index == a.index)
                return err_set(e, EXIT_USAGE, "--arg %d is given twice", a.index);
        r->args[r->arg_count++] = a;
    }
    for (size_t i = 0; i < s->constants.count; i++) {
        constant_value c;
        if (!argument_parse_constant(s->constants.items[i], &c, e))
            return false;
        for (size_t k = 0; k < r->constant_count; k++)
            if (r->constants[k].index == c.index)
                return err_set(e, EXIT_USAGE, "--constant %u is given twice", c.index);
        r->constants[r->constant_count++] = c;
    }
    return true;
}

static bool read_threadgroups(const launch_settings *s, launch_request *r, err *e) {
    for (size_t i = 0; i < s->threadgroups.count; i++) {
        const char *text = s->threadgroups.items[i], *p;
        uint64_t index, bytes;
        if (!argument_parse_number(text, LAUNCH_THREADGROUPS - 1, &index, &p) || *p != '=' ||
            !argument_parse_number(p + 1, UINT32_MAX, &bytes, &p) || *p || bytes == 0)
            return err_set(e, EXIT_USAGE,
                           "--threadgroup takes INDEX=BYTES, such as 0=1024, not '%.40s'", text);
        if (r->threadgroup_bytes[index])
            return err_set(e, EXIT_USAGE, "--threadgroup %" PRIu64 " is given twice", index);
        r->threadgroup_bytes[index] = (uint32_t)bytes;
    }
    return true;
}

static bool read_results(const launch_settings *s, launch_request *r, err *e) {
    for (size_t i = 0; i < s->prints.count; i++) {
        const char *text = s->prints.items[i], *p;
        uint64_t index, most = 0;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) ||
            (*p == ':' && (!argument_parse_number(p + 1, SIZE_MAX, &most, &p) || most == 0)) || *p)
            return err_set(e, EXIT_USAGE,
                           "--print takes an index and maybe a number of elements, such as 1 or "
                           "1:64, not '%.40s'",
                           text);
        r->has_print = r->print[index].wanted = true;
        r->print[index].most = most;
    }
    for (size_t i = 0; i < s->saves.count; i++) {
        const char *text = s->saves.items[i], *p;
        uint64_t index;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) || *p != '=' || !p[1])
            return err_set(e, EXIT_USAGE, "--save takes INDEX=PATH, such as 1=out.bin, not '%.40s'",
                           text);
        r->save[index] = p + 1;
    }
    return true;
}

static bool read_overreads(const launch_settings *s, launch_request *r, err *e) {
    for (size_t i = 0; i < s->overreads.count; i++) {
        const char *text = s->overreads.items[i], *p;
        uint64_t index;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) || *p)
            return err_set(e, EXIT_USAGE,
                           "--allow-overread takes the index of a buffer, not '%.40s'", text);
        r->may_overread |= 1u << index;
    }
    return true;
}

/* A position in the grid: unlike a size it may have zeros. */
static bool read_only(const launch_settings *s, launch_request *r, err *e) {
    const char *p = s->only;
    bool ok = true;
    for (int i = 0; ok && p && *p && i < 3; i++) {
        uint64_t at = 0;
        ok = argument_parse_number(p, UINT32_MAX, &at, &p) && (!*p || (*p == ',' && p[1]));
        r->only[i] = (uint32_t)at;
        p += ok && *p == ',';
    }
    r->has_only = s->only != NULL;
    return !s->only || (ok && *s->only && !*p) ||
           err_set(e, EXIT_USAGE,
                   "--only takes the position of a threadgroup, such as 7 or 0,3,1, not '%.40s'",
                   s->only);
}

static bool read_geometry(const launch_settings *s, launch_request *r, err *e) {
    if (!s->grid == !s->threads)
        return err_set(e, EXIT_USAGE,
                       "give the grid either as --grid (threadgroups) or as --threads");
    if (!s->group)
        return err_set(e, EXIT_USAGE, "give the threads of a threadgroup with --group");
    r->grid_is_threads = s->threads != NULL;
    return argument_parse_size(r->grid_is_threads ? "threads" : "grid",
                               r->grid_is_threads ? s->threads : s->grid, &r->grid, e) &&
           argument_parse_size("group", s->group, &r->group, e) && read_only(s, r, e);
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
    return read_overreads(s, r, e) && read_args(s, r, e) && read_threadgroups(s, r, e) &&
           read_results(s, r, e) && read_geometry(s, r, e);
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
