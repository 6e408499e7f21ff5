/* compile: see agx.h. Runs four programs one after the other: clang (SPIR-V's LLVM module), opt, llc (SPIR-V),
 * agx_driver (Mesa). They are started with the loader and the libraries of their own folder. */
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agx.h"
#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/device/code_cache.h"

enum { SECONDS = 120, THREADS = 256, MOST_CONSTANTS = 64 };

struct agx_compiler {
    char tree[PATH_MAX], home[PATH_MAX - 128];
    char name[160];
    code_cache cache;
};

/* Metal's default is fast math. A threadgroup has 256 threads where the kernel does not say: without a
 * number Mesa takes 1024 and gives each at most 104 registers. */
/* clang-format off */
static const char *const clang_flags[] = {
    "-cc1", "-triple", "spirv64-unknown-unknown", "-aux-triple", "x86_64-linux-gnu", "-fcuda-is-device", "-x", "hip", "-std=c++17",
    "-O3", "-disable-llvm-passes", "-fdeclspec", "-fno-operator-names", "-cl-single-precision-constant", "-w",
    "-fno-threadsafe-statics", "-D__clang_major__=17" /* bfloat as integers: Mesa has no such type */,
    "-ffp-contract=fast", "-mreassociate", "-freciprocal-math", "-fno-signed-zeros", "-fapprox-func",
    "-menable-no-infs", "-menable-no-nans", "-DASSAY_FAST_MATH=1", "-emit-llvm-bc",
    "-debug-info-kind=line-tables-only", "-dwarf-version=4", NULL,
};
/* Pointers are generic until all is inlined. Only when the space of each is known can variables become
 * registers; loops over private arrays must be unrolled for that. */
#define PASSES "-passes=internalize,globaldce,always-inline,globaldce,function(sroa,early-cse,infer-address-spaces)," \
    "default<O3>,function(infer-address-spaces,sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)"
static const char *const opt_flags[] = {"-S", "-unroll-threshold=4000", PASSES, NULL};
static const char *const llc_flags[] = {
    "-mtriple=spirv64-unknown-unknown", "-O2", "-disable-lsr", "--spirv-ext=+SPV_KHR_float_controls2", "-filetype=obj",
    "--print-after=spirv-asm-printer" /* for agx_read_places */, NULL,
};
static const char *const own_steps[] = {"agx_move_constants", "agx_split_loads", "agx_add_lines", NULL}; /* between them */
/* clang-format on */
static const char *const *const made_with[] = {clang_flags, opt_flags, llc_flags, own_steps};

bool agx_find_folder(char *path, size_t size, err *e) {
    char cache[PATH_MAX - 8];
    const char *given = getenv("ASSAY_AGX");
    if (given && *given)
        return path_print(path, size, e, "%s", given);
    return os_find_cache(cache, sizeof cache, e) && path_print(path, size, e, "%s-agx", cache);
}

static bool open_cache(agx_compiler *c, err *e) {
    static const char *const rooms[] = {"msl", "shim", "../agx/shim"};
    char driver[PATH_MAX];
    sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < sizeof made_with / sizeof *made_with; i++)
        for (const char *const *text = made_with[i]; *text; text++)
            code_cache_hash_texts(&h, text, 1);
    return path_print(driver, sizeof driver, e, "%s/agx_driver", c->tree) &&
           code_cache_hash_compiler(&h, driver, c->name, rooms, sizeof rooms / sizeof *rooms, e) &&
           code_cache_open(&c->cache, "agx", &h, e);
}

static bool open_compiler(agx_compiler *c, err *e) {
    char folder[PATH_MAX - 16], path[PATH_MAX];
    if (!agx_find_folder(folder, sizeof folder, e) || !os_find_home(c->home, sizeof c->home, e) ||
        !path_print(c->tree, sizeof c->tree, e, "%s/tree", folder) ||
        !path_print(path, sizeof path, e, "%s/version", c->tree))
        return false;
    char *version = os_read_file(path, NULL, NULL);
    if (!version)
        return err_set(e, EXIT_CANNOT,
                       "Mesa's compiler for Apple GPUs is not in %.120s: assay agx setup "
                       "brings it",
                       folder);
    snprintf(c->name, sizeof c->name, "%.*s, M1 (G13)", (int)strcspn(version, "\n"), version);
    free(version);
    return open_cache(c, e);
}

