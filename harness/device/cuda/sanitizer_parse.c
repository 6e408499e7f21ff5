/* sanitizer_parse: the reports of compute-sanitizer. Each begins with a line that says what it is;
 * lines that are set in say where:
 *
 *     ========= Invalid __global__ read of size 4 bytes
 *     =========     at msl_copy+0x890 in copy.metal:29
 *     =========     by thread (63,0,0) in block (0,0,0)
 *     =========     Access to 0x7f0000000500 is out of bounds */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"
#include "sanitizer.h"

static const char mark[] = "=========";

/* A line of the sanitizer without its mark, as a text of its own; NULL for lines of others. */
static const char *read_line(const char *p, char *line, size_t size) {
    const char *end = p + strcspn(p, "\n");
    if (strncmp(p, mark, strlen(mark)) != 0)
        return NULL;
    p += strlen(mark);
    p += *p == ' ';
    snprintf(line, size, "%.*s", (int)(end - p), p);
    line[strcspn(line, "\r")] = 0;
    return line;
}

static const char *get_next(const char *p) {
    p += strcspn(p, "\n");
    return *p ? p + 1 : p;
}

/* `NAME+0x890 in FILE:LINE`, where NAME may have its parameters and FILE its folders. */
static void read_place(const char *p, char *kernel, size_t size, char *file, size_t file_size,
                       int *line) {
    const char *in = strstr(p, " in ");
    size_t prefix = strlen(PTX_ENTRY_PREFIX);
    if (strncmp(p, PTX_ENTRY_PREFIX, prefix) == 0)
        p += prefix;
    snprintf(kernel, size, "%.*s", (int)strcspn(p, "+( "), p);
    if (!in)
        return;
    char place[512];
    snprintf(place, sizeof place, "%s", in + strlen(" in "));
    place[strcspn(place, "[")] = 0;
    char *colon = strrchr(place, ':'), *slash = strrchr(place, '/');
    if (!colon || atoi(colon + 1) <= 0)
        return;
    *line = atoi(colon + 1);
    *colon = 0;
    snprintf(file, file_size, "%.127s", slash ? slash + 1 : place);
}

static void read_detail(const char *p, finding *f) {
    unsigned t[3], g[3];
    p += strspn(p, " ");
    if (strncmp(p, "at ", 3) == 0 && !f->line)
        read_place(p + 3, f->kernel, sizeof f->kernel, f->file, sizeof f->file, &f->line);
    else if (sscanf(p, "by thread (%u,%u,%u) in block (%u,%u,%u)", &t[0], &t[1], &t[2], &g[0],
                    &g[1], &g[2]) == 6)
        for (int i = 0; i < 3; i++) {
            f->thread[i] = t[i];
            f->group[i] = g[i];
        }
    else if (strstr(p, "misaligned"))
        f->what = FINDING_MISALIGNED;
    else if (strncmp(p, "Access", 6) != 0 && strncmp(p, "Address", 7) != 0 &&
             strncmp(p, "and is", 6) != 0)
        return;
    else {
        size_t used = strlen(f->text);
        snprintf(f->text + used, sizeof f->text - used, ": %s", p);
    }
}

static void name_space(const char *head, finding *f) {
    snprintf(f->label, sizeof f->label, "%s memory",
             strstr(head, "__shared__")  ? "threadgroup"
             : strstr(head, "__local__") ? "private"
                                         : "device");
    const char *size = strstr(head, "of size ");
    f->bytes = size ? (uint32_t)strtoul(size + strlen("of size "), NULL, 10) : 0;
}

/* A race has two places. What is wrong is usually before the later one, where no barrier is. */
static void read_race(const char *head, const char *next, finding *f) {
    finding other = {.line = 0};
    char line[512];
    const char *at = strstr(head, "access at "), *second;
    f->what = FINDING_RACE_IN_GROUP;
    snprintf(f->label, sizeof f->label, "threadgroup memory");
    if (at)
        read_place(at + strlen("access at "), f->kernel, sizeof f->kernel, f->file, sizeof f->file,
                   &f->line);
    if (!read_line(next, line, sizeof line) || !(second = strstr(line, "access at ")))
        return;
    read_place(second + strlen("access at "), other.kernel, sizeof other.kernel, other.file,
               sizeof other.file, &other.line);
    if (!f->line || (strcmp(other.file, f->file) == 0 && other.line > f->line)) {
        f->line = other.line;
        snprintf(f->file, sizeof f->file, "%s", other.file);
    }
    size_t used = strlen(f->text);
    snprintf(f->text + used, sizeof f->text - used, " %s", line + strspn(line, " "));
}

