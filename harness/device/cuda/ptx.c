/* ptx: see ptx.h. Runs clang on rewritten MSL with the shim of shim/ and shim/ptx, and reads what
 * the host needs to know from the PTX. Also finds the parts of NVIDIA's toolkit that are used where they are:
 * libdevice, ptxas, nvdisasm and compute-sanitizer. */
#include "ptx.h"

#include <assert.h>
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/toolchain.h"
#include "harness/device/code_cache.h"
#include "harness/device/ir.h"
#include "sanitizer.h"

struct ptx_compiler {
    char clang[PATH_MAX], libdevice[PATH_MAX];
    char version[128];
    char name[256];
    char machine[16];          /* sm_90 */
    char target[32];           /* --cuda-gpu-arch=sm_90 */
    char headers[3][PATH_MAX]; /* included before the text, the first two precompiled */
    char folders[2][PATH_MAX]; /* where their own includes are, as options */
    code_cache cache;
    precompiled shim[2][MATH_COUNT]; /* with lanes that can meet, the last */
};

/* NVIDIA's toolkit ----------------------------------------------------------------------------- */

static const char libdevice[] = "libdevice.10.bc";
static const char advice[] =
    "install the CUDA toolkit, or pip install nvidia-cuda-nvcc, or name the file in "
    "ASSAY_LIBDEVICE";

static bool take(const char *found, char *path, size_t size) {
    return access(found, R_OK) == 0 && snprintf(path, size, "%s", found) < (int)size;
}

static bool take_inside(const char *folder, const char *inside, char *path, size_t size) {
    char whole[PATH_MAX];
    return folder && *folder &&
           snprintf(whole, sizeof whole, "%s/%s", folder, inside) < (int)sizeof whole &&
           take(whole, path, size);
}

/* The last match: of several versions the newest. */
static bool take_match(const char *pattern, char *path, size_t size) {
    glob_t found;
    bool ok = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
              take(found.gl_pathv[found.gl_pathc - 1], path, size);
    globfree(&found);
    return ok;
}

/* The folder of a toolkit: that of the variables, of nvcc along PATH, or the usual places. */
static bool find_in_toolkit(const char *inside, char *path, size_t size) {
    char nvcc[PATH_MAX], whole[PATH_MAX + 64];
    if (take_inside(getenv("CUDA_HOME"), inside, path, size) ||
        take_inside(getenv("CUDA_PATH"), inside, path, size))
        return true;
    if (os_find_program("nvcc", nvcc, sizeof nvcc)) {
        char *slash = strrchr(nvcc, '/');
        if (slash)
            *slash = 0;
        snprintf(whole, sizeof whole, "%s/..", nvcc);
        if (take_inside(whole, inside, path, size))
            return true;
    }
    static const char *const usual[] = {"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda",
                                        "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        snprintf(whole, sizeof whole, "%s/%s", usual[i], inside);
        if (take_match(whole, path, size))
            return true;
    }
    return false;
}

/* Python packages that bring it: nvidia-cuda-nvcc in both of its layouts, and Triton. */
static bool find_in_packages(char *path, size_t size) {
    static const char *const inside[] = {"nvidia/cuda_nvcc/nvvm/libdevice",
                                         "nvidia/cu[0-9]*/nvvm/libdevice",
                                         "triton/backends/nvidia/lib"};
    char folders[4][1024] = {"", "", "/usr/local/lib/python3*/dist-packages",
                             "/usr/lib/python3*/dist-packages"};
    const char *environment = getenv("VIRTUAL_ENV"), *home = getenv("HOME");
    if (environment && *environment)
        snprintf(folders[0], sizeof folders[0], "%.900s/lib/python3*/site-packages", environment);
    if (home && *home)
        snprintf(folders[1], sizeof folders[1], "%.900s/.local/lib/python3*/site-packages", home);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (size_t j = 0; j < sizeof inside / sizeof *inside && folders[i][0]; j++) {
            char pattern[PATH_MAX + 128];
            snprintf(pattern, sizeof pattern, "%s/%s/%s", folders[i], inside[j], libdevice);
            if (take_match(pattern, path, size))
                return true;
        }
    return false;
}