agx_compiler *agx_compiler_new(err *e) {
    agx_compiler *c = array_new(1, sizeof *c);
    if (open_compiler(c, e))
        return c;
    free(c);
    return NULL;
}

void agx_compiler_free(agx_compiler *c) {
    free(c);
}

const char *agx_compiler_get_name(const agx_compiler *c) {
    return c->name;
}

/* One program ------------------------------------------------------------------------------------ */

/* Starts a program of the tree, or by another one that `before` names; *log gets what it prints, and *worked
 * whether it ended with 0. */
static bool run_tool(const agx_compiler *c, const char *const *before, const char *program,
                     const command *more, char **log, bool *worked, err *e) {
    char loader[PATH_MAX + 8], libraries[3 * PATH_MAX + 80], path[PATH_MAX + 64];
    char shim[PATH_MAX + 64];
    command all = {.count = 0};
    int status = 1;
    snprintf(loader, sizeof loader, "%s/loader", c->tree);
    snprintf(libraries, sizeof libraries,
             "%s/libraries:%s/usr/lib/llvm-22/lib:%s/usr/lib/llvm-19/lib", c->tree, c->tree,
             c->tree);
    snprintf(path, sizeof path, "%s/%s", c->tree, program);
    snprintf(shim, sizeof shim, "%s/libraries/libasahi_noop_drm_shim.so", c->tree);
    if (before)
        command_add(&all, before);
    COMMAND_ADD(&all, loader, "--library-path", libraries);
    if (before)
        COMMAND_ADD(&all, "--preload", shim);
    COMMAND_ADD(&all, path);
    command_add(&all, more->argv);
    /* Mesa's stand-in for a GPU makes a file as large as that GPU's memory: child_run_for would end it. */
    bool ok = before ? child_run(all.argv, log, &status, e)
                     : child_run_for(all.argv, SECONDS, log, &status, e);
    *worked = ok && status == 0;
    return ok;
}

/* What Mesa needs changed in a module, in LLVM's text form. Numbers of address spaces have one digit, so
 * moving constants changes no length. ---------------------------------------------------------- */

static const char device_pointer[] = "ptr addrspace(1)";
enum { DIGIT = sizeof device_pointer - 3 };

/* Names of the module (@ and %) that are in the constant space. */
typedef struct {
    const char **items;
    size_t count, room;
} name_list;

static size_t get_name_length(const char *p) {
    size_t n = 1;
    if (p[1] == '"')
        return 3 + strcspn(p + 2, "\"\n");
    while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-$._", p[n])))
        n++;
    return n;
}

static bool has_name(const name_list *l, const char *p) {
    size_t n = get_name_length(p);
    for (size_t i = 0; i < l->count; i++)
        if (get_name_length(l->items[i]) == n && strncmp(l->items[i], p, n) == 0)
            return true;
    return false;
}

static char *find_in_line(char *p, const char *end, const char *text) {
    char *found = strstr(p, text);
    return found && found < end ? found : NULL;
}

/* `phi ptr addrspace(1) [ %8, %2 ], [ @table, %1 ]`: the type of all is said once. */
static bool has_moved_value(char *phi, const char *end, const name_list *moved) {
    for (char *p = phi; (p = find_in_line(p, end, "[ ")); p++)
        if (has_name(moved, p + 2))
            return true;
    return false;
}

/* `ptr addrspace(1) @table`, also with attributes between the two. */
static bool move_pointers(char *line, const char *end, const name_list *moved) {
    bool any = false, is_phi = find_in_line(line, end, " = phi ");
    for (char *p = line; (p = find_in_line(p, end, device_pointer)); p++) {
        char *name = p + strlen(device_pointer);
        name += strcspn(name, ",%@\n");
        if (is_phi ? has_moved_value(name, end, moved)
                   : (*name == '%' || *name == '@') && has_name(moved, name)) {
            p[DIGIT] = '2';
            any = true;
        }
    }
    return any;
}

/* A line that points to a constant: so does what it computes from the pointer. */
static void follow(char *line, const char *end, name_list *moved) {
    static const char copy[] = "llvm.memcpy.p0.p1.", *const makes[] = {"getelementptr", "phi",
                                                                       "select", "freeze"};
    char *p = line;
    while ((p = find_in_line(p, end, "ptr addrspace(1) getelementptr")))
        p[DIGIT] = '2';
    if ((p = find_in_line(line, end, copy)))
        p[strlen(copy) - 2] = '2';
    line += strspn(line, " ");
    char *equals = *line == '%' ? find_in_line(line, end, " = ") : NULL;
    for (size_t i = 0; equals && i < sizeof makes / sizeof *makes; i++)
        if (strncmp(equals + 3, makes[i], strlen(makes[i])) == 0 && !has_name(moved, line))
            *ARRAY_ADD(moved->items, moved->count, moved->room) = line;
}

