/* inspect: see inspect.h. The objects of macOS and the images of Linux, each by its own format. */
#include "inspect.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <elf.h>
#endif

#include "abi.h"
#include "engine.h"
#include "harness/base/os.h"
#include "macho.h"

#define REFUSED_CALLS "uses '"
#define REFUSED_STARTS "has code that runs when it is loaded (a constructor)"
#define REFUSED_CHOSEN "has a function that is chosen when it is loaded"
#define REFUSED_LIBRARY "wants another library"
#define REFUSED_CODE "has code in a section of its own"
#define REFUSED_DATA "has data that could be run as code"
#define REFUSED_SYSTEM "calls the operating system"

/* What the shim and the compiler call: copies, and the functions of libm that it makes of
 * __builtin_expf and its like. Those with an f at the end are for float, which is all there is. */
static bool is_allowed(const char *name) {
    static const char names[] =
        " memcpy memmove memset memcmp acosf acoshf asinf asinhf atan2f atanf atanhf cbrtf"
        " ceilf copysignf cosf coshf erfcf erff exp10f exp2f expf expm1f fabsf fdimf floorf"
        " fmaf fmaxf fminf fmodf frexpf hypotf ilogbf ldexpf lgammaf log10f log1pf log2f"
        " logbf logf lrintf lroundf modff nanf nearbyintf nextafterf powf remainderf remquof"
        " rintf roundevenf roundf scalbnf sincosf sinf sinhf sqrtf tanf tanhf tgammaf truncf"
        " exp log pow fmod floor __extendhfsf2 __truncsfhf2 __truncsfbf2 __extendbfsf2"
        " __gnu_h2f_ieee __gnu_f2h_ieee __truncdfhf2 __truncdfbf2 __extendhfdf2 __sincosf"
        " __udivti3 __umodti3 __divti3 __modti3 __multi3 __fixsfti __fixunssfti __floattisf"
        " __floatuntisf __popcountdi2 __tls_get_addr __powisf2 ";
    size_t length = strlen(name);
    if (length == 0 || strchr(name, ' '))
        return false;
    for (const char *p = names; (p = strstr(p, name)); p++)
        if (p[-1] == ' ' && p[length] == ' ')
            return true;
    return false;
}

static bool refuse(const char *kernel, const char *why, const char *what, err *e) {
    return err_set(e, EXIT_WRONG, "kernel '%.80s' %s%.80s%s: it is not loaded", kernel, why, what,
                   *what ? "', which MSL does not have" : "");
}

/* Objects of macOS ----------------------------------------------------------------------------- */