/* What the first line of a report says; false for lines that are none. */
static bool read_head(const char *head, finding *f) {
    const bool is_write = strstr(head, " write") || strstr(head, " atomic");
    name_space(head, f);
    if (strncmp(head, "Invalid __", 10) == 0 || strncmp(head, "Potential invalid __", 20) == 0)
        f->what = is_write ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    else if (strncmp(head, "Uninitialized __", 16) == 0)
        f->what = FINDING_UNWRITTEN;
    else if (strncmp(head, "Barrier error detected", 22) == 0)
        f->what = FINDING_BARRIER;
    else if (!strstr(head, "Race reported between"))
        return false;
    return true;
}

/* Lines that begin without a space and are no reports. */
static bool is_remark(const char *head) {
    static const char *const known[] = {"COMPUTE-SANITIZER",  "Program hit",    "Host API",
                                        "Target application", "ERROR SUMMARY",  "RACECHECK SUMMARY",
                                        "LEAK SUMMARY",       "Error: process", "No attachable",
                                        "Error: No attach",   "Internal Sanit", "Warning",
                                        "Error: Target"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(head, known[i], strlen(known[i])) == 0)
            return true;
    return !head[0] || head[0] == ' ';
}

/* A report of another kind: it has a place in a kernel. */
static bool has_place(const char *next) {
    char line[512];
    return read_line(next, line, sizeof line) && strncmp(line, "    at ", 7) == 0;
}

static bool read_report(const char *p, finding *f) {
    char head[512];
    *f = (finding){.what = FINDING_FAULT, .buffer = -1, .count = 1};
    if (!read_line(p, head, sizeof head))
        return false;
    const char *next = get_next(p);
    if (!read_head(head, f) && (is_remark(head) || !has_place(next)))
        return false;
    snprintf(f->text, sizeof f->text, "%.255s", head);
    if (strstr(head, "Race reported between"))
        read_race(head, next, f);
    char line[512];
    for (; *next && read_line(next, line, sizeof line) && line[0] == ' '; next = get_next(next))
        read_detail(line, f);
    if (!f->kernel[0])
        snprintf(f->kernel, sizeof f->kernel, "unknown kernel");
    return true;
}

/* The number after `name` in the last line that has it. */
static unsigned long read_summary(const char *text, const char *name) {
    unsigned long last = 0;
    for (const char *p = text; (p = strstr(p, name)); p++)
        last = strtoul(p + strlen(name), NULL, 10);
    return last;
}

size_t sanitizer_parse(const char *text, finding_list *out) {
    size_t count = 0;
    for (const char *p = text; *p; p = get_next(p)) {
        finding f;
        if (!read_report(p, &f))
            continue;
        finding_add(out, &f);
        count++;
    }
    return count;
}

/* Nothing is lost: what the summary counts was read, or at least some of it. */
static bool is_whole(const char *text) {
    finding_list found = {0};
    size_t count = sanitizer_parse(text, &found);
    bool has_remarks = strstr(text, "========= Program hit") || strstr(text, "========= Host API");
    finding_free(&found);
    return count > 0 || has_remarks ||
           (read_summary(text, "ERROR SUMMARY: ") == 0 &&
            read_summary(text, "RACECHECK SUMMARY: ") == 0);
}

static bool is_watched(const char *text) {
    return strstr(text, "========= COMPUTE-SANITIZER") &&
           !strstr(text, "Internal Sanitizer Error") && !strstr(text, "No attachable process") &&
           is_whole(text);
}

const log_format sanitizer_log = {
    .engine = "compute-sanitizer", .is_watched = is_watched, .parse = sanitizer_parse};