static void move_global(char *line, const char *end, name_list *moved) {
    char *space = find_in_line(line, end, "addrspace(1) constant ");
    if (find_in_line(line, end, "llvm.compiler.used") || find_in_line(line, end, "__hip_cuid_"))
        *line = ';';
    else if (space && find_in_line(line, end, " = ")) {
        space[strlen("addrspace(")] = '2';
        *ARRAY_ADD(moved->items, moved->count, moved->room) = line;
    }
}

void agx_move_constants(char *module) {
    name_list moved = {.count = 0};
    for (char *line = module, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        if (*line == '@')
            move_global(line, end, &moved);
    }
    for (bool again = moved.count > 0; again;) { /* a loop's phi comes before what it is made of */
        again = false;
        for (char *line = module, *end; *line; line = end + (*end == '\n')) {
            end = line + strcspn(line, "\n");
            if (*line == '@' || !move_pointers(line, end, &moved))
                continue;
            follow(line, end, &moved);
            again = true;
        }
    }
    free(moved.items);
}

/* `  %v = load i64, ptr addrspace(1) %p, align 8`: of the names how long they are; false: another line. */
static bool find_load(const char *line, int *value, const char **at, int *at_length,
                      unsigned *align) {
    static const char load[] = " = load i64, ptr addrspace(1) ";
    if (strncmp(line, "  %", 3) != 0)
        return false;
    *value = (int)strcspn(line + 2, " \n");
    if (strncmp(line + 2 + *value, load, strlen(load)) != 0)
        return false;
    *at = line + 2 + *value + strlen(load);
    *at_length = (int)strcspn(*at, ", \n");
    return **at == '%' && sscanf(*at + *at_length, ", align %u", align) == 1;
}

char *agx_split_loads(const char *module) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    int i = 0; /* loads so far */
    for (const char *line = module, *next; *line; line = next) {
        int value, n;
        unsigned align;
        const char *at;
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (!find_load(line, &value, &at, &n, &align)) {
            fwrite(line, 1, (size_t)(next - line), out);
            continue;
        }
        fprintf(out,
                "  %%agx%d.low = load i32, ptr addrspace(1) %.*s, align %u\n"
                "  %%agx%d.at = getelementptr i8, ptr addrspace(1) %.*s, i64 4\n"
                "  %%agx%d.high = load i32, ptr addrspace(1) %%agx%d.at, align %u\n"
                "  %%agx%d.x = zext i32 %%agx%d.low to i64\n"
                "  %%agx%d.y = zext i32 %%agx%d.high to i64\n"
                "  %%agx%d.z = shl i64 %%agx%d.y, 32\n"
                "  %.*s = or i64 %%agx%d.x, %%agx%d.z\n",
                i, n, at, align, i, n, at, i, i, align < 4 ? align : 4, i, i, i, i, i, i, value,
                line + 2, i, i);
        i++;
    }
    fclose(out);
    return text;
}

/* What agx_driver printed ------------------------------------------------------------------------ */

static const char statistics[] = "CS shader: ";

static const char *find_last(const char *text, const char *what) {
    const char *last = NULL;
    for (const char *p = text; (p = strstr(p, what)); p++)
        last = p;
    return last;
}

bool agx_read_address(const char *line, unsigned long *address) {
    char *end;
    const char *p = line + strspn(line, " ");
    if (!isxdigit((unsigned char)*p))
        return false;
    *address = strtoul(p, &end, 16);
    if (*end != ':' || end[1] != ' ')
        return false;
    size_t digits = strspn(end + 2, "0123456789abcdef");
    return digits >= 4 && digits % 4 == 0 && end[2 + digits] == ' ';
}

char *agx_shorten_log(const char *log) {
    const char *made = log ? find_last(log, "== ") : NULL;
    char *text = NULL;
    size_t used = 0;
    unsigned long address;
    bool has_statistics = false;
    FILE *out = open_memstream(&text, &used);
    assert(out);
    for (const char *line = made; line && *line; line += strcspn(line, "\n") + 1) {
        const char *end = line + strcspn(line, "\n"), *found = strstr(line, statistics);
        bool is_statistics = found && found < end;
        if (line == made || is_statistics || agx_read_address(line, &address))
            fprintf(out, "%.*s\n", (int)(end - (is_statistics ? found : line)),
                    is_statistics ? found : line);
        has_statistics |= is_statistics;
        if (!*end)
            break;
    }
    fclose(out);
    if (has_statistics)
        return text;
    free(text);
    return NULL;
}

