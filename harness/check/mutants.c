/* mutants: see mutants.h. Owns which mutants there are; runs nothing. */
#include "mutants.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/device/tape.h"

enum { MAX_SOURCES = 16 };

/* Files --------------------------------------------------------------------------------------- */

static int is_visible(const struct dirent *d) {
    return d->d_name[0] != '.';
}

static bool read_file(const char *folder, const char *name, mutant_list *l, err *e) {
    char path[PATH_MAX];
    l->files = realloc(l->files, (l->file_count + 1) * sizeof *l->files);
    assert(l->files);
    mutant_file *f = &l->files[l->file_count];
    *f = (mutant_file){.source = NULL};
    if (!path_print(path, sizeof path, e, "%s/%s", folder, name) ||
        !path_print(f->name, sizeof f->name, e, "%s", name))
        return false;
    f->source = os_read_file(path, NULL, e);
    l->file_count += f->source != NULL;
    return f->source != NULL;
}

/* The files in `inside`: "", or a subfolder and a slash. */
static bool read_folder(const char *folder, const char *inside, mutant_list *l, err *e) {
    char path[PATH_MAX];
    struct dirent **entries;
    if (!path_print(path, sizeof path, e, "%s/%s", folder, inside))
        return false;
    int n = scandir(path, &entries, is_visible, alphasort);
    if (n < 0)
        return *inside || err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", folder);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char name[PATH_MAX];
        const char *own = entries[i]->d_name;
        ok = ok && path_print(name, sizeof name, e, "%s%s", inside, own);
        if (ok && (path_ends_with(own, ".metal") || path_ends_with(own, ".h")))
            ok = read_file(folder, name, l, e);
        else if (ok && !*inside && !strchr(own, '.')) {
            strcat(name, "/");
            ok = read_folder(folder, name, l, e);
        }
        free(entries[i]);
    }
    free(entries);
    return ok;
}

/* Writes a file of a list, in the folder that its name says. */
static bool write_file(const char *folder, const mutant_file *f, err *e) {
    char path[PATH_MAX];
    const char *slash = strchr(f->name, '/');
    if (snprintf(path, sizeof path, "%s/%.*s", folder, slash ? (int)(slash - f->name) : 0,
                 f->name) >= (int)sizeof path ||
        !os_make_folder(path, e) ||
        snprintf(path, sizeof path, "%s/%s", folder, f->name) >= (int)sizeof path)
        return err_set(e, EXIT_CANNOT, "cannot write %.60s in the scratch folder", f->name);
    return os_write_file(path, f->source, strlen(f->source), e);
}

bool mutants_copy(const char *from, const char *to, err *e) {
    mutant_list l = {0};
    bool ok = os_make_folder(to, e) && read_folder(from, "", &l, e);
    for (size_t i = 0; ok && i < l.file_count; i++)
        ok = write_file(to, &l.files[i], e);
    mutants_free(&l);
    return ok;
}

/* The part of a path after a folder; NULL if it is elsewhere. */
static const char *find_inside(const char *path, const char *folder) {
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    return path + n + (path[n] == '/');
}

bool mutants_prepare(err *e) {
    static char folders[LIBRARY_INCLUDES][PATH_MAX];
    static const char *list[LIBRARY_INCLUDES];
    library_project p = *library_get_project(NULL);
    char path[PATH_MAX], kernels[PATH_MAX];
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib && path_print(path, sizeof path, e, "%s", library_get_folder(lib));
    library_free(lib);
    if (!ok || !realpath(path, kernels))
        return ok; /* a folder that is missing is the reader's to report */
    size_t count = 0;
    for (size_t i = 0; ok && i < p.include_count && count + 2 <= LIBRARY_INCLUDES; i++) {
        ok = path_join(path, sizeof path, e, kernels, p.includes[i]);
        if (!ok || !realpath(path, folders[i]))
            continue;
        const char *inside = find_inside(folders[i], kernels);
        if (inside)
            list[count++] = inside;
        list[count++] = folders[i]; /* also what is not copied */
    }
    p.includes = list;
    p.include_count = count;
    library_set_project(&p);
    return ok;
}

/* The file that `name` means in a file of the folder `folder`. */
static mutant_file *find_file(const mutant_list *l, const char *folder, size_t folder_length,
                              const char *name, size_t length) {
    for (size_t i = 0; i < l->file_count; i++) {
        const char *own = l->files[i].name;
        if (strlen(own) == folder_length + length && memcmp(own, folder, folder_length) == 0 &&
            memcmp(own + folder_length, name, length) == 0)
            return &l->files[i];
    }
    return NULL;
}

/* A file and what it includes. */
typedef struct {
    mutant_file *files[MAX_SOURCES];
    size_t count;
} sources;

/* What an #include in a file of the folder `folder` means: a file beside it, or one in an include
 * folder of the project. Those outside of the kernels are not mutated. */
static mutant_file *find_included(const mutant_list *l, const char *folder, size_t folder_length,
                                  const char *name, size_t length) {
    const library_project *p = library_get_project(NULL);
    mutant_file *found = find_file(l, folder, folder_length, name, length);
    for (size_t i = 0; !found && i < p->include_count; i++) {
        char path[PATH_MAX];
        const char *include = p->includes[i];
        if (include[0] != '/' &&
            path_print(path, sizeof path, NULL, "%s%s", include, *include ? "/" : ""))
            found = find_file(l, path, strlen(path), name, length);
    }
    return found;
}

static void add_sources(const mutant_list *l, mutant_file *f, sources *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->files[i] == f)
            return;
    if (!f || s->count == MAX_SOURCES)
        return;
    s->files[s->count++] = f;
    const char *slash = strrchr(f->name, '/');
    size_t folder = slash ? (size_t)(slash - f->name) + 1 : 0;
    for (const char *p = f->source; (p = strstr(p, "#include \""));) {
        p += strlen("#include \"");
        add_sources(l, find_included(l, f->name, folder, p, strcspn(p, "\"\n")), s);
    }
}

