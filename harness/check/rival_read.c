/* rival_read: the lines of a description of a rival's launch (rival.h). Owns their grammar;
 * expressions stay as they are. */
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/line.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "rival.h"

/* A reading: what is read into, what is looked for, and where it is. */
typedef struct {
    rival *out;
    int line;
    bool has_kernel;
    err *e;
} reader;

static bool refuse(const reader *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(const reader *d, const char *format, ...) {
    char text[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const char *slash = strrchr(d->out->path, '/');
    return err_set(d->e, EXIT_USAGE, "%.40s:%d: %s", slash ? slash + 1 : d->out->path, d->line,
                   text);
}

static bool read_list(const reader *d, char *text, rival_expressions *out) {
    const char *parts[4];
    if (!line_split(text, parts, 4, &out->count))
        return false;
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = (rival_expression){parts[i], d->line};
    return true;
}

/* Lines --------------------------------------------------------------------------------------- */

static bool read_op(reader *d, char *rest) {
    rest[strcspn(rest, ":")] = 0;
    line_trim_end(rest);
    d->out->op = rest;
    return line_is_name(rest) || refuse(d, "op names the op whose problem it is, as in: op matvec");
}

/* One part of a kernel line: its word, then its text. */
static bool read_part(reader *d, rival *k, const char *word, char *text) {
    if (strcmp(word, "format") == 0)
        return *(k->format = text) != 0;
    if (strcmp(word, "group") == 0)
        return read_list(d, text, &k->group) && k->group.count <= 3;
    if (strcmp(word, "threadgroup") == 0)
        return read_list(d, text, &k->threadgroup);
    bool is_grid = strcmp(word, "threads") == 0 || strcmp(word, "groups") == 0 ||
                   strcmp(word, "dispatch") == 0;
    if (!is_grid || k->grid_kind)
        return false;
    k->grid_kind = word[0];
    return read_list(d, text, &k->grid) && k->grid.count <= 3;
}

static bool read_kernel(reader *d, char *rest) {
    static const char *const words[] = {"format",   "group",       "threads", "groups",
                                        "dispatch", "threadgroup", NULL};
    rival k = {.given = line_take_word(&rest)};
    bool ok = line_is_name(k.given);
    while (ok && *(rest = line_skip_blanks(rest))) {
        const char *word = line_take_word(&rest);
        ok = read_part(d, &k, word, line_take_until(&rest, words));
    }
    if (!ok || k.group.count == 0 || !k.grid_kind)
        return refuse(d, "a kernel is given as: kernel NAME [format F] group THREADS "
                         "threads|groups|dispatch COUNT [threadgroup BYTES]");
    d->has_kernel = true;
    rival *r = d->out;
    if (strcmp(k.given, r->kernel) != 0)
        return true;
    if (r->kernel_line)
        return refuse(d, "'%.60s' is given twice: see line %d", k.given, r->kernel_line);
    r->format = k.format;
    r->grid_kind = k.grid_kind;
    r->group = k.group;
    r->grid = k.grid;
    r->threadgroup = k.threadgroup;
    r->kernel_line = d->line;
    return true;
}

static bool add_argument(reader *d, const rival_argument *a) {
    rival *r = d->out;
    if (!line_is_name(a->name))
        return refuse(d, "a name has letters, digits and _, and '%.40s' is none", a->name);
    for (size_t i = 0; i < r->argument_count; i++) {
        const rival_argument *other = &r->arguments[i];
        if (other->index == a->index)
            return refuse(d, "buffer index %d is that of '%.40s' already", a->index, other->name);
        if (strcmp(other->name, a->name) == 0)
            return refuse(d, "'%.40s' is given twice: see line %d", a->name, other->line);
    }
    if (r->argument_count == RIVAL_ARGUMENTS || a->index >= LAUNCH_BUFFERS)
        return refuse(d, "buffer index %d is too large: there are %d", a->index, LAUNCH_BUFFERS);
    r->arguments[r->argument_count++] = *a;
    return true;
}

static bool read_index(const char *text, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return isdigit((unsigned char)*text) && !*end && value <= 65535;
}

/* [at I] [overread] */
static bool read_options(reader *d, rival_argument *a, char *rest) {
    for (char *word; *(word = line_take_word(&rest));) {
        bool is_at = strcmp(word, "at") == 0;
        if (is_at ? !read_index(line_take_word(&rest), &a->index)
                  : strcmp(word, "overread") != 0 || a->access != ACCESS_READ)
            return refuse(d, "after '%.40s' come only at INDEX, and overread of an input", a->name);
        a->overread = a->overread || !is_at;
    }
    return true;
}

/* The one after the last. */
static rival_argument new_argument(const reader *d, rival_kind kind) {
    const rival *r = d->out;
    int next = r->argument_count ? r->arguments[r->argument_count - 1].index + 1 : 0;
    return (rival_argument){.kind = kind, .index = next, .line = d->line};
}

static bool read_buffer(reader *d, access_mode access, char *rest) {
    rival_argument a = new_argument(d, RIVAL_BUFFER);
    a.access = access;
    a.name = line_take_word(&rest);
    return read_options(d, &a, rest) && add_argument(d, &a);
}

static bool read_in(reader *d, char *rest) {
    return read_buffer(d, ACCESS_READ, rest);
}

static bool read_out(reader *d, char *rest) {
    return read_buffer(d, ACCESS_WRITE, rest);
}

static bool read_inout(reader *d, char *rest) {
    d->out->adds = true;
    return read_buffer(d, ACCESS_BOTH, rest);
}

/* TYPE = EXPRESSION [at I]; what comes from `at` on is left in *rest. */
static bool read_scalar(reader *d, const char *line, char **rest, elem *type,
                        rival_expression *value) {
    static const char *const words[] = {"at", NULL};
    const char *name = line_take_word(rest), *equals = line_take_word(rest);
    *value = (rival_expression){line_take_until(rest, words), d->line};
    if (!elem_find(name, type))
        return refuse(d,
                      "there is no type '%.40s' (valid: f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 "
                      "u64)",
                      name);
    return (strcmp(equals, "=") == 0 && *value->text) ||
           refuse(d, "a %s is given as: %s %s TYPE = EXPRESSION", line, line,
                  strcmp(line, "constant") == 0 ? "INDEX" : "NAME");
}

static bool read_value(reader *d, char *rest) {
    rival_argument a = new_argument(d, RIVAL_VALUE);
    a.name = line_take_word(&rest);
    return read_scalar(d, "value", &rest, &a.type, &a.value) && read_options(d, &a, rest) &&
           add_argument(d, &a);
}

static bool read_struct(reader *d, char *rest) {
    rival_argument a = new_argument(d, RIVAL_STRUCT);
    a.name = line_take_word(&rest);
    a.first_field = d->out->field_count;
    return read_options(d, &a, rest) && add_argument(d, &a);
}

static bool read_field(reader *d, char *rest) {
    rival *r = d->out;
    rival_argument *of = r->argument_count ? &r->arguments[r->argument_count - 1] : NULL;
    const char *name = line_take_word(&rest);
    if (!of || of->kind != RIVAL_STRUCT)
        return refuse(d, "the field '%.40s' does not follow a line struct NAME", name);
    if (r->field_count == RIVAL_FIELDS)
        return refuse(d, "more than %d fields", RIVAL_FIELDS);
    rival_scalar *f = &r->fields[r->field_count];
    if (!read_scalar(d, "field", &rest, &f->type, &f->value))
        return false;
    r->field_count++;
    of->field_count++;
    return !*rest || refuse(d, "a field has no index of its own");
}

static bool read_constant(reader *d, char *rest) {
    rival *r = d->out;
    if (r->constant_count == RIVAL_CONSTANTS)
        return refuse(d, "more than %d function constants", RIVAL_CONSTANTS);
    rival_scalar *c = &r->constants[r->constant_count];
    const char *index = line_take_word(&rest);
    if (!read_index(index, &c->index))
        return refuse(d, "a constant is given by its index, as in: constant 0 u32 = 64");
    for (size_t i = 0; i < r->constant_count; i++)
        if (r->constants[i].index == c->index)
            return refuse(d, "constant %d is given twice", c->index);
    r->constant_count++;
    return read_scalar(d, "constant", &rest, &c->type, &c->value);
}

static bool read_needs(reader *d, char *rest) {
    if (d->out->needs.text || !*rest)
        return refuse(d, "needs takes one expression, once");
    d->out->needs = (rival_expression){rest, d->line};
    return true;
}

static bool read_extra(reader *d, char *rest, const char **list, size_t *count) {
    if (!*rest || *count == RIVAL_EXTRAS)
        return refuse(d, "include and define take one thing each, %d times at most", RIVAL_EXTRAS);
    list[(*count)++] = rest;
    return true;
}

static bool read_include(reader *d, char *rest) {
    return read_extra(d, rest, d->out->includes, &d->out->include_count);
}

static bool read_define(reader *d, char *rest) {
    return read_extra(d, rest, d->out->macros, &d->out->macro_count);
}

static const struct {
    const char *word;
    bool (*read)(reader *d, char *rest);
} readers[] = {
    {"op", read_op},         {"kernel", read_kernel},   {"in", read_in},
    {"out", read_out},       {"inout", read_inout},     {"value", read_value},
    {"struct", read_struct}, {"field", read_field},     {"constant", read_constant},
    {"needs", read_needs},   {"include", read_include}, {"define", read_define},
};

static bool read_line(reader *d, char *line) {
    char *rest, *word = line_take_keyword(line, &rest);
    if (!*word)
        return true;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(readers[i].word, word) == 0)
            return readers[i].read(d, rest);
    return refuse(d,
                  "there is no line '%.40s' (valid: op kernel in out inout value struct field "
                  "constant needs include define)",
                  word);
}

static bool check_whole(const reader *d) {
    const rival *r = d->out;
    bool has_output = false;
    for (size_t i = 0; i < r->argument_count; i++)
        has_output = has_output || (r->arguments[i].access & ACCESS_WRITE);
    const char *missing = !r->op           ? "op"
                          : !d->has_kernel ? "kernel"
                          : !has_output    ? "out or inout"
                                           : NULL;
    return !missing || refuse(d, "the description has no line '%s'", missing);
}

bool rival_read(rival *r, const char *path, err *e) {
    size_t bytes;
    reader d = {.out = r, .line = 1, .e = e};
    r->path = path;
    if (!(r->text = os_read_file(path, &bytes, e)))
        return false;
    for (char *line = r->text, *next; line; line = next, d.line++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!read_line(&d, line))
            return false;
    }
    d.line--;
    return check_whole(&d);
}

