/* write: files in, files out: reads a Python file, follows it, and writes its kernels. */
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "internal.h"

enum { MOST_BYTES = 16 << 20 };

static bool write_file(const importer *im, const char *name, const char *text, size_t bytes,
                       err *e) {
    char path[PATH_MAX];
    return path_join(path, sizeof path, e, im->settings.out, name) &&
           os_write_file(path, text, bytes, e);
}

/* The marker of the project, and the header that MLX puts in front of each kernel. */
static bool write_project(const importer *im, err *e) {
    char home[PATH_MAX], path[PATH_MAX], project[2 * PATH_MAX + 64] = "";
    size_t bytes, used = 0;
    const struct {
        const char *option, *folder;
    } given[] = {{"mlx", im->settings.mlx}, {"torch", im->settings.torch}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        if (!given[i].folder) /* the project's own folder is where others are looked for */
            continue;
        if (!realpath(given[i].folder, home) || !os_is_folder(home))
            return err_set(e, EXIT_USAGE, "--%s: there is no folder %.200s", given[i].option,
                           given[i].folder);
        used += (size_t)snprintf(project + used, sizeof project - used, "%s%s",
                                 used ? " " : "include = ", home);
    }
    if (used)
        snprintf(project + used, sizeof project - used, "\n");
    if (!os_make_folder(im->settings.out, e) ||
        !write_file(im, "assay.project", project, strlen(project), e))
        return false;
    if (im->settings.mlx)
        return true;
    if (!os_find_home(home, sizeof home, e) ||
        !path_print(path, sizeof path, e, "%s/import/msl/mlx.h", home))
        return false;
    char *text = os_read_file(path, &bytes, e);
    bool ok = text && write_file(im, "mlx.h", text, bytes, e);
    free(text);
    return ok;
}

importer *importer_new(const import_settings *s, err *e) {
    importer *im = array_new(1, sizeof *im);
    im->settings = *s;
    im->last_site = &im->sites;
    for (size_t i = 0; i < s->value_count; i++)
        if (!strchr(s->values[i], '=')) {
            err_set(e, EXIT_USAGE, "--set takes NAME=VALUE, such as V=4096, not '%.60s'",
                    s->values[i]);
            importer_free(im);
            return NULL;
        }
    if (write_project(im, e))
        return im;
    importer_free(im);
    return NULL;
}