/* Mutants ------------------------------------------------------------------------------------- */

typedef struct {
    const kernel_case *first; /* a case of it */
    sources sources;
    mutate_parts parts;
    size_t turn; /* 0 for the first kernel of its op and axes, 1 for the second, ... */
} kernel_parts;

static bool has_same_axes(const kernel_case *a, const kernel_case *b) {
    const kernel *x = a->kernel, *y = b->kernel;
    return a->op == b->op && x->format == y->format && x->accumulates == y->accumulates &&
           !x->tokens == !y->tokens;
}

static bool read_kernels(const char *folder, const mutant_list *l, const case_list *cases,
                         kernel_parts *out, size_t *count, err *e) {
    library *lib = library_new(NULL, folder, e);
    bool ok = lib != NULL;
    *count = 0;
    for (size_t i = 0; ok && i < cases->count; i++) {
        const kernel_case *c = &cases->items[i];
        bool is_msl = path_ends_with(c->kernel->file, ".metal"); /* or a description is wrong */
        if (!is_msl || (*count > 0 && out[*count - 1].first->kernel == c->kernel))
            continue;
        kernel_parts *k = &out[*count];
        *k = (kernel_parts){.first = c};
        for (size_t j = 0; j < *count; j++)
            k->turn += has_same_axes(out[j].first, c);
        const char *file = c->kernel->file;
        add_sources(l, find_file(l, "", 0, file, strlen(file)), &k->sources);
        ++*count;
        const msl_unit *unit = library_find_unit(lib, file, e);
        const char *text = unit ? msl_get_expanded(unit) : NULL;
        ok = unit && mutate_find_parts(&text, 1, c->kernel->name, &k->parts, e);
    }
    library_free(lib);
    return ok;
}

static bool is_part(const kernel_parts *k, const mutant_file *f, const mutation *edit) {
    for (size_t i = 0; i < k->sources.count; i++)
        if (k->sources.files[i] == f)
            return mutate_has_part(&k->parts, edit->where);
    return false;
}

/* The first kernel of each op and its axes before the second of any. before: the last mutant of the list, or
 * NULL; one in the same part of the same file has the same kernels. */
static void find_kernels(const kernel_parts *kernels, size_t count, const mutant *before,
                         mutant *m) {
    m->kernels = array_new(count + 1, sizeof *m->kernels);
    if (before && before->file == m->file && strcmp(before->edit->where, m->edit->where) == 0) {
        m->kernel_count = before->kernel_count;
        memcpy(m->kernels, before->kernels, m->kernel_count * sizeof *m->kernels);
        return;
    }
    size_t last_turn = 0;
    for (size_t i = 0; i < count; i++)
        last_turn = kernels[i].turn > last_turn ? kernels[i].turn : last_turn;
    for (size_t turn = 0; turn <= last_turn; turn++)
        for (size_t i = 0; i < count; i++)
            if (kernels[i].turn == turn && is_part(&kernels[i], m->file, m->edit))
                m->kernels[m->kernel_count++] = kernels[i].first->kernel;
}

static void add_mutants(mutant_list *l, const mutant_file *f, const kernel_parts *kernels,
                        size_t count) {
    for (size_t i = 0; i < f->edits.count; i++) {
        mutant m = {.file = f, .edit = &f->edits.items[i]};
        find_kernels(kernels, count, l->count ? &l->items[l->count - 1] : NULL, &m);
        if (m.kernel_count == 0) {
            free(m.kernels);
            continue;
        }
        *ARRAY_ADD(l->items, l->count, l->room) = m;
    }
}

static bool is_used(const mutant_file *f, const kernel_parts *kernels, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < kernels[i].sources.count; j++)
            if (kernels[i].sources.files[j] == f)
                return true;
    return false;
}

bool mutants_find(const char *folder, const case_list *cases, mutant_list *out, err *e) {
    *out = (mutant_list){0};
    kernel_parts *kernels = array_new(cases->count + 1, sizeof *kernels);
    size_t count = 0;
    bool ok =
        read_folder(folder, "", out, e) && read_kernels(folder, out, cases, kernels, &count, e);
    for (size_t i = 0; ok && i < out->file_count; i++) {
        mutant_file *f = &out->files[i];
        if (!is_used(f, kernels, count))
            continue;
        ok = mutate_find(f->name, f->source, &f->edits, e);
        if (ok)
            add_mutants(out, f, kernels, count);
    }
    for (size_t i = 0; i < count; i++)
        mutate_free_parts(&kernels[i].parts);
    free(kernels);
    out->all = out->count;
    if (ok && out->count == 0)
        ok = err_set(e, EXIT_CANNOT, "nothing in %.160s can be mutated", folder);
    if (!ok)
        mutants_free(out);
    return ok;
}

void mutants_sample(mutant_list *l, size_t n, uint64_t seed) {
    rng r = rng_new(seed, "mutants");
    size_t kept = 0, left = l->count, wanted = n < left ? n : left;
    for (size_t i = 0; i < l->count; i++, left--) {
        if (wanted > 0 && rng_below(&r, (uint32_t)left) < wanted) {
            l->items[kept++] = l->items[i];
            wanted--;
        } else {
            free(l->items[i].kernels);
        }
    }
    l->count = kept;
}

void mutants_free(mutant_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].kernels);
    free(l->items);
    for (size_t i = 0; i < l->file_count; i++) {
        mutate_free(&l->files[i].edits);
        free(l->files[i].source);
    }
    free(l->files);
    *l = (mutant_list){0};
}
