/* mutants: see mutants.h. Owns which mutants there are; runs nothing. */
#include "mutants.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "harness/base/os.h"

enum { MAX_SOURCES = 16 };

static bool has_ending(const char *name, const char *ending) {
    size_t n = strlen(name), k = strlen(ending);
    return n > k && strcmp(name + n - k, ending) == 0;
}

/* Files --------------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_source(const struct dirent *d) {
    return (has_ending(d->d_name, ".metal") || has_ending(d->d_name, ".h")) &&
           strlen(d->d_name) < sizeof((mutant_file *)0)->name;
}

static bool read_file(const char *folder, const char *name, mutant_file *f, err *e) {
    char path[PATH_MAX];
    snprintf(f->name, sizeof f->name, "%.63s", name);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return err_set(e, EXIT_USAGE, "the path of the kernels folder is too long");
    f->source = os_read_file(path, NULL, e);
    return f->source != NULL;
}

static bool read_folder(const char *folder, mutant_list *l, err *e) {
    struct dirent **entries;
    int n = scandir(folder, &entries, is_source, by_name);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", folder);
    l->files = calloc((size_t)n + 1, sizeof *l->files);
    assert(l->files);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && read_file(folder, entries[i]->d_name, &l->files[l->file_count], e);
        l->file_count += ok;
        free(entries[i]);
    }
    free(entries);
    return ok;
}

bool mutants_copy(const char *from, const char *to, err *e) {
    mutant_list l = {0};
    bool ok = os_make_folder(to, e) && read_folder(from, &l, e);
    for (size_t i = 0; ok && i < l.file_count; i++) {
        char path[PATH_MAX];
        ok = snprintf(path, sizeof path, "%s/%s", to, l.files[i].name) < (int)sizeof path
                 ? os_write_file(path, l.files[i].source, strlen(l.files[i].source), e)
                 : err_set(e, EXIT_CANNOT, "the path of the scratch folder is too long");
    }
    mutants_free(&l);
    return ok;
}

static mutant_file *find_file(const mutant_list *l, const char *name, size_t length) {
    for (size_t i = 0; i < l->file_count; i++)
        if (strlen(l->files[i].name) == length && memcmp(l->files[i].name, name, length) == 0)
            return &l->files[i];
    return NULL;
}

/* Where a kernel is: in the file of its op, or else in the first that has its name in it. */
static mutant_file *find_kernel_file(const mutant_list *l, const test_case *c) {
    char name[128];
    int n = snprintf(name, sizeof name, "%.100s.metal", c->op->name);
    mutant_file *own = find_file(l, name, (size_t)n);
    if (own && mutate_has_kernel(own->source, c->kernel->name))
        return own;
    for (size_t i = 0; i < l->file_count; i++)
        if (has_ending(l->files[i].name, ".metal") &&
            mutate_has_kernel(l->files[i].source, c->kernel->name))
            return &l->files[i];
    return own;
}

/* A file and what it includes from the same folder. */
typedef struct {
    mutant_file *files[MAX_SOURCES];
    size_t count;
} sources;

static void add_sources(const mutant_list *l, mutant_file *f, sources *s) {
    for (size_t i = 0; i < s->count; i++)
        if (s->files[i] == f)
            return;
    if (!f || s->count == MAX_SOURCES)
        return;
    s->files[s->count++] = f;
    for (const char *p = f->source; (p = strstr(p, "#include \""));) {
        p += strlen("#include \"");
        add_sources(l, find_file(l, p, strcspn(p, "\"\n")), s);
    }
}

/* Mutants ------------------------------------------------------------------------------------- */

typedef struct {
    const test_case *first; /* a case of it */
    sources sources;
    mutate_parts parts;
    size_t turn; /* 0 for the first kernel of its op, 1 for the second... */
} kernel_parts;

static bool read_kernels(const mutant_list *l, const case_list *cases, kernel_parts *out,
                         size_t *count, err *e) {
    *count = 0;
    for (size_t i = 0; i < cases->count; i++) {
        const test_case *c = &cases->items[i];
        if (*count > 0 && out[*count - 1].first->kernel == c->kernel)
            continue;
        kernel_parts *k = &out[*count];
        *k = (kernel_parts){.first = c};
        for (size_t j = *count; j-- > 0 && out[j].first->op == c->op;)
            k->turn++;
        add_sources(l, find_kernel_file(l, c), &k->sources);
        const char *texts[MAX_SOURCES];
        for (size_t j = 0; j < k->sources.count; j++)
            texts[j] = k->sources.files[j]->source;
        ++*count;
        if (!mutate_find_parts(texts, k->sources.count, c->kernel->name, &k->parts, e))
            return false;
    }
    return true;
}

static bool is_part(const kernel_parts *k, const mutant_file *f, const mutation *edit) {
    for (size_t i = 0; i < k->sources.count; i++)
        if (k->sources.files[i] == f)
            return mutate_has_part(&k->parts, edit->where);
    return false;
}

/* The first kernel of each op before the second of any. */
static void find_kernels(const kernel_parts *kernels, size_t count, mutant *m) {
    m->kernels = calloc(count + 1, sizeof *m->kernels);
    assert(m->kernels);
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
        find_kernels(kernels, count, &m);
        if (m.kernel_count == 0) {
            free(m.kernels);
            continue;
        }
        if (l->count == l->room) {
            l->room = l->room ? l->room * 2 : 1024;
            l->items = realloc(l->items, l->room * sizeof *l->items);
            assert(l->items);
        }
        l->items[l->count++] = m;
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
    kernel_parts *kernels = calloc(cases->count + 1, sizeof *kernels);
    assert(kernels);
    size_t count = 0;
    bool ok = read_folder(folder, out, e) && read_kernels(out, cases, kernels, &count, e);
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