/* libdevice.10.bc: ASSAY_LIBDEVICE, the toolkit, or a Python package that brings it. */
static bool find_libdevice(char *path, size_t size, err *e) {
    const char *given = getenv("ASSAY_LIBDEVICE");
    if (given && *given)
        return take(given, path, size) ||
               err_set(e, EXIT_CANNOT, "ASSAY_LIBDEVICE is %.120s, which cannot be read", given);
    char inside[64];
    snprintf(inside, sizeof inside, "nvvm/libdevice/%s", libdevice);
    return find_in_toolkit(inside, path, size) || find_in_packages(path, size) ||
           err_set(e, EXIT_CANNOT, "%s, NVIDIA's math functions, is not found; %s", libdevice,
                   advice);
}

bool ptx_find_tool(const char *name, char *path, size_t size) {
    char inside[64];
    snprintf(inside, sizeof inside, "bin/%s", name);
    return os_find_program(name, path, size) || find_in_toolkit(inside, path, size);
}

/* Assembler and disassembler -------------------------------------------------------------------- */

/* The number before a word, such as that of " bytes spill stores"; 0 if there is none. */
static uint32_t read_before(const char *report, const char *word) {
    const char *at = strstr(report, word), *first = at;
    while (first > report && first[-1] >= '0' && first[-1] <= '9')
        first--;
    return first < at ? (uint32_t)strtoul(first, NULL, 10) : 0;
}

bool ptx_assemble(const ptx_compiler *compiler, const char *assembler, const char *ptx_path,
                  const char *name, const char *cubin, ptx_needs *needs, err *e) {
    char target[40];
    snprintf(target, sizeof target, "-arch=%s%s", compiler->machine,
             strcmp(compiler->machine, "sm_90") == 0 ? "a" : "");
    command c = {.count = 0};
    char *output = NULL;
    int status;
    COMMAND_ADD(&c, assembler, target, "-v", "-o", cubin ? cubin : "/dev/null", ptx_path,
                cubin ? "-lineinfo" : NULL);
    if (!child_run(c.argv, &output, &status, e))
        return false;
    const char *report = output ? output : "";
    if (status != 0) {
        err_set(e, EXIT_WRONG, "ptxas rejects kernel '%.100s'", name);
        err_set_detail(e, report);
    } else if (needs)
        *needs = (ptx_needs){.registers = read_before(report, " registers"),
                             .spill_bytes = read_before(report, " bytes spill stores") +
                                            read_before(report, " bytes spill loads")};
    free(output);
    return status == 0;
}

char *ptx_disassemble(const char *disassembler, const char *cubin, err *e) {
    const char *const argv[] = {disassembler, "-g", "-c", cubin, NULL};
    char *output = NULL;
    int status;
    if (!child_run(argv, &output, &status, e))
        return NULL;
    if (status == 0 && output)
        return output;
    err_set(e, EXIT_CANNOT, "nvdisasm cannot read the machine code");
    err_set_detail(e, output ? output : "");
    free(output);
    return NULL;
}

/* The compiler --------------------------------------------------------------------------------- */

enum {
    OLDEST_CLANG = 16,      /* the first that knows sm_90 */
    OLDEST_CAPABILITY = 70, /* the first whose lanes run on their own */
    NEWEST_CAPABILITY = 90, /* that every such clang knows; newer GPUs run its code too */
};

/* Nothing hoisted or sunk: the optimiser may not make one simdgroup call out of the
 * two arms of a branch. Loops whose length is known are unrolled, also long ones: an array that a
 * loop indexes cannot be in registers. The target is the host that the code is not for: which types there are
 * (half) is taken from it. */