/* The instructions before the last statistics: the kernel from address 0 on, followed by the part that runs once
 * per launch and computes what all threads share, from address 0 again. */
static char *copy_code(const char *answer, const char *last) {
    unsigned long address;
    const char *start = answer;
    for (const char *line = answer; line < last; line += strcspn(line, "\n") + 1)
        if (!agx_read_address(line, &address))
            start = line + strcspn(line, "\n") + 1;
    char *code = NULL;
    size_t used = 0;
    FILE *out = open_memstream(&code, &used);
    assert(out);
    for (const char *line = start; line < last; line += strcspn(line, "\n") + 1)
        fprintf(out, "%s%.*s\n",
                line > start && agx_read_address(line, &address) && address == 0
                    ? "; once per launch\n"
                    : "",
                (int)strcspn(line, "\n"), line);
    fclose(out);
    return code;
}

bool agx_read_answer(const char *answer, agx_facts *f, char **code) {
    static const char refused[] = "refused: ";
    const char *line = find_last(answer, statistics);
    *f = (agx_facts){.instructions = 0};
    if (strncmp(answer, refused, strlen(refused)) == 0) {
        answer += strlen(refused);
        snprintf(f->refusal, sizeof f->refusal, "%.*s", (int)strcspn(answer, "\n"), answer);
        return true;
    }
    int fields = !line ? 0
                       : sscanf(line,
                                "CS shader: %u instrs, %*u alu, %*u fscib, %*u ic, %u code size, "
                                "%u gprs, %u uniforms, %u scratch, %u threads, %u loops, %u:%u "
                                "spills:fills",
                                &f->instructions, &f->bytes, &f->registers, &f->uniforms,
                                &f->scratch, &f->threads, &f->loops, &f->spills, &f->fills);
    if (fields != 9)
        return false;
    if (code)
        *code = copy_code(answer, line);
    return true;
}

/* One kernel --------------------------------------------------------------------------------------- */

typedef struct {
    agx_compiler *compiler;
    const msl_unit *unit;
    const char *kernel;
    const msl_constant_text *constants;
    size_t count;
} order;

typedef struct {
    const order *order;
    char folder[1024], cpp[1100], bc[1100], ll[1100],
        spv[1100]; /* what the programs make of each other's */
    char entry[160];
    char *log;     /* of the last program */
    char *printed; /* by llc */
    bool worked, multiplies_matrices;
} work;

/* A Mac's compiler does not have the macro __ASSAY__, and kernels may ask for it. */
static char *rewrite(const order *o, err *e) {
    const msl_extras extras = {.language = msl_get_language(o->unit), .is_apple = true};
    msl_unit *u = msl_from_text_with(msl_get_name(o->unit), msl_get_text(o->unit), &extras, e);
    char *text = u ? msl_rewrite(u, o->kernel, o->constants, o->count, e) : NULL;
    msl_free(u);
    return text;
}

/* files: what follows the flags. */
static bool step(work *w, const char *program, const char *const *flags, const char *const *files,
                 err *e) {
    command c = {.count = 0};
    if (!w->worked)
        return true;
    command_add(&c, flags);
    command_add(&c, files);
    free(w->log);
    w->log = NULL;
    return run_tool(w->order->compiler, NULL, program, &c, &w->log, &w->worked, e);
}

static bool run_clang(work *w, err *e) {
    char include[4][PATH_MAX + 64], entry[200], threads[40];
    const char *home = w->order->compiler->home;
    snprintf(include[0], sizeof include[0], "%s/harness/agx/shim", home);
    snprintf(include[1], sizeof include[1], "%s/harness/device/shim", home);
    snprintf(include[2], sizeof include[2], "%s/harness/agx/shim/begin.h", home);
    snprintf(include[3], sizeof include[3], "%s/harness/agx/shim/inline.h", home);
    snprintf(entry, sizeof entry, "-DASSAY_ENTRY=%s", w->entry);
    snprintf(threads, sizeof threads, "-DAGX_THREADS=%d", THREADS);
    const char *const more[] = {"-iquote",  include[0], "-iquote",  include[1],
                                "-include", include[2], "-include", "metal.h",
                                "-include", include[3], entry,      threads,
                                w->cpp,     "-o",       w->bc,      NULL};
    return step(w, "usr/lib/llvm-22/bin/clang", clang_flags, more, e);
}

