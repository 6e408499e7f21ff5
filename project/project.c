#include "project.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/check/line.h"
#include "harness/check/op.h"
#include "harness/device/source_hash.h"
#include "kernels/ops.h"
#include "load.h"

enum { MAX_PATTERNS = 32, ROOT_SIZE = PATH_MAX - 512 };

/* What assay.project says. */
typedef struct {
    char root[ROOT_SIZE];
    char kernels[PATH_MAX];
    char *text; /* the others point into it */
    const char *patterns[MAX_PATTERNS];
    const char *includes[PROJECT_INCLUDES];
    size_t pattern_count, include_count;
    const char *fail, *accept[PROJECT_ACCEPTS];
    size_t accept_count;
} settings;

static bool split(char *value, const char **words, size_t most, size_t *count, int at_line,
                  err *e) {
    for (char *word = strtok(value, " \t"); word; word = strtok(NULL, " \t")) {
        if (*count == most)
            return err_set(e, EXIT_USAGE, PROJECT_FILE ":%d: more than %zu names", at_line, most);
        words[(*count)++] = word;
    }
    return true;
}

static bool read_line(settings *s, char *line, int at_line, err *e) {
    line[strcspn(line, "#")] = 0;
    line_trim_end(line);
    char *key = line_skip_blanks(line), *equals = strchr(line, '=');
    char *value = line_skip_blanks(equals ? equals + 1 : "");
    if (!*key)
        return true;
    if (equals)
        *equals = 0;
    line_trim_end(key);
    if (!*value)
        return err_set(e, EXIT_USAGE,
                       PROJECT_FILE ":%d: a line is `kernels = FOLDER` or `ops = "
                                    "FILES`, not '%.60s'",
                       at_line, key);
    if (strcmp(key, "kernels") == 0) {
        if (!path_join(s->kernels, sizeof s->kernels, NULL, s->root, value) ||
            !os_is_folder(s->kernels))
            return err_set(e, EXIT_USAGE, PROJECT_FILE ":%d: there is no folder of kernels %.160s",
                           at_line, value);
        return true;
    }
    if (strcmp(key, "ops") == 0)
        return split(value, s->patterns, MAX_PATTERNS, &s->pattern_count, at_line, e);
    if (strcmp(key, "include") == 0)
        return split(value, s->includes, PROJECT_INCLUDES, &s->include_count, at_line, e);
    if (strcmp(key, "fail") == 0)
        return (s->fail = value) != NULL;
    if (strcmp(key, "accept") == 0 && s->accept_count < PROJECT_ACCEPTS)
        return (s->accept[s->accept_count++] = value) != NULL;
    return err_set(e, EXIT_USAGE,
                   PROJECT_FILE ":%d: there is no setting '%.60s' (valid: kernels, ops, include, "
                                "fail, and %d times accept)",
                   at_line, key, PROJECT_ACCEPTS);
}

static bool read_settings(settings *s, err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" PROJECT_FILE, s->root);
    snprintf(s->kernels, sizeof s->kernels, "%s", s->root);
    if (!(s->text = os_read_source(path, 1 << 20, NULL, e)))
        return false;
    int at_line = 1;
    for (char *line = s->text, *next; line; line = next, at_line++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!read_line(s, line, at_line, e))
            return false;
    }
    if (s->pattern_count == 0) {
        s->patterns[s->pattern_count++] = "*.op";
        s->patterns[s->pattern_count++] = "*.c";
    }
    return true;
}

/* Ops ----------------------------------------------------------------------------------------- */

/* A project whose descriptions were read; it stays for the rest of the process, and so does the text of
 * its assay.project. */
typedef struct loaded_project {
    struct loaded_project *before;
    settings says;
    const op **ops; /* with the paths of their descriptions */
    const struct broken **refused;
    const char **files;
    size_t count, room, refused_count, refused_room, file_count, file_room;
    library_project sources;
} loaded_project;