/* clang-format off */
static const char *const cuda_flags[] = { /* which are not for a module */
    "-x", "cuda", "--target=x86_64-linux-gnu", "--cuda-device-only", "--cuda-path=/dev/null", "-nocudainc", "-nocudalib",
    NULL,
};
static const char *const flags[] = {
    "-S", "-O3", "-std=c++17", "-fclang-abi-compat=14",
    "-Xclang", "-target-feature", "-Xclang", "+ptx78", "-fdeclspec", "-gline-directives-only",
    "-fno-operator-names", "-fno-exceptions", "-fno-rtti", "-fno-finite-loops",
    "-fno-strict-aliasing", "-fsigned-char", "-fno-math-errno", "-fno-threadsafe-statics",
    "-fno-delete-null-pointer-checks", "-fno-caret-diagnostics", "-w",
    "-Xclang", "-cl-single-precision-constant", "-mllvm", "-simplifycfg-hoist-common=0", "-mllvm",
    "-simplifycfg-sink-common=0", "-mllvm", "-unroll-threshold=4000", NULL,
};

/* Division and square root: rounded once, as on the software device, or within 2 ULP; and what
 * becomes of denormals. */
static const char *const safe_flags[] = {"-mllvm", "-nvptx-prec-divf32=2", "-mllvm",
                                         "-nvptx-prec-sqrtf32=1", NULL};
static const char *const free_flags[] = {"-mllvm", "-nvptx-prec-divf32=1", "-mllvm",
                                         "-nvptx-prec-sqrtf32=0",
                                         "-fgpu-flush-denormals-to-zero", NULL};
/* clang-format on */

/* Does this clang know the GPU's machine at all? */
static bool check_target(const ptx_compiler *c, err *e) {
    const char *const argv[] = {c->clang, "--print-targets", NULL};
    char *output = NULL;
    int status = 0;
    bool ok = child_run(argv, &output, &status, e);
    if (ok && !(status == 0 && output && strstr(output, "nvptx64")))
        ok = err_set(e, EXIT_CANNOT,
                     "%.120s was built without the target NVPTX; install another: "
                     "apt-get install clang-19, or name one in ASSAY_CLANG",
                     c->clang);
    free(output);
    return ok;
}

static bool check_version(const ptx_compiler *c, err *e) {
    const char *number = strstr(c->version, "version ");
    int major = number ? atoi(number + strlen("version ")) : 0;
    return major >= OLDEST_CLANG ||
           err_set(e, EXIT_CANNOT,
                   "%.120s is clang %d, and %d is the oldest that compiles for NVIDIA GPUs; "
                   "install one: apt-get install clang-19",
                   c->clang, major, OLDEST_CLANG);
}

static bool open_cache(ptx_compiler *c, err *e) {
    static const char *const *const lists[] = {cuda_flags, flags, safe_flags, free_flags};
    static const char *const rooms[] = {"msl/limits.h", "shim", "shim/ptx", "cuda/abi.h"};
    sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const char *const *flag = lists[i]; *flag; flag++)
            code_cache_hash_texts(&h, flag, 1);
    sha256_add(&h, c->target, strlen(c->target) + 1);
    return code_cache_hash_compiler(&h, c->clang, c->version, rooms, sizeof rooms / sizeof *rooms,
                                    e) &&
           code_cache_hash_file(&h, c->libdevice, e) && code_cache_open(&c->cache, "cuda", &h, e);
}

static bool open_compiler(ptx_compiler *c, int capability, err *e) {
    char home[PATH_MAX - 64];
    if (capability < OLDEST_CAPABILITY)
        return err_set(
            e, EXIT_CANNOT, "the GPU has compute capability %d.%d; at least %d.%d is needed",
            capability / 10, capability % 10, OLDEST_CAPABILITY / 10, OLDEST_CAPABILITY % 10);
    if (!toolchain_find_clang(c->clang, sizeof c->clang, c->version, sizeof c->version, e) ||
        !check_version(c, e) || !check_target(c, e) ||
        !find_libdevice(c->libdevice, sizeof c->libdevice, e) ||
        !os_find_home(home, sizeof home, e))
        return false;
    int known = capability < NEWEST_CAPABILITY ? capability : NEWEST_CAPABILITY;
    snprintf(c->machine, sizeof c->machine, "sm_%d", known);
    snprintf(c->target, sizeof c->target, "--cuda-gpu-arch=%s", c->machine);
    snprintf(c->headers[0], PATH_MAX, "%s/harness/device/shim/ptx/begin.h", home);
    snprintf(c->headers[1], PATH_MAX, "%s/harness/device/shim/metal.h", home);
    snprintf(c->headers[2], PATH_MAX, "%s/harness/device/shim/ptx/inline.h", home);
    snprintf(c->folders[0], PATH_MAX, "-iquote%s/harness/device/shim/ptx", home);
    snprintf(c->folders[1], PATH_MAX, "-iquote%s/harness/device/shim", home);
    snprintf(c->name, sizeof c->name, "%.90s (%.90s), %s", c->version, c->clang, c->machine);
    return open_cache(c, e);
}

