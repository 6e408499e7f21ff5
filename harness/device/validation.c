#include "validation.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diagnostic.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

extern char **environ;

static const char folder_variable[] = "ASSAY_REPORTS";
static const char banner[] = "Metal GPU Validation Enabled";
static const char beginning[] = "Invalid "; /* of a report */

/* The environment ----------------------------------------------------------------------------- */

static const struct {
    const char *name, *value;
} pinned[] = {
    {"MTL_DEBUG_LAYER", "1"},
    {"MTL_DEBUG_LAYER_ERROR_MODE", "assert"},
    {"MTL_DEBUG_LAYER_WARNING_MODE", "ignore"},
    {"MTL_SHADER_VALIDATION", "1"},
    {"MTL_SHADER_VALIDATION_REPORT_TO_STDERR", "1"},
    {"MTL_SHADER_VALIDATION_ENABLE_ERROR_REPORTING", "1"},
    {"MTL_SHADER_VALIDATION_ABORT_ON_FAULT", "0"},
    {"MTL_SHADER_VALIDATION_FAIL_MODE", "zerofill"},
    {"MTL_SHADER_VALIDATION_GLOBAL_MEMORY", "1"},
    {"MTL_SHADER_VALIDATION_THREADGROUP_MEMORY", "1"},
    {"MTL_SHADER_VALIDATION_RESOURCE_USAGE", "1"},
    {"MTL_SHADER_VALIDATION_TEXTURE_USAGE", "1"},
};

/* The name of an MTL_* variable that is set, or false. */
static bool find_variable(char *name, size_t size) {
    for (char **p = environ; p && *p; p++) {
        if (strncmp(*p, "MTL_", 4) != 0)
            continue;
        snprintf(name, size, "%.*s", (int)strcspn(*p, "="), *p);
        return true;
    }
    return false;
}

void validation_pin_environment(void) {
    char name[256];
    while (find_variable(name, sizeof name) && unsetenv(name) == 0)
        continue;
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        setenv(pinned[i].name, pinned[i].value, 1);
}

static bool is_one(const char *name) {
    const char *value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

bool validation_is_on(void) {
    return is_one("MTL_SHADER_VALIDATION") && is_one("MTL_SHADER_VALIDATION_REPORT_TO_STDERR");
}

bool validation_is_strict(void) {
    return is_one("ASSAY_STRICT");
}

/* Files --------------------------------------------------------------------------------------- */

static char log_path[PATH_MAX];
static size_t log_done; /* read so far */

bool validation_open_folder(char *path, size_t size, err *e) {
    return os_make_scratch(path, size, e) && setenv(folder_variable, path, 1) == 0;
}

void validation_close_folder(const char *path) {
    const char *keep = getenv("ASSAY_KEEP_REPORTS");
    unsetenv(folder_variable);
    if (!keep || strcmp(keep, "1") != 0)
        os_remove_folder(path);
}

bool validation_name_log(char *path, size_t size, err *e) {
    const char *folder = getenv(folder_variable);
    if (!folder || !*folder)
        return err_set(e, EXIT_USAGE, "%s does not name a folder for reports", folder_variable);
    snprintf(path, size, "%.3900s/%ld.log", folder, (long)getpid());
    return true;
}

bool validation_start_log(err *e) {
    err none;
    if (!validation_name_log(log_path, sizeof log_path, &none))
        return true;
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    bool ok = fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    if (fd >= 0)
        close(fd);
    return ok || err_set(e, EXIT_CANNOT, "cannot write %.200s", log_path);
}

/* A report comes line by line; the frame is its last. */
static bool is_cut_short(const char *text) {
    const char *last = NULL;
    for (const char *p = text; (p = strstr(p, beginning)); p++)
        last = p;
    return last && !strstr(last, "frame #");
}

/* What comes after the last line end may still grow: it is left for the next time. A report without
 * a frame is waited for a little longer: not every report has one. */
void validation_read_log(finding_list *out) {
    enum { TRIES = 4 };
    if (!log_path[0])
        return;
    for (int i = 1; i <= TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        size_t bytes = 0;
        char *text = os_read_file(log_path, &bytes, NULL);
        char *end = text && bytes > log_done ? strrchr(text + log_done, '\n') : NULL;
        bool is_whole = !end || !is_cut_short(text + log_done);
        if (end && (is_whole || i == TRIES)) {
            end[1] = 0;
            validation_parse(text + log_done, out);
            log_done = (size_t)(end + 1 - text);
        }
        free(text);
        if (is_whole)
            return;
    }
}

bool validation_read_folder(const char *path, const log_format *format, validation_count *count,
                            finding_list *out, err *e) {
    const char *open_folder = getenv(folder_variable);
    path = path ? path : open_folder ? open_folder : "";
    *count = (validation_count){0};
    DIR *folder = opendir(path);
    if (!folder)
        return err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[PATH_MAX];
        if (!strstr(entry->d_name, ".log"))
            continue;
        snprintf(file, sizeof file, "%.3000s/%.255s", path, entry->d_name);
        char *text = os_read_file(file, NULL, e);
        if (!text) {
            closedir(folder);
            return false;
        }
        count->files++;
        count->banners += format->is_watched(text);
        count->reports += format->parse(text, out);
        free(text);
    }
    closedir(folder);
    return true;
}