/* The kernel ---------------------------------------------------------------------------------- */

static bool read_given(rival *r, const char *given, err *e) {
    const char *colon = strrchr(given, ':');
    size_t length = colon ? (size_t)(colon - given) : 0;
    if (length < 7 || strncmp(colon - 6, ".metal", 6) != 0 || !line_is_name(colon + 1))
        return err_set(e, EXIT_USAGE,
                       "a kernel of others is given as FILE.metal:KERNEL, not as '%.120s'", given);
    const char *name = colon;
    while (name > given && name[-1] != '/')
        name--;
    size_t folder = (size_t)(name - given), file = (size_t)(colon - name);
    if (folder >= sizeof r->folder || file >= sizeof r->file || strlen(colon) > sizeof r->kernel)
        return err_set(e, EXIT_USAGE, "the name '%.80s...' is too long", given);
    r->given = given;
    if (folder > 1)
        snprintf(r->folder, sizeof r->folder, "%.*s", (int)folder - 1, given);
    else
        snprintf(r->folder, sizeof r->folder, "%s", folder ? "/" : ".");
    snprintf(r->file, sizeof r->file, "%.*s", (int)file, name);
    snprintf(r->kernel, sizeof r->kernel, "%s", colon + 1);
    snprintf(r->name, sizeof r->name, "%.40s:%.54s", r->file, r->kernel);
    char path[PATH_MAX];
    return path_join(path, sizeof path, e, r->folder, r->file) &&
           (access(path, R_OK) == 0 || err_set(e, EXIT_USAGE, "cannot read %.200s", path));
}