ptx_compiler *ptx_compiler_new(int capability, err *e) {
    ptx_compiler *c = array_new(1, sizeof *c);
    if (open_compiler(c, capability, e))
        return c;
    free(c);
    return NULL;
}

void ptx_compiler_free(ptx_compiler *c) {
    free(c);
}

const char *ptx_compiler_get_name(const ptx_compiler *c) {
    return c->name;
}

/* Products of simdgroup matrices: a tensor core multiplies 16 rows by 8 columns, and a simdgroup matrix
 * has 8 rows. A kernel that has several of them multiplies each with the same second matrix, and its
 * compiler writes these products one after the other, in place: the registers of the sums are also
 * those of what is added. So the first of two can move down to the other if nothing between them
 * mentions its sums, and nothing but a product its other registers. Two with the same second matrix
 * become one, and two of those one after the other, with the same sums, one of twice as many columns. */

enum { REGISTER = 16 };

typedef struct {
    int rows, columns; /* 8 or 16 of the first matrix */
    char type[8];
    char sums[4][REGISTER], a[4][REGISTER], b[2][REGISTER];
} product;

typedef struct {
    const char *text;
    product *product; /* NULL: another instruction */
    bool is_gone, is_changed;
} ptx_line;

static product *parse_product(const char *text) {
    product p = {.rows = 8, .columns = 8};
    if (!strstr(text, PTX_UPPER_ROWS) ||
        sscanf(text,
               " mma.sync.aligned.m16n8k8.row.col.f32.%7[bf16].%*[bf16].f32 {%15[^,], %15[^,], "
               "%*[^}]}, {%15[^,], %*[^}]}, {%15[^}]}",
               p.type, p.sums[0], p.sums[1], p.a[0], p.b[0]) != 5)
        return NULL;
    product *made = array_new(1, sizeof *made);
    *made = p;
    return made;
}

static bool mentions(const char *text, const char *reg) {
    size_t length = strlen(reg);
    for (const char *p = strstr(text, reg); length && p; p = strstr(p + 1, reg))
        if (!strspn(p + length, "0123456789"))
            return true;
    return false;
}

static bool mentions_any(const char *text, char regs[][REGISTER], int count) {
    for (int i = 0; i < count; i++)
        if (mentions(text, regs[i]))
            return true;
    return false;
}

/* Does this line end a basic block? */
static bool ends_block(const char *text) {
    return strncmp(text, "$L__BB", 6) == 0 || strstr(text, "bra") || strstr(text, "ret;") ||
           strstr(text, "call") || *text == '}';
}

/* Does this line block p from moving past it? */
static bool blocks_move(ptx_line *l, product *p) {
    if (!l->product)
        return mentions_any(l->text, p->sums, 4) || mentions_any(l->text, p->a, 4) ||
               mentions_any(l->text, p->b, 2);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (*p->sums[i] && strcmp(p->sums[i], l->product->sums[j]) == 0)
                return true;
    return false;
}