static bool take_files(loaded_project *to, const op *o, const char *file, err *e) {
    for (size_t i = 0; i < o->kernel_count; i++) {
        const kernel *k = &o->kernels[i];
        if (!k->name || !k->file || k->group == 0)
            return err_set(e, EXIT_USAGE,
                           "%.80s: a kernel of the op %.60s has no name, no file or no group", file,
                           o->name);
        const op *other = NULL;
        for (size_t j = 0; j < to->count; j++)
            if (op_find_kernel(to->ops[j], k->name))
                other = to->ops[j];
        if (other)
            return err_set(e, EXIT_USAGE, "%.80s: the kernel %.60s belongs to the op %.60s already",
                           file, k->name, other->name);
        *ARRAY_ADD(to->files, to->file_count, to->file_room) = k->file;
    }
    return true;
}

static bool take_op(loaded_project *to, const op *o, const char *path, const char *file, err *e) {
    if (!o->name || !o->dims || !o->kernels || o->kernel_count == 0 || !o->build)
        return err_set(e, EXIT_USAGE,
                       "%.80s: the op %.60s needs a name, dims, kernels and a build function", file,
                       o->name ? o->name : "without a name");
    for (size_t i = 0; i < o->kernel_count; i++)
        if (op_get_shapes(o, &o->kernels[i])->count == 0)
            return err_set(e, EXIT_USAGE, "%.80s: the op %.60s has no shapes to check", file,
                           o->name);
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->ops[i]->name, o->name) == 0)
            return err_set(e, EXIT_USAGE, "%.80s: there is an op %.60s already", file, o->name);
    if (!take_files(to, o, file, e))
        return false;
    op *mine = array_new(1, sizeof *mine);
    *mine = *o;
    mine->source = strdup(path);
    *ARRAY_ADD(to->ops, to->count, to->room) = mine;
    return true;
}

static bool load_description(loaded_project *to, const char *path, err *e) {
    const char *name = path_get_name(path);
    bool is_text = path_ends_with(path, ".op");
    if (!is_text && !path_ends_with(path, ".c"))
        return err_set(e, EXIT_USAGE, "%.160s is no description of an op: it ends in .op or .c",
                       path);
    char *text = os_read_source(path, 1 << 20, NULL, e), hash[SOURCE_HASH_SIZE] = "";
    const op *described[2] = {text && is_text ? describe_load(path, text, e) : NULL, NULL};
    const op *const *ops = described;
    bool ok = text && (!is_text || described[0]);
    if (ok && !is_text) {
        source_hash_find(path, NULL, hash,
                         NULL); /* what cannot be read is the compiler's to report */
        ok = load_ops(&(load_source){.path = path, .text = text, .key = hash}, &ops, e);
    }
    for (size_t i = 0; ok && ops[i]; i++)
        ok = take_op(to, ops[i], path, name, e);
    free(text);
    return ok;
}

/* Descriptions that cannot be used ---------------------------------------------------------------- */

/* Each stands among the ops as one with a single case, which fails with what is wrong, so that the
 * others are run and the run as a whole does not pass. */
typedef struct broken {
    kernel kernel; /* first: a case knows it by this */
    char path[PATH_MAX], name[128];
    err why;
    op op;
} broken;

static const shape any_shape = {{1}};

static bool build_broken(kernel_case *c, err *e) {
    *e = ((const broken *)(const void *)c->kernel)->why;
    return false;
}

static void note_broken(loaded_project *to, const char *path, const err *why) {
    broken *b = array_new(1, sizeof *b);
    snprintf(b->path, sizeof b->path, "%s", path);
    snprintf(b->name, sizeof b->name, "%.120s", path_get_name(path));
    b->why = *why;
    b->kernel =
        (kernel){.name = b->name, .about = "its description is wrong", .file = b->name, .group = 1};
    b->op = (op){.name = b->name,
                 .about = b->why.text,
                 .dims = "n",
                 .kernels = &b->kernel,
                 .kernel_count = 1,
                 .shapes = {&any_shape, 1, {{0}}},
                 .build = build_broken,
                 .source = b->path};
    *ARRAY_ADD(to->refused, to->refused_count, to->refused_room) = b;
}

/* If nothing else is left, the first of them is the error. */
static bool add_broken(loaded_project *to, err *e) {
    if (to->refused_count > 0 && to->count == 0) {
        *e = to->refused[0]->why;
        return false;
    }
    for (size_t i = 0; i < to->refused_count; i++)
        *ARRAY_ADD(to->ops, to->count, to->room) = &to->refused[i]->op;
    return true;
}

