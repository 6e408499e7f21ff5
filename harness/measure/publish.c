#include "publish.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/path.h"

enum { MOST_BYTES = 1 << 20 };

/* Which are in the folder of the list: it may come from others, and renames nothing elsewhere. */
static bool is_inside(const char *name) {
    return *name != '/' && strncmp(name, "../", 3) != 0 && !strstr(name, "/../");
}

static bool find_list(const char *path, char *list, err *e) {
    const char *name = path_get_name(path);
    return path_print(list, PATH_MAX, e, "%.*s.%s.changes", (int)(name - path), path, name);
}

/* What is not there any more has been renamed before. */
static bool rename_listed(const char *list, char *from, char *to, err *e) {
    char source[PATH_MAX], target[PATH_MAX];
    const int folder = (int)(path_get_name(list) - list);
    if (!is_inside(from) || !is_inside(to))
        return true;
    if (!path_print(source, sizeof source, e, "%.*s%s", folder, list, from) ||
        !path_print(target, sizeof target, e, "%.*s%s", folder, list, to))
        return false;
    if (access(source, F_OK) != 0)
        return true;
    return *to ? os_settle(source, target, true, e)
               : unlink(source) == 0 || os_refuse_write(source, errno, e);
}

/* FROM and TO (or nothing, where it is removed), each with its end of string, and so on. */
static bool finish(const char *path, err *e) {
    char list[PATH_MAX];
    size_t bytes = 0;
    if (!find_list(path, list, e) || access(list, F_OK) != 0)
        return true;
    char *text = os_read_plain(list, MOST_BYTES, &bytes, e);
    bool ok = text != NULL;
    for (char *from = text, *to; ok && from < text + bytes; from = to + strlen(to) + 1) {
        to = from + strlen(from) + 1;
        ok = to < text + bytes && rename_listed(list, from, to, e);
    }
    free(text);
    return ok && (unlink(list) == 0 || os_refuse_write(list, errno, e));
}

lock *publish_lock(const char *path, err *e) {
    lock *l = lock_take(path, 1000, e);
    if (!l || finish(path, e))
        return l;
    lock_release(l);
    return NULL;
}

void publish_finish(const char *path) {
    char list[PATH_MAX];
    if (find_list(path, list, NULL) && access(list, F_OK) == 0)
        lock_release(publish_lock(path, NULL));
}

void publish_finish_all(const char *folder) {
    static const char ending[] = ".changes";
    DIR *all = opendir(folder);
    for (struct dirent *d; all && (d = readdir(all));) {
        char path[PATH_MAX];
        if (*d->d_name == '.' && path_ends_with(d->d_name, ending) &&
            path_print(path, sizeof path, NULL, "%s/%.*s", folder,
                       (int)(strlen(d->d_name) - sizeof ending), d->d_name + 1))
            publish_finish(path);
    }
    if (all)
        closedir(all);
}

/* Links lead elsewhere: what they lead to is replaced by itself, and before the others. */
static bool is_link(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
}

bool publish(const char *path, const change *changes, size_t count, err *e) {
    char list[PATH_MAX], beside[PATH_MAX] = "";
    const size_t folder = (size_t)(path_get_name(path) - path);
    memory_file *text = memory_file_new();
    bool ok = find_list(path, list, e);
    for (size_t i = 0; ok && i < count; i++) {
        const change *c = &changes[i];
        if (c->rows && is_link(c->to)) {
            ok = csv_write(c->rows, c->to, e);
            continue;
        }
        if (c->rows)
            ok = path_print(beside, sizeof beside, e, "%s.%ld.tmp", c->to, (long)getpid()) &&
                 csv_write(c->rows, beside, e) && os_sync(beside, e);
        fprintf(text->out, "%s%c%s%c", (c->rows ? beside : c->from) + folder, 0,
                c->to ? c->to + folder : "", 0);
    }
    ok = ok && path_print(beside, sizeof beside, e, "%s.%ld.tmp", list, (long)getpid());
    if (ok)
        ok = memory_file_write(text, beside, e) && os_sync(beside, e) &&
             os_settle(beside, list, true, e);
    else
        memory_file_free(text);
    if (!ok)
        unlink(beside);
    for (size_t i = 0; !ok && i < count; i++)
        if (changes[i].rows &&
            path_print(beside, sizeof beside, NULL, "%s.%ld.tmp", changes[i].to, (long)getpid()))
            unlink(beside);
    return ok && finish(path, e);
}