/* Two matrices below each other. */
static bool join_rows(const product *p, product *q) {
    if (p->rows != 8 || q->rows != 8 || strcmp(p->type, q->type) != 0 ||
        strcmp(p->b[0], q->b[0]) != 0 || strcmp(p->sums[0], q->sums[0]) == 0)
        return false;
    memcpy(q->sums[2], q->sums[0], sizeof q->sums[0] * 2);
    memcpy(q->sums[0], p->sums[0], sizeof q->sums[0] * 2);
    memcpy(q->a[1], q->a[0], sizeof q->a[0]);
    memcpy(q->a[0], p->a[0], sizeof q->a[0]);
    q->rows = 16;
    return true;
}

/* Two products that are added to the same sums. */
static bool join_columns(const product *p, product *q) {
    if (p->rows != 16 || q->rows != 16 || p->columns != 8 || q->columns != 8 ||
        strcmp(p->type, q->type) != 0 || memcmp(p->sums, q->sums, sizeof p->sums) != 0)
        return false;
    memcpy(q->a[2], q->a[0], sizeof q->a[0] * 2);
    memcpy(q->a[0], p->a[0], sizeof q->a[0] * 2);
    memcpy(q->b[1], q->b[0], sizeof q->b[0]);
    memcpy(q->b[0], p->b[0], sizeof q->b[0]);
    q->columns = 16;
    return true;
}

static void join_all(ptx_line *lines, size_t count, bool (*join)(const product *, product *)) {
    for (size_t i = 0; i < count; i++) {
        ptx_line *l = &lines[i];
        for (size_t j = i + 1; l->product && !l->is_gone && j < count; j++) {
            ptx_line *other = &lines[j];
            if (other->is_gone)
                continue;
            if (other->product && join(l->product, other->product)) {
                l->is_gone = other->is_changed = true;
            } else if (ends_block(other->text) || blocks_move(other, l->product)) {
                break;
            }
        }
    }
}

static void print_product(FILE *f, const product *p) {
    fprintf(f, "\tmma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 ", p->columns, p->type, p->type);
    for (int i = 0; i < 2; i++) {
        fprintf(f, "{%s, %s, %s, %s}%s", p->sums[0], p->sums[1], p->sums[2], p->sums[3],
                i ? ";\n" : ", ");
        if (i == 0 && p->columns == 8)
            fprintf(f, "{%s, %s}, {%s}, ", p->a[0], p->a[1], p->b[0]);
        else if (i == 0)
            fprintf(f, "{%s, %s, %s, %s}, {%s, %s}, ", p->a[0], p->a[1], p->a[2], p->a[3], p->b[0],
                    p->b[1]);
    }
}

char *ptx_merge_text(const char *ptx) {
    size_t count = 0, size = 0;
    char *copy = strdup(ptx), *made = NULL;
    assert(copy);
    for (const char *p = ptx; *p; p++)
        count += *p == '\n';
    ptx_line *lines = array_new(count + 1, sizeof *lines);
    char *at = copy;
    for (size_t i = 0; i <= count; i++) {
        char *end = at + strcspn(at, "\n");
        bool is_last = !*end;
        *end = '\0';
        lines[i].text = at;
        lines[i].product = parse_product(at);
        at = is_last ? end : end + 1;
    }
    join_all(lines, count + 1, join_rows);
    join_all(lines, count + 1, join_columns);
    FILE *f = open_memstream(&made, &size);
    assert(f);
    for (size_t i = 0; i <= count; i++) {
        if (lines[i].is_changed && !lines[i].is_gone)
            print_product(f, lines[i].product);
        else if (!lines[i].is_gone)
            fprintf(f, "%s%s", lines[i].text, i < count ? "\n" : "");
        free(lines[i].product);
    }
    fclose(f);
    free(lines);
    free(copy);
    return made;
}

/* Compiling ----------------------------------------------------------------------------------- */

typedef struct {
    ptx_compiler *compiler;
    const char *name;
    math_mode math;
    bool watches_races; /* racecheck knows atomic updates, not relaxed loads and stores */
    bool has_tensors;   /* Metal 4's, which the shim lacks here */
    bool uses_elements; /* of simdgroup matrices, whose places are Apple's then */
    bool has_shifts;    /* by counts that need a mask */
    bool has_lanes;     /* that can meet */
} order;