/* Folders of includes are seen from that of the kernel. */
static bool find_folders(rival *r, err *e) {
    r->folders = calloc(r->include_count + 1, PATH_MAX);
    assert(r->folders);
    for (size_t i = 0; i < r->include_count; i++) {
        char *path = r->folders + i * PATH_MAX;
        if (!path_join(path, PATH_MAX, e, r->folder, r->includes[i]))
            return false;
        r->includes[i] = path;
    }
    return true;
}

static msl_extras get_extras(const rival *r) {
    return (msl_extras){r->includes, r->macros, r->include_count, r->macro_count, 0, false};
}

static bool check_kernel(const rival *r, err *e) {
    char path[PATH_MAX];
    msl_extras extras = get_extras(r);
    if (!path_join(path, sizeof path, e, r->folder, r->file))
        return false;
    msl_unit *unit = msl_load_with(path, &extras, e);
    bool ok = unit && msl_find_kernel(unit, r->kernel, e);
    msl_free(unit);
    return ok;
}

static void close_description(rival *r) {
    free(r->text);
    free(r->folders);
}

bool rival_open(rival *r, const char *given, const char *const *descriptions, size_t count,
                err *e) {
    rival fresh = {.text = NULL};
    *r = (rival){.text = NULL};
    if (!read_given(&fresh, given, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        close_description(r);
        *r = fresh;
        if (!rival_read(r, descriptions[i], e))
            return false;
        if (r->kernel_line)
            return find_folders(r, e) && check_kernel(r, e);
    }
    if (count == 0)
        return err_set(e, EXIT_USAGE,
                       "--launch FILE says how the threads and arguments of %.100s are laid out: "
                       "see docs/side-by-side.md",
                       fresh.kernel);
    return err_set(e, EXIT_USAGE, "%.100s has no line 'kernel %.100s ...'", descriptions[count - 1],
                   fresh.kernel);
}

void rival_close(rival *r) {
    close_description(r);
    *r = (rival){.text = NULL};
}

library *rival_new_library(const rival *r, device *d, err *e) {
    library *lib = library_new(d, r->folder, e);
    msl_extras extras = get_extras(r);
    if (lib)
        library_set_extras(lib, &extras);
    return lib;
}