/* Names of C have an underscore in front there, and the compiler calls a few functions more. */
static bool is_allowed_on_macos(const char *name) {
    static const char *const names[] = {
        "___sincosf_stret", "___exp10f",        "___bzero",          "_bzero",
        "_memset_pattern4", "_memset_pattern8", "_memset_pattern16", "dyld_stub_binder"};
    /* The object is asked before the hooks of checked mode (shim/cpu/checked.h) are linked to it. No
     * library of the program has such names. */
    static const char *const hooks[] = {"___tsan_", "___ubsan_handle_", "___assay_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (strncmp(name, hooks[i], strlen(hooks[i])) == 0)
            return true;
    return name[0] == '_' && is_allowed(name + 1);
}

/* Instrumentation brings one constructor of its own, which calls our empty __tsan_init. No name of
 * a kernel has a dot in it. */
static bool check_macho(const macho_file *f, const char *kernel, err *e) {
    if (!f->is_object)
        return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is no object", kernel);
    if (f->has_options)
        return refuse(kernel, REFUSED_LIBRARY, "", e);
    for (size_t i = 0; i < f->symbol_count; i++) {
        const char *name = macho_get_undefined(f, i);
        if (name && !is_allowed_on_macos(name))
            return refuse(kernel, REFUSED_CALLS, name + (name[0] == '_'), e);
        if (macho_is_chosen(f, i))
            return refuse(kernel, REFUSED_CHOSEN, "", e);
    }
    for (size_t i = 0; i < f->starter_count; i++)
        if (i > 0 || !macho_starts_only(f, &f->starters[i], "_tsan.module_ctor"))
            return refuse(kernel, REFUSED_STARTS, "", e);
    return true;
}

/* Images of Linux ------------------------------------------------------------------------------ */

#if defined(__linux__)
#if !defined(R_AARCH64_IRELATIVE)
#define R_AARCH64_IRELATIVE 1032
#endif

typedef struct {
    const char *kernel;
    const char *data;
    size_t bytes;
    Elf64_Ehdr head;
} elf_file;

static bool has_range(const elf_file *o, uint64_t begin, uint64_t bytes) {
    return begin <= o->bytes && bytes <= o->bytes - begin;
}

static bool open_elf(const char *data, size_t bytes, elf_file *o) {
    o->data = data;
    o->bytes = bytes;
    if (!data || bytes < sizeof o->head)
        return false;
    memcpy(&o->head, data, sizeof o->head);
    return memcmp(o->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           o->head.e_ident[EI_CLASS] == ELFCLASS64 && o->head.e_shentsize == sizeof(Elf64_Shdr) &&
           has_range(o, o->head.e_shoff, (uint64_t)o->head.e_shnum * sizeof(Elf64_Shdr));
}

static bool get_section(const elf_file *o, size_t i, Elf64_Shdr *out) {
    memcpy(out, o->data + o->head.e_shoff + i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || has_range(o, out->sh_offset, out->sh_size);
}

/* A name of a symbol table: its strings end where their section does. */
static const char *get_name(const elf_file *o, const Elf64_Shdr *symbols, uint32_t at) {
    Elf64_Shdr names;
    if (symbols->sh_link >= o->head.e_shnum || !get_section(o, symbols->sh_link, &names) ||
        at >= names.sh_size || !memchr(o->data + names.sh_offset + at, 0, names.sh_size - at))
        return "?";
    return o->data + names.sh_offset + at;
}

/* Symbols that others would have to provide, and those whose value is the result of a call. */
static bool check_symbols(const elf_file *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 1; i < s->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, o->data + s->sh_offset + i * sizeof symbol, sizeof symbol);
        const char *name = get_name(o, s, symbol.st_name);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
            return refuse(o->kernel, REFUSED_CHOSEN, "", e);
        if (symbol.st_shndx == SHN_UNDEF && *name && !is_allowed(name))
            return refuse(o->kernel, REFUSED_CALLS, name, e);
    }
    return true;
}

static bool check_relocations(const elf_file *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela r;
        memcpy(&r, o->data + s->sh_offset + i * sizeof r, sizeof r);
        uint64_t type = ELF64_R_TYPE(r.r_info);
        if (type == R_X86_64_IRELATIVE || type == R_AARCH64_IRELATIVE)
            return refuse(o->kernel, REFUSED_CHOSEN, "", e);
    }
    return true;
}

/* The address that the loader writes at `at`. */
static bool find_target(const elf_file *o, uint64_t at, uint64_t *target) {
    for (size_t i = 0; i < o->head.e_shnum; i++) {
        Elf64_Shdr s;
        if (!get_section(o, i, &s) || s.sh_type != SHT_RELA)
            continue;
        for (uint64_t k = 0; k < s.sh_size / sizeof(Elf64_Rela); k++) {
            Elf64_Rela r;
            memcpy(&r, o->data + s.sh_offset + k * sizeof r, sizeof r);
            if (r.r_offset == at) {
                *target = (uint64_t)r.r_addend;
                return ELF64_R_SYM(r.r_info) == 0;
            }
        }
    }
    return false;
}

/* Instrumentation brings one constructor of its own, which calls our empty __tsan_init. No name of
 * a kernel has a dot in it. */
static bool is_own_constructor(const elf_file *o, const Elf64_Shdr *s) {
    uint64_t target;
    if (s->sh_type != SHT_INIT_ARRAY || s->sh_size != sizeof target ||
        !find_target(o, s->sh_addr, &target))
        return false;
    for (size_t i = 0; i < o->head.e_shnum; i++) {
        Elf64_Shdr table;
        if (!get_section(o, i, &table) || table.sh_type != SHT_SYMTAB)
            continue;
        for (uint64_t k = 1; k < table.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym symbol;
            memcpy(&symbol, o->data + table.sh_offset + k * sizeof symbol, sizeof symbol);
            if (symbol.st_value == target && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                strcmp(get_name(o, &table, symbol.st_name), "tsan.module_ctor") == 0)
                return true;
        }
    }
    return false;
}