enum {
    COMPILE_SECONDS = 300,
    WATCHES_RACES = 1 << 8,
    HAS_LANES = 1 << 9 /* in the key of the cache, beside the math */
};

static void add_flags(math_mode math, command *c) {
    command_add(c, flags);
    command_add(c, math == MATH_SAFE ? safe_flags : free_flags);
    command_add(c, math_mode_get_flags(math));
}

/* What a kernel with bulk copies, or with clusters, has in its PTX, followed by the bytes of shared memory or
 * by the threadgroups of a cluster. */
#define BULK_MARK "// assay bulk "
#define CLUSTER_MARK "// assay cluster "

static uint32_t read_mark(const char *ptx, const char *mark) {
    const char *first = strstr(ptx, mark);
    return first ? (uint32_t)strtoul(first + strlen(mark), NULL, 10) : 0;
}

/* What clang 16 cannot write: more than PTX 7.8, when bulk copies came with 8.0 and
 * stores to the shared memory of a cluster with 8.1; how large a cluster is; and the target of products of
 * warpgroups, which only GPUs of compute capability 9.0 have. */
static char *complete_ptx(char *ptx) {
    static const char old[] = ".version 7.8", new[] = ".version 8.1", target[] = ".target sm_90";
    char *version = strstr(ptx, old), *entry = strstr(ptx, ".entry"), directive[64] = "";
    const char *body = entry ? strchr(entry, '{') : NULL, *last = strstr(ptx, target);
    if (version)
        memcpy(version, new, strlen(new));
    uint32_t cluster = ptx_count_cluster(ptx);
    if (cluster > 1)
        snprintf(directive, sizeof directive, ".reqnctapercluster %u, 1, 1\n", cluster);
    size_t head = last && strstr(ptx, "wgmma.") ? (size_t)(last - ptx) + strlen(target) : 0,
           before = body ? (size_t)(body - ptx) : strlen(ptx);
    char *whole = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&whole, &size);
    assert(f);
    fprintf(f, "%.*s%s%.*s%s%s", (int)head, ptx, head ? "a" : "", (int)(before - head), ptx + head,
            directive, ptx + before);
    fclose(f);
    return whole;
}

/* A widened ushort times 65537 is two of it side by side. ptxas 13.0 does not clear what is above the ushort
 * first where it is half a register of floats, so its bytes are put together instead: as many characters. */
static bool pair_shorts(char *ptx) {
    char to[16], from[16], widens[40], pair[64];
    bool is_changed = false;
    for (char *end = ptx; (end = strstr(end, ", 65537;")); end++) {
        char *line = end;
        while (line > ptx && line[-1] != '\n')
            line--;
        if (sscanf(line, "\tmul.lo.s32 %15[^,], %15[^,]", to, from) != 2)
            continue;
        snprintf(widens, sizeof widens, "cvt.u32.u16 \t%s,", from);
        if (!strstr(ptx, widens))
            continue;
        int n = snprintf(pair, sizeof pair, "\tprmt.b32 \t%s, %s, 0, 4112", to, from);
        memcpy(line, pair, (size_t)n);
        is_changed = true;
    }
    return is_changed;
}

/* Rewrites the file of the PTX, if it has products to merge or something to complete. */
static bool finish_ptx(const char *path, err *e) {
    char *ptx = os_read_file(path, NULL, e);
    bool ok = ptx && (!pair_shorts(ptx) || os_write_own(path, ptx, strlen(ptx), e));
    for (int step = 0; ok && step < 2; step++) {
        if (!strstr(ptx, step == 0 ? PTX_UPPER_ROWS : BULK_MARK))
            continue;
        char *changed = step == 0 ? ptx_merge_text(ptx) : complete_ptx(ptx);
        free(ptx);
        ptx = changed;
        ok = os_write_own(path, ptx, strlen(ptx), e);
    }
    free(ptx);
    return ok;
}

static bool is_about_tensors(const char *messages) {
    return strstr(messages, "tensor") || strstr(messages, "dextents") ||
           strstr(messages, "matmul2d");
}

