/* cmd_cache: `assay cache`. The compiled code that is kept: where, how much, and away with it. */
#include <assert.h>
#include <stdio.h>

#include "harness/base/json.h"
#include "harness/device/code_cache.h"
#include "verb.h"

static struct { bool clear, json; } settings;

static const option options[] = {
    FLAG_OPTION("clear", &settings.clear, "remove everything from it"),
    FLAG_OPTION("json", &settings.json, "print one JSON object"),
};

static void print_facts(const cache_facts *f) {
    printf("path       %s\n", f->path);
    printf("size       %.1f MB in %zu file%s, of at most %.1f MB\n", (double)f->bytes * 1e-6,
           f->files, f->files == 1 ? "" : "s", (double)f->limit * 1e-6);
    printf("compiling  %.1f s\n", f->seconds);
}

static void print_json(const cache_facts *f) {
    json j = json_start_line(stdout);
    json_add_text(&j, "path", f->path);
    json_add_count(&j, "bytes", f->bytes);
    json_add_count(&j, "files", f->files);
    json_add_count(&j, "limit", f->limit);
    json_add_real(&j, "compile_s", f->seconds);
    json_close(&j);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    (void)names;
    assert(count == 0);
    cache_facts f;
    if (settings.clear) {
        if (!cache_room_clear(&f, e))
            return e->code;
        fprintf(stderr, "removed %.1f MB in %zu file%s\n", (double)f.bytes * 1e-6, f.files,
                f.files == 1 ? "" : "s");
    }
    if (!cache_room_find(&f, e))
        return e->code;
    if (settings.json)
        print_json(&f);
    else
        print_facts(&f);
    return EXIT_OK;
}

VERB(verb_cache, "cache",
     .about = "show where compiled kernels are cached and how large the cache is, or clear it",
     .notes =
         "Everything in it can be made again: kernels compiled for the software device and for\n"
         "NVIDIA GPUs, and descriptions of ops. `compiling` is the time that it took. When the "
         "cache\n"
         "passes its limit (ASSAY_CACHE_LIMIT, default 1G), the least recently used is deleted.\n",
     VERB_OPTIONS(options));