/* Libraries that would be loaded with it, and functions that the loader calls. */
static bool check_dynamic(const elf_file *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn d;
        memcpy(&d, o->data + s->sh_offset + i * sizeof d, sizeof d);
        if (d.d_tag == DT_NEEDED)
            return refuse(o->kernel, REFUSED_LIBRARY, "", e);
        if (d.d_tag == DT_INIT || d.d_tag == DT_FINI)
            return refuse(o->kernel, REFUSED_STARTS, "", e);
    }
    return true;
}

/* Code lies where the compiler and the linker put it, and cannot be written. On aarch64 no instruction
 * is anything else read from its middle, so that one which calls the system can be seen. */
static bool check_code(const elf_file *o, const Elf64_Shdr *s, err *e) {
    Elf64_Shdr names = {.sh_link = o->head.e_shstrndx};
    const char *name = get_name(o, &names, s->sh_name);
    if (s->sh_flags & SHF_WRITE ||
        (strncmp(name, ".text", 5) != 0 && strncmp(name, ".plt", 4) != 0))
        return refuse(o->kernel, REFUSED_CODE, "", e);
    for (uint64_t i = 0; o->head.e_machine == EM_AARCH64 && i + 4 <= s->sh_size; i += 4) {
        uint32_t word;
        memcpy(&word, o->data + s->sh_offset + i, sizeof word);
        if ((word & 0xFFE0001Cu) == 0xD4000000u && (word & 3u) != 0) /* svc, hvc, smc */
            return refuse(o->kernel, REFUSED_SYSTEM, "", e);
    }
    return true;
}

/* What the loader makes executable holds code alone. */
static bool check_segment(const elf_file *o, const Elf64_Phdr *p, err *e) {
    bool is_bad = p->p_type == PT_GNU_STACK || (p->p_type == PT_LOAD && p->p_flags & PF_W);
    for (size_t i = 0; i < o->head.e_shnum && p->p_type == PT_LOAD && !is_bad; i++) {
        Elf64_Shdr s;
        is_bad = get_section(o, i, &s) && s.sh_flags & SHF_ALLOC && s.sh_size > 0 &&
                 !(s.sh_flags & SHF_EXECINSTR) && s.sh_addr < p->p_vaddr + p->p_memsz &&
                 s.sh_addr + s.sh_size > p->p_vaddr;
    }
    return !is_bad || refuse(o->kernel, REFUSED_DATA, "", e);
}

static bool check_segments(const elf_file *o, err *e) {
    if (o->head.e_phentsize != sizeof(Elf64_Phdr) ||
        !has_range(o, o->head.e_phoff, (uint64_t)o->head.e_phnum * sizeof(Elf64_Phdr)))
        return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is damaged", o->kernel);
    for (size_t i = 0; i < o->head.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, o->data + o->head.e_phoff + i * sizeof p, sizeof p);
        if (p.p_flags & PF_X && !check_segment(o, &p, e))
            return false;
    }
    return true;
}

static bool check_section(const elf_file *o, const Elf64_Shdr *s, err *e) {
    if (s->sh_type == SHT_PROGBITS && s->sh_flags & SHF_EXECINSTR && !check_code(o, s, e))
        return false;
    switch (s->sh_type) {
    case SHT_DYNSYM:
        return check_symbols(o, s, e);
    case SHT_RELA:
        return check_relocations(o, s, e);
    case SHT_DYNAMIC:
        return check_dynamic(o, s, e);
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
    case SHT_PREINIT_ARRAY:
        return s->sh_size == 0 || is_own_constructor(o, s) ||
               refuse(o->kernel, REFUSED_STARTS, "", e);
    default:
        return true;
    }
}