static bool load_pattern(loaded_project *to, const char *pattern, err *e) {
    char root[PATH_MAX], full[PATH_MAX];
    size_t n = 0;
    for (const char *p = to->says.root; *p && n + 2 < sizeof root; root[n++] = *p++)
        if (strchr("*?[\\", *p))
            root[n++] = '\\';
    root[n] = 0;
    if (!path_print(full, sizeof full, e, "%s/%s", root, pattern))
        return false;
    glob_t found = {0};
    int status = glob(full, GLOB_ERR, NULL, &found);
    bool may_be_none = status == GLOB_NOMATCH && strpbrk(pattern, "*?[");
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++) {
        err why;
        if (!load_description(to, found.gl_pathv[i], &why))
            note_broken(to, found.gl_pathv[i], &why);
    }
    globfree(&found);
    return status == 0 || may_be_none ||
           err_set(e, EXIT_USAGE, PROJECT_FILE " lists %.120s, which %s", pattern,
                   status == GLOB_NOMATCH ? "is missing" : "cannot be read");
}

bool project_find_sources(library_project *out, err *e) {
    static char kernels[PATH_MAX], folders[PROJECT_INCLUDES][PATH_MAX];
    static const char *includes[PROJECT_INCLUDES];
    settings s = {.text = NULL};
    const char *given = getenv("ASSAY_KERNELS");
    bool ok = !root_find_project(s.root, sizeof s.root) || read_settings(&s, e);
    ok = ok && path_print(kernels, sizeof kernels, e, "%s", given && *given ? given : s.kernels);
    for (size_t i = 0; ok && i < s.include_count; i++) {
        ok = path_join(folders[i], sizeof folders[i], e, kernels, s.includes[i]);
        includes[i] = folders[i];
    }
    free(s.text);
    *out = (library_project){kernels[0] ? kernels : NULL, NULL, 0, includes, s.include_count};
    return ok;
}

bool project_use_sources(err *e) {
    library_project found;
    if (!project_find_sources(&found, e))
        return false;
    if (found.folder)
        library_set_project(&found);
    return true;
}

static loaded_project *load_project(const char *root, err *e) {
    static loaded_project *all;
    loaded_project *to = array_new(1, sizeof *to);
    settings *s = &to->says;
    to->before = all;
    all = to;
    snprintf(s->root, sizeof s->root, "%s", root);
    bool ok = read_settings(s, e);
    for (size_t i = 0; ok && i < s->pattern_count; i++)
        ok = load_pattern(to, s->patterns[i], e);
    ok = ok && add_broken(to, e);
    if (ok && to->count == 0)
        ok = err_set(e, EXIT_USAGE,
                     "the project %.120s has no descriptions of ops: it needs a NAME.op or NAME.c, "
                     "see assay init",
                     s->root);
    to->sources =
        (library_project){s->kernels, to->files, to->file_count, s->includes, s->include_count};
    return ok ? to : NULL;
}

bool project_load(err *e) {
    char root[ROOT_SIZE];
    if (!root_find_project(root, sizeof root))
        return true;
    const loaded_project *own = load_project(root, e);
    if (!own)
        return false;
    library_set_project(&own->sources);
    registry_use(own->ops, own->count);
    return true;
}

/* Is it a project, or the folder of the kernels of one above it? */
static bool find_version(const char *folder, char root[ROOT_SIZE]) {
    char path[PATH_MAX], kernels[PATH_MAX];
    settings above = {.text = NULL};
    if (!realpath(folder, path) || !root_find_above(path, root, ROOT_SIZE))
        return false;
    if (strcmp(path, root) == 0)
        return true;
    memcpy(above.root, root, sizeof above.root);
    bool is_one = read_settings(&above, NULL) && realpath(above.kernels, kernels) &&
                  strcmp(path, kernels) == 0;
    free(above.text);
    return is_one;
}

bool project_load_version(const char *folder, project_version *out, err *e) {
    char root[ROOT_SIZE];
    *out = (project_version){.ops = NULL};
    if (!find_version(folder, root))
        return true;
    const loaded_project *p = load_project(root, e);
    if (p)
        *out = (project_version){p->ops,       p->count,       &p->sources,
                                 p->says.fail, p->says.accept, p->says.accept_count};
    return p != NULL;
}