static bool run_opt(work *w, err *e) {
    char list[200];
    snprintf(list, sizeof list, "-internalize-public-api-list=%s", w->entry);
    const char *const more[] = {list, w->bc, "-o", w->ll, NULL};
    if (!step(w, "usr/lib/llvm-22/bin/opt", opt_flags, more, e))
        return false;
    if (!w->worked)
        return true;
    size_t bytes;
    char *module = os_read_file(w->ll, &bytes, e);
    if (!module)
        return false;
    /* Products and sums may be fused, without which llc says that they may not. */
    static const char contract[] = "!opencl.enable.FP_CONTRACT = !{}\n";
    module = realloc(module, bytes + sizeof contract);
    assert(module);
    memcpy(module + bytes, contract, sizeof contract);
    agx_move_constants(module);
    char *split = agx_split_loads(module);
    w->multiplies_matrices = strstr(module, "@_ZN5assay18multiply_fragments");
    w->worked = !w->multiplies_matrices;
    bool ok = os_write_file(w->ll, split, strlen(split), e);
    free(split);
    free(module);
    return ok;
}

static bool run_llc(work *w, err *e) {
    const char *const more[] = {w->ll, "-o", w->spv, NULL};
    bool ok = step(w, "usr/lib/llvm-22/bin/llc", llc_flags, more, e);
    if (ok && w->worked) {
        w->printed = w->log;
        w->log = NULL;
    }
    return ok;
}

/* Mesa's own copy of a module: of the kernel, after it has been linked, or of its library of functions. */
static bool add_lines(void *context, const char *path, err *e) {
    work *w = context;
    agx_places places;
    size_t bytes;
    char *module = os_read_file(path, &bytes, e);
    if (!module)
        return false;
    uint32_t *words = array_new(bytes / sizeof *words + 1, sizeof *words);
    memcpy(words, module, bytes);
    if (agx_read_places(w->printed, words, bytes / sizeof *words, &places)) {
        char *text = agx_add_lines(w->log, &places, w->order->compiler->home);
        free(w->log);
        w->log = text;
    }
    free(places.items);
    free(words);
    free(module);
    return true;
}

static bool run_driver(const work *w, bool with_places, char **log, bool *worked, err *e) {
    const agx_compiler *c = w->order->compiler;
    char root[PATH_MAX + 16], vendors[PATH_MAX + 64], copies[1100];
    snprintf(root, sizeof root, "AGX_ROOT=%s", c->tree);
    snprintf(vendors, sizeof vendors, "OCL_ICD_VENDORS=%s/etc/OpenCL/vendors", c->tree);
    snprintf(copies, sizeof copies, "MESA_SPIRV_DUMP_PATH=%s", w->folder);
    const char *const before[] = {"/usr/bin/timeout",
                                  "-k5",
                                  "120",
                                  "/usr/bin/env",
                                  root,
                                  vendors,
                                  copies,
                                  "RUSTICL_ENABLE=asahi",
                                  "AGX_MESA_DEBUG=shaderdb,shaders",
                                  "MESA_SHADER_CACHE_DISABLE=1",
                                  NULL};
    command more = {.count = 0};
    COMMAND_ADD(&more, w->spv, w->entry, with_places ? "lines" : NULL);
    return run_tool(c, before, "agx_driver", &more, log, worked, e);
}

static bool is_same_code(const char *log, const char *other) {
    char *a = agx_shorten_log(log), *b = agx_shorten_log(other);
    bool is_same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    return is_same;
}

/* Once as it is, and once with places, which may fail, and counts only if the code is the same. */
static bool run_mesa(work *w, err *e) {
    char *placed = NULL;
    bool has_places = false;
    if (!w->worked)
        return true;
    bool ok = run_driver(w, false, &w->log, &w->worked, e) &&
              (!w->worked || run_driver(w, true, &placed, &has_places, e));
    if (ok && has_places && is_same_code(w->log, placed)) {
        free(w->log);
        w->log = placed;
        return folder_walk(w->folder, ".rcall", NULL, add_lines, w, e);
    }
    free(placed);
    return ok;
}