/* Reports ------------------------------------------------------------------------------------- */

/* The text between two marks after p, up to the end of the line. */
static const char *copy_between(const char *p, const char *before, const char *after, char *out,
                                size_t size) {
    const char *begin = strstr(p, before), *line = p + strcspn(p, "\n");
    if (!begin || begin >= line)
        return NULL;
    begin += strlen(before);
    const char *end = strstr(begin, after);
    if (!end || end > line)
        return NULL;
    snprintf(out, size, "%.*s", (int)(end - begin), begin);
    return end;
}

/* `buffer: LABEL, length:N, resident:Read Write`. */
static void read_buffer(const char *line, finding *f) {
    char length[32];
    if (!copy_between(line, "buffer: ", ", length:", f->label, sizeof f->label) ||
        !copy_between(line, ", length:", ",", length, sizeof length))
        return;
    int64_t bytes = strtoll(length, NULL, 10), offset = f->element;
    f->by = offset < 0 ? offset : offset >= bytes ? offset - bytes + 1 : 0;
}

/* `encoder: "LABEL", dispatch: N`. */
static void read_encoder(const char *line, finding *f) {
    char label[64];
    const char *rest = copy_between(line, "encoder: \"", "\"", label, sizeof label);
    unsigned long dispatch;
    if (rest && sscanf(rest, "\", dispatch: %lu", &dispatch) == 1)
        finding_append(f, ", dispatch %lu of \"%s\"", dispatch, label);
}

/* `  * frame #0: kernel() - FILE:LINE:COLUMN`. The first number is the line: a file's name may have
 * colons, so it is looked for from the end. */
static void read_frame(const char *line, finding *f) {
    const char *begin = strstr(line, "frame #0: "), *dash = begin ? strstr(begin, " - ") : NULL;
    char place[512];
    if (!dash || dash > line + strcspn(line, "\n"))
        return;
    snprintf(place, sizeof place, "%.*s", (int)strcspn(dash + 3, "\r\n"), dash + 3);
    for (int number = 0; number < 2 && diagnostic_cut_number(place, &f->line); number++)
        continue;
    if (f->line > 0)
        snprintf(f->file, sizeof f->file, "%.127s", path_get_name(place));
}

enum { MOST_LINES = 6 }; /* of one report, after the first */

/* `Invalid device store at offset N, executing kernel function: "name"`, and on the lines after it
 * what else is known: buffer, encoder, frame. */
static bool read_report(const char *p, finding *f) {
    char space[24], access[24];
    int64_t offset = 0;
    if (sscanf(p, "Invalid %23[a-z] %23[a-z] at offset %" SCNd64, space, access, &offset) != 3)
        return false;
    *f = (finding){.buffer = -1, .element = offset, .count = 1};
    f->what = strcmp(access, "store") == 0 ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    if (!copy_between(p, "executing kernel function: \"", "\"", f->kernel, sizeof f->kernel))
        snprintf(f->kernel, sizeof f->kernel, "unknown kernel");
    const char *line = p + strcspn(p, "\n"), *next = strstr(p + 1, beginning);
    snprintf(f->text, sizeof f->text, "%.*s", (int)(line - p), p);
    snprintf(f->label, sizeof f->label, "%s memory", space);
    for (int i = 0; i < MOST_LINES && *line && (!next || line < next); i++) {
        line++;
        if (strcmp(space, "threadgroup") != 0)
            read_buffer(line, f);
        read_encoder(line, f);
        read_frame(line, f);
        line += strcspn(line, "\n");
    }
    return true;
}

size_t validation_parse(const char *text, finding_list *out) {
    size_t count = 0;
    for (const char *p = text; (p = strstr(p, beginning)); p++) {
        finding f;
        if (!read_report(p, &f))
            continue;
        finding_add(out, &f);
        count++;
    }
    return count;
}

static bool is_watched(const char *text) {
    return strstr(text, banner) != NULL;
}

const log_format metal_log = {
    .engine = "Metal's validation", .is_watched = is_watched, .parse = validation_parse};
