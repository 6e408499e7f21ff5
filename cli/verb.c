/* verb: what all verbs share. */
#include "verb.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/record.h"
#include "harness/base/root.h"
#include "harness/device/code_cache.h"
#include "harness/device/msl/msl.h"
#include "project/project.h"

#if defined(ASSAY_SANITIZED) /* 86: CHILD_FAULT. Fibers leave their stacks without returning. */
const char *__asan_default_options(void), *__ubsan_default_options(void);
const char *__asan_default_options(void) {
    return "exitcode=86:detect_stack_use_after_return=0:print_stacktrace=1";
}
const char *__ubsan_default_options(void) {
    return __asan_default_options();
}
#endif

static const char *project, *kernels, *language, *math;
static bool no_tuned;

static const option project_option = TEXT_OPTION(
    "C|project", &project, "DIR",
    "work on the project in DIR (default: the one that the current folder is in, if any)");
static const option kernels_option =
    TEXT_OPTION("kernels", &kernels, "DIR", "take the .metal files from this folder");
static const option language_option =
    TEXT_OPTION("language", &language, "V",
                "version of MSL: 3.0, 3.1, 3.2 or 4.0 (default: the newest that the device has)");
static const option safe_option = MATH_OPTION(&math, "safe");
static const option fast_option = MATH_OPTION(&math, "fast, as Metal's");
static const option tuned_option = FLAG_OPTION(
    "no-tuned", &no_tuned, "follow the built-in rules and ignore the device's tuned.csv");

/* Does it compile kernels? */
static bool has_language(const verb *v) {
    bool has_device = false;
    for (size_t i = 0; i < v->option_count && !has_device; i++)
        has_device = strcmp(v->options[i].name, "device") == 0;
    return has_device || v->reads_kernels;
}

size_t verb_list_options(const verb *v, option out[OPTIONS_MAX]) {
    size_t count = v->option_count;
    assert(count + 5 <= OPTIONS_MAX);
    if (count > 0)
        memcpy(out, v->options, count * sizeof *out);
    if (v->runs_ops || v->reads_kernels)
        out[count++] = kernels_option;
    if (v->math)
        out[count++] = strcmp(v->math, "safe") == 0 ? safe_option : fast_option;
    if (has_language(v))
        out[count++] = language_option;
    if (v->reads_tuned)
        out[count++] = tuned_option;
    out[count++] = project_option;
    return count;
}

bool verb_set_environment(const char *name, const char *value, err *e) {
    return setenv(name, value, 1) == 0 ||
           err_set(e, EXIT_CANNOT, "%s cannot be set for this process", name);
}

/* Devices, here and in workers, are opened with what --math says; in a worker the one that started
 * it has said it. */
static bool choose_math(const verb *v, err *e) {
    const char *said = getenv("ASSAY_MATH"), *chosen = math ? math : said && *said ? said : v->math;
    math_mode mode;
    if (!v->math)
        return unsetenv("ASSAY_MATH") == 0;
    return math_mode_find(chosen, &mode, e) && verb_set_environment("ASSAY_MATH", chosen, e);
}

bool verb_prepare(const verb *v, err *e) {
    char path[PATH_MAX];
    int version;
    if (project && !root_set_project(project, e))
        return false;
    if (kernels && !realpath(kernels, path))
        return err_set(e, EXIT_USAGE, "there is no folder of kernels %.160s", kernels);
    return (!kernels || verb_set_environment("ASSAY_KERNELS", path, e)) &&
           (!language || (msl_read_language(language, &version, e) &&
                          verb_set_environment("ASSAY_LANGUAGE", language, e))) &&
           (!no_tuned || verb_set_environment("ASSAY_TUNED", "off", e)) && choose_math(v, e) &&
           (!v->reads_results || project_use_sources(e)) && (!v->runs_ops || project_load(e));
}

void verb_say(const char *format, ...) {
    char text[2000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    table_print_text(stderr, table_find_limit(stderr), 0, text);
}

void verb_print_lines(FILE *out, const char *text, bool fills) {
    char *lines = strdup(text), *end;
    assert(lines);
    for (char *p = lines; *p; p = end) {
        const size_t indent = strspn(p, " ");
        for (end = p + strcspn(p, "\n"); fills && !indent && end > p && *end && end[1] &&
                                         !strchr(" \n", end[1]) && table_find_limit(out) > 0;
             end += strcspn(end, "\n"))
            *end = ' ';
        if (*end)
            *end++ = 0;
        char *gap = indent ? strstr(p + indent, "  ") : NULL;
        const char *rest = gap ? gap + strspn(gap, " ") : p + indent;
        if (gap)
            *gap = 0;
        table_print_item(out, (int)(rest - p), gap ? p : "", rest);
    }
    free(lines);
}

void verb_end_compiling(void) {
    size_t count;
    double seconds;
    cache_room_end_log(&count, &seconds);
    if (count > 0)
        verb_say("%zu compiled in %.1f s; the cache has them now", count, seconds);
}

bool verb_flush(err *e) {
    errno = 0;
    bool is_flushed = fflush(stdout) == 0;
    if (is_flushed && !ferror(stdout))
        return true;
    if (errno == EPIPE)
        return err_set(e, EXIT_CLOSED, "the reader of the output has gone");
    /* An earlier write may have failed: errno is of something else by then. */
    return err_set(e, EXIT_CANNOT, "cannot write the output%s%s", is_flushed ? "" : ": ",
                   is_flushed ? "" : strerror(errno));
}

json verb_open_json(FILE *out, const char *name, const device_facts *f, uint64_t seed) {
    json j = json_start(out, '{');
    json_add_text(&j, "assay", ASSAY_VERSION);
    json_add_text(&j, "verb", name);
    if (f) {
        json_add_text(&j, "device", f->name);
        json_add_text(&j, "api", f->api);
    }
    json_add_count(&j, "seed", seed);
    return j;
}