void importer_free(importer *im) {
    if (!im)
        return;
    for (struct block *b = im->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (size_t i = 0; i < im->file_count; i++)
        free(im->files[i].text);
    for (size_t i = 0; i < im->name_count; i++)
        free(im->names[i]);
    free(im->names);
    free(im->files);
    free(im->assumed);
    free(im);
}

import_counts importer_get_counts(const importer *im) {
    return im->counts;
}

/* A name for the kernel's files that no other has. */
static const char *choose_name(importer *im, const kernel_site *k) {
    char name[200], base[160];
    const char *file = path_get_name(im->files[k->file].path);
    size_t n = 0;
    const char *from = *k->name ? k->name : file;
    for (; from[n] && n + 1 < sizeof base && !(from == file && from[n] == '.'); n++)
        base[n] = isalnum((unsigned char)from[n]) ? from[n] : '_';
    base[n] = 0;
    for (int number = 1;; number++) {
        snprintf(name, sizeof name, number > 1 ? "%s_%d" : "%s", base, number);
        bool is_taken = false;
        for (size_t i = 0; i < im->name_count; i++)
            is_taken = is_taken || strcmp(im->names[i], name) == 0;
        if (!is_taken)
            break;
    }
    char *copy = strdup(name);
    assert(copy);
    *ARRAY_ADD(im->names, im->name_count, im->name_room) = copy;
    return copy;
}

/* Of a library: NAME_KERNEL.args for each kernel that is called. */
static bool write_launches(importer *im, const kernel_site *k, const char *name, const char *metal,
                           err *e) {
    bool ok = true;
    for (const library_launch *l = k->launches; l && ok; l = l->next) {
        char *args = NULL;
        size_t bytes;
        FILE *a = open_memstream(&args, &bytes);
        assert(a);
        bool is_there = signature_write_launch(im, k, l, name, metal, a);
        fclose(a);
        ok = !is_there ||
             write_file(im, keep_print(im, "%s_%s.args", name, l->kernel), args, bytes, e);
        free(args);
    }
    return ok;
}

static bool write_kernel(importer *im, kernel_site *k, FILE *out, err *e) {
    const char *name = choose_name(im, k);
    char *metal = NULL, *args = NULL;
    size_t metal_bytes, args_bytes;
    FILE *m = open_memstream(&metal, &metal_bytes), *a = open_memstream(&args, &args_bytes);
    assert(m && a);
    signature_write(im, k, name, m, a);
    fclose(m);
    fclose(a);
    bool ok =
        write_file(im, keep_print(im, "%s.metal", name), metal, metal_bytes, e) &&
        (!args_bytes || write_file(im, keep_print(im, "%s.args", name), args, args_bytes, e)) &&
        write_launches(im, k, name, metal, e);
    free(metal);
    free(args);
    if (ok)
        fprintf(out, "%s:%d: %s/%s.metal%s\n", im->files[k->file].path, k->line, im->settings.out,
                name, k->launches || k->launch ? "" : ", no launch found");
    im->counts.kernels++;
    return ok;
}

/* A kernel that nothing launches is launched as another that the same call makes. */
static void borrow_launch(const importer *im, kernel_site *k) {
    for (const kernel_site *s = im->sites; s && !k->launch; s = s->next)
        if (s->file == k->file && s->at == k->at && s->launch) {
            k->launch = s->launch;
            k->launch_line = s->launch_line;
        }
}

/* One verdict per call: it is imported if one of the ways to reach it is. */
static bool write_sites(importer *im, const py_tokens *tokens, FILE *out, FILE *talk, err *e) {
    const char *path = im->files[tokens->file].path;
    for (kernel_site *k = im->sites; k; k = k->next) {
        bool is_first = k->file == tokens->file, is_imported = false;
        if (!is_first)
            continue;
        for (kernel_site *s = im->sites; s; s = s->next)
            if (s->file == k->file && s->at == k->at) {
                is_imported = is_imported || !s->trouble;
                for (kernel_site *before = im->sites; before != s; before = before->next)
                    is_first =
                        is_first && !(before->file == k->file && before->at == k->at && s == k);
            }
        borrow_launch(im, k);
        if (!k->trouble && !write_kernel(im, k, out, e))
            return false;
        im->counts.found += is_first;
        im->counts.imported += is_first && is_imported;
        if (is_first && !is_imported)
            fprintf(talk, "%s:%d: not imported: %s\n", path, k->line, k->trouble);
    }
    for (uint32_t i = 0; i + 1 < tokens->count; i++) {
        if (!kernel_is_unreached(im, tokens, i))
            continue;
        im->counts.found++;
        fprintf(talk, "%s:%d: not imported: no statement that can be followed reaches it\n", path,
                tokens->items[i].line);
    }
    return true;
}

static void print_assumed(const importer *im, const char *path, FILE *talk) {
    for (size_t i = 0; i < im->assumed_count; i++) {
        const assumption *a = &im->assumed[i];
        bool is_new = true;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && strcmp(im->assumed[k].name, a->name) != 0;
        if (is_new && a->value->kind == V_INT)
            fprintf(talk, "%s: assumed %s = %lld\n", path, a->name, (long long)a->value->i);
        else if (is_new)
            fprintf(talk, "%s: assumed %s = %g\n", path, a->name, a->value->f);
    }
}

bool importer_take(importer *im, const char *path, FILE *out, FILE *talk, err *e) {
    char *text = os_read_plain(path, MOST_BYTES, NULL, e);
    if (!text)
        return false;
    if (!strstr(text, "metal_kernel") && !strstr(text, "compile_shader")) {
        free(text);
        return true;
    }
    py_tokens tokens = {.count = 0};
    *ARRAY_ADD(im->files, im->file_count, im->file_room) =
        (py_file){keep_text(im, path, strlen(path)), text};
    im->assumed_count = 0;
    size_t before = im->counts.kernels;
    bool ok = lex_python(im, text, 1, (int)im->file_count - 1, &tokens, e);
    if (ok) {
        run_file(im, &tokens, scope_new(im, NULL));
        ok = write_sites(im, &tokens, out, talk, e);
    }
    if (ok && im->counts.kernels > before)
        print_assumed(im, path, talk);
    free(tokens.items);
    return ok;
}