static bool check_elf(const char *data, size_t bytes, const char *kernel, err *e) {
    elf_file o = {.kernel = kernel};
    bool ok = open_elf(data, bytes, &o) ||
              err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is not a readable object file",
                      kernel);
    for (size_t i = 0; ok && i < o.head.e_shnum; i++) {
        Elf64_Shdr s;
        ok = get_section(&o, i, &s)
                 ? check_section(&o, &s, e)
                 : err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is damaged", kernel);
    }
    return ok && check_segments(&o, e);
}
#else
static bool check_elf(const char *data, size_t bytes, const char *kernel, err *e) {
    (void)data, (void)bytes;
    return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is no Mach-O object", kernel);
}
#endif

bool soft_inspect(const char *path, const char *kernel, err *e) {
    size_t bytes;
    char *data = os_read_file(path, &bytes, e);
    if (!data)
        return false;
    macho_file f;
    bool ok = macho_read((const uint8_t *)data, bytes, &f) ? check_macho(&f, kernel, e)
                                                           : check_elf(data, bytes, kernel, e);
    free(data);
    return ok;
}

/* A kernel that needs more private memory than a fiber's stack has would write over its neighbours.
 * The compiler lists what each function needs; MSL has no recursion, so their sum is enough. */
bool soft_inspect_stack(const char *object, const char *name, err *e) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", object);
    char *dot = strrchr(path, '.');
    if (!dot || dot + 4 >= path + sizeof path)
        return true;
    memcpy(dot, ".su", 4);
    char *text = os_read_file(path, NULL, NULL);
    unlink(path);
    unsigned long long need = 0;
    for (const char *p = text; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *tab = memchr(p, '\t', strcspn(p, "\n"));
        need += tab ? strtoull(tab + 1, NULL, 10) : 0;
    }
    free(text);
    if (need <= SOFT_STACK_USABLE)
        return true;
    return err_set(e, EXIT_WRONG,
                   "kernel '%.80s' needs %llu bytes of private memory per thread; there are %d",
                   name, need, SOFT_STACK_USABLE);
}

/* Comparing: only of ELF images; others never count as the same ---------------------------------- */

#if defined(__linux__)
/* The next section that is loaded; notes only name the build. */
static bool next_section(const elf_file *o, size_t *i, Elf64_Shdr *out) {
    for (; *i < o->head.e_shnum; (*i)++) {
        memcpy(out, o->data + o->head.e_shoff + *i * sizeof *out, sizeof *out);
        if ((out->sh_flags & SHF_ALLOC) && out->sh_type != SHT_NOTE) {
            (*i)++;
            return true;
        }
    }
    return false;
}

static bool is_same_section(const elf_file *a, const Elf64_Shdr *x, const elf_file *b,
                            const Elf64_Shdr *y) {
    if (x->sh_type != y->sh_type || x->sh_flags != y->sh_flags || x->sh_addr != y->sh_addr ||
        x->sh_size != y->sh_size)
        return false;
    return x->sh_type == SHT_NOBITS ||
           (has_range(a, x->sh_offset, x->sh_size) && has_range(b, y->sh_offset, y->sh_size) &&
            memcmp(a->data + x->sh_offset, b->data + y->sh_offset, x->sh_size) == 0);
}

static bool is_same_elf(const elf_file *a, const elf_file *b) {
    Elf64_Shdr x, y;
    size_t i = 0, k = 0, seen = 0;
    for (;;) {
        bool has_x = next_section(a, &i, &x), has_y = next_section(b, &k, &y);
        if (!has_x || !has_y)
            return has_x == has_y && seen > 0;
        if (!is_same_section(a, &x, b, &y))
            return false;
        seen++;
    }
}

bool soft_is_same_code(const pipeline *a, const pipeline *b) {
    const soft_loaded *p = a->impl, *q = b->impl;
    elf_file x = {0}, y = {0};
    size_t bytes[2] = {0};
    char *one = os_read_file(p->object, &bytes[0], NULL);
    char *two = os_read_file(q->object, &bytes[1], NULL);
    bool is_same =
        open_elf(one, bytes[0], &x) && open_elf(two, bytes[1], &y) && is_same_elf(&x, &y);
    free(one);
    free(two);
    return is_same;
}
#else
bool soft_is_same_code(const pipeline *a, const pipeline *b) {
    (void)a;
    (void)b;
    return false;
}
#endif