/* The line of a log that says what went wrong. */
static void find_reason(const char *log, char *text, size_t size) {
    static const char *const words[] = {"error",  "rror:",      "Unresolved",     "panicked",
                                        "Assert", "nsupported", "NIR validation", "Unhandled"};
    const char *line = log ? log : "";
    const char *first = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *found = strstr(line, words[i]);
        first = found && (!first || found < first) ? found : first;
    }
    while (first && first > line && first[-1] != '\n')
        first--;
    line = first ? first : line;
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* What is kept: the last compilation, or a refusal. */
static bool write_answer(const work *w, const char *path, err *e) {
    char *text = w->worked ? agx_shorten_log(w->log) : NULL, refusal[200], reason[160];
    find_reason(w->log, reason, sizeof reason);
    if (w->multiplies_matrices)
        snprintf(refusal, sizeof refusal,
                 "refused: it multiplies simdgroup matrices, for which Mesa has no instruction\n");
    else
        snprintf(refusal, sizeof refusal, "refused: Mesa does not take it: %s\n", reason);
    const char *answer = text ? text : refusal;
    bool ok = os_write_file(path, answer, strlen(answer), e);
    free(text);
    return ok;
}

static bool make_answer(void *context, const char *source, const char *object, err *e) {
    (void)source; /* only the key: what is compiled is the same text as a Mac reads it */
    work w = {.order = context, .worked = true};
    if (!os_make_scratch(w.folder, sizeof w.folder, e))
        return false;
    snprintf(w.cpp, sizeof w.cpp, "%s/k.cpp", w.folder);
    snprintf(w.bc, sizeof w.bc, "%s/k.bc", w.folder);
    snprintf(w.ll, sizeof w.ll, "%s/k.ll", w.folder);
    snprintf(w.spv, sizeof w.spv, "%s/k.spv", w.folder);
    snprintf(w.entry, sizeof w.entry, "msl_%s", w.order->kernel);
    for (char *p = w.entry; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    char *text = rewrite(w.order, e);
    bool ok = text && os_write_file(w.cpp, text, strlen(text), e) && run_clang(&w, e) &&
              run_opt(&w, e) && run_llc(&w, e) && run_mesa(&w, e) && write_answer(&w, object, e);
    free(text);
    free(w.log);
    free(w.printed);
    os_remove_folder(w.folder);
    return ok;
}

static char *make_key(const order *o) {
    char *text = NULL;
    size_t used = 0;
    FILE *out = open_memstream(&text, &used);
    assert(out);
    fprintf(out, "%s\n%s %d", msl_get_text(o->unit), o->kernel, msl_get_language(o->unit));
    for (size_t i = 0; i < o->count; i++)
        fprintf(out, " %d=%s", o->constants[i].index, o->constants[i].text);
    fclose(out);
    return text;
}

static bool find_answer(const order *o, agx_effort effort, agx_facts *facts, char **code, err *e) {
    char path[PATH_MAX], *key = make_key(o), *answer = NULL;
    bool ok = code_cache_find(&o->compiler->cache, key, 0, ".agx",
                              effort == AGX_COMPILE ? make_answer : NULL, (void *)(uintptr_t)o,
                              path, sizeof path, e) &&
              (answer = os_read_file(path, NULL, e)) &&
              (agx_read_answer(answer, facts, code) ||
               err_set(e, EXIT_CANNOT, "%.200s is damaged: assay cache --clear", path));
    free(key);
    free(answer);
    return ok;
}

bool agx_compile(agx_compiler *c, const msl_unit *u, const char *kernel,
                 const constant_value *constants, size_t count, agx_effort effort, agx_facts *facts,
                 char **code, err *e) {
    msl_constant_text texts[MOST_CONSTANTS];
    err why = {.code = EXIT_OK};
    *facts = (agx_facts){.instructions = 0};
    if (code)
        *code = NULL;
    if (count > MOST_CONSTANTS)
        return err_set(e, EXIT_USAGE, "%.80s has more than %d function constants", kernel,
                       MOST_CONSTANTS);
    for (size_t i = 0; i < count; i++)
        constant_spell(&constants[i], &texts[i]);
    const order o = {c, u, kernel, texts, count};
    if (find_answer(&o, effort, facts, code, &why))
        return true;
    if (why.code == EXIT_CANNOT)
        *e = why;
    else
        snprintf(facts->refusal, sizeof facts->refusal, "%.190s", why.text);
    return why.code != EXIT_CANNOT;
}