/* From an unoptimised module: shifts are masked, and lanes that can meet keep their paths. */
static bool compile_module(const order *o, const char *module, const char *object, err *e) {
    char machine[32];
    snprintf(machine, sizeof machine, "-march=%s", o->compiler->machine);
    command c = {.count = 0};
    COMMAND_ADD(&c, o->compiler->clang, "--target=nvptx64-nvidia-cuda", machine,
                "--cuda-feature=+ptx78", "-nogpulib");
    add_flags(o->math, &c);
    COMMAND_ADD(&c, "-x", "ir", module, "-o", object);
    int status = 1;
    bool ok = (!o->has_shifts || ir_change_file(shift_mask_module, module, "", e)) &&
              (!o->has_lanes || ir_change_file(keep_paths_in_arguments, module,
                                               "its loops are nested too deeply", e)) &&
              compiler_run(c.argv[0], c.argv, object, COMPILE_SECONDS, NULL, &status, e) &&
              (status == 0 ||
               err_set(e, EXIT_WRONG, "kernel '%.100s' does not compile for NVIDIA GPUs", o->name));
    unlink(module);
    return ok;
}

static bool make_ptx(void *context, const char *source, const char *object, err *e) {
    const order *o = context;
    ptx_compiler *c = o->compiler;
    const bool is_changed = o->has_shifts || o->has_lanes;
    char entry[192] = "-DASSAY_ENTRY=", module[PATH_MAX], *output = NULL;
    ptx_name_entry(o->name, entry + strlen(entry), sizeof entry - strlen(entry));
    if (!path_print(module, sizeof module, e, "%s.ll", object))
        return false;
    const char *const headers[] = {"-include", c->headers[0], "-include", c->headers[1], NULL};
    command options = {.count = 0}, rest = {.count = 0};
    int status;
    COMMAND_ADD(&options, c->clang);
    command_add(&options, cuda_flags);
    add_flags(o->math, &options);
    COMMAND_ADD(&options, c->target, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", c->libdevice,
                c->folders[0], c->folders[1], o->has_lanes ? "-DASSAY_LANES=1" : "-DASSAY_LANES=0",
                o->watches_races ? "-DASSAY_WATCHES_RACES=1" : NULL);
    COMMAND_ADD(&rest, "-include", c->headers[2],
                o->uses_elements ? "-DASSAY_THREAD_ELEMENTS=1" : "-DASSAY_THREAD_ELEMENTS=0", entry,
                source, "-o", is_changed ? module : object);
    if (is_changed)
        COMMAND_ADD(&rest, "-emit-llvm", "-Xclang", "-disable-llvm-passes",
                    "-fno-discard-value-names");
    if (!precompiled_run(o->watches_races ? NULL : &c->shim[o->has_lanes][o->math], &c->cache,
                         (uint32_t)o->math | (o->has_lanes ? HAS_LANES : 0), &options, headers,
                         rest.argv, is_changed ? module : object, COMPILE_SECONDS, &output, &status,
                         e))
        return false;
    if (status != 0) {
        bool is_tensors = o->has_tensors && output && is_about_tensors(output);
        err_set(e, EXIT_WRONG, "kernel '%.100s' does not compile for NVIDIA GPUs%s", o->name,
                is_tensors ? ": Metal 4 tensors run on the software device only (--device soft)"
                           : "");
        err_set_detail(e, output && !is_tensors ? output : "");
    }
    free(output);
    return status == 0 && (!is_changed || compile_module(o, module, object, e)) &&
           finish_ptx(object, e);
}

void ptx_name_entry(const char *kernel, char *name, size_t size) {
    snprintf(name, size, "%s%s", PTX_ENTRY_PREFIX, kernel);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
}

char *ptx_compile(ptx_compiler *c, const char *text, const char *name, math_mode math, char *path,
                  size_t size, err *e) {
    char own[PATH_MAX];
    const char *tool = sanitizer_get_tool();
    bool watches_races = tool && strcmp(tool, "racecheck") == 0 && strstr(text, "atomic");
    order o = {c, name, math, watches_races, .has_tensors = msl_text_has_tensors(text)};
    o.uses_elements = msl_text_uses_elements(text);
    o.has_shifts = shift_mask_is_needed(text);
    o.has_lanes =
        strstr(text, "simd_") || strstr(text, "quad_") || strstr(text, "simdgroup_barrier");
    uint32_t key = (uint32_t)math | (watches_races ? WATCHES_RACES : 0);
    if (!path) {
        path = own;
        size = sizeof own;
    }
    if (!code_cache_find(&c->cache, text, key, ".ptx", make_ptx, &o, path, size, e))
        return NULL;
    return os_read_file(path, NULL, e);
}

/* What the PTX says -------------------------------------------------------------------------- */

void ptx_complete_signature(const char *ptx, const msl_signature *all, msl_signature *s) {
    const char *table = strstr(ptx, "assay_value_bytes[");
    const char *p = table ? strchr(table, '{') : NULL;
    bool is_bytes = table && table - ptx > 4 && memcmp(table - 4, ".b8 ", 4) == 0;
    for (size_t j = 0; p && *p != '}' && j < all->count; j++) {
        uint32_t bytes = 0;
        /* Zeros at the end may be left out. */
        for (int shift = 0; shift < (is_bytes ? 32 : 8) && *p != '}'; shift += 8) {
            char *end;
            bytes |= (uint32_t)strtoul(p + 1, &end, 10) << shift;
            p = end;
        }
        for (size_t i = 0; i < s->count; i++)
            if (bytes > 0 && strcmp(s->params[i].name, all->params[j].name) == 0)
                s->params[i].value_bytes = bytes;
    }
}

/* "	.shared .align 4 .b8 name[256];" or ".shared .f32 name;" Memory whose size the launch gives is
 * an array without one. */
uint32_t ptx_count_shared(const char *ptx) {
    uint32_t sum = 0;
    for (const char *line = ptx; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        size_t length = strcspn(line, "\n");
        const char *space = strstr(line, ".shared .");
        if (!space || space > line + length || strchr("\t{}", *line) || strstr(line, ";") == NULL)
            continue;
        const char *type = space;
        uint32_t bytes = 0, count = 1, align = 1;
        char word[16];
        while (type < line + length && sscanf(type, "%15s", word) == 1 && *word == '.') {
            if (strcmp(word, ".align") == 0)
                align = (uint32_t)strtoul(strstr(type, ".align") + 6, NULL, 10);
            else if (strpbrk(word + 1, "0123456789"))
                bytes = (uint32_t)strtoul(strpbrk(word + 1, "0123456789"), NULL, 10) / 8;
            type = strstr(type, word) + strlen(word);
            if (strcmp(word, ".align") == 0)
                type += strspn(type, " 0123456789");
            type += strspn(type, " ");
        }
        const char *bracket = memchr(type, '[', (size_t)(line + length - type));
        if (bracket)
            count = (uint32_t)strtoul(bracket + 1, NULL, 10);
        sum = (sum + align - 1) / align * align + bytes * count;
    }
    return sum;
}

uint32_t ptx_count_bulk(const char *ptx) {
    return read_mark(ptx, BULK_MARK);
}

uint32_t ptx_count_cluster(const char *ptx) {
    uint32_t found = read_mark(ptx, CLUSTER_MARK);
    return found ? found : 1;
}

bool ptx_find_early_loads(const char *ptx, uint32_t *buffers, uint32_t *caches) {
    static const char mark[] = "// assay early ", rows[] = "rows ";
    const char *first = strstr(ptx, mark);
    *buffers = *caches = 0;
    for (const char *p = first; p; p = strstr(p + 1, mark)) {
        const char *bits = p + strlen(mark);
        if (strncmp(bits, rows, strlen(rows)) == 0)
            *caches |= (uint32_t)strtoul(bits + strlen(rows), NULL, 10);
        else
            *buffers |= (uint32_t)strtoul(bits, NULL, 10);
    }
    return first != NULL;
}
