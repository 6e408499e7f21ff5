/* inspect_elf: see inspect.h. The images of Linux. */
#include "inspect.h"
#include "inspect_rules.h"

#if defined(__linux__)
#include <elf.h>
#include <string.h>

#if !defined(R_AARCH64_IRELATIVE)
#define R_AARCH64_IRELATIVE 1032
#endif

typedef struct {
    const char *kernel;
    const char *data;
    size_t bytes;
    Elf64_Ehdr head;
} object;

static bool has_range(const object *o, uint64_t begin, uint64_t bytes) {
    return begin <= o->bytes && bytes <= o->bytes - begin;
}

static bool get_section(const object *o, size_t i, Elf64_Shdr *out) {
    memcpy(out, o->data + o->head.e_shoff + i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || has_range(o, out->sh_offset, out->sh_size);
}

/* A name of a symbol table: its strings end where their section does. */
static const char *get_name(const object *o, const Elf64_Shdr *symbols, uint32_t at) {
    Elf64_Shdr names;
    if (symbols->sh_link >= o->head.e_shnum || !get_section(o, symbols->sh_link, &names) ||
        at >= names.sh_size || !memchr(o->data + names.sh_offset + at, 0, names.sh_size - at))
        return "?";
    return o->data + names.sh_offset + at;
}

/* Symbols that others would have to provide, and those whose value is the result of a call. */
static bool check_symbols(const object *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 1; i < s->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, o->data + s->sh_offset + i * sizeof symbol, sizeof symbol);
        const char *name = get_name(o, s, symbol.st_name);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
            return inspect_refuse(o->kernel, INSPECT_CHOSEN, "", e);
        if (symbol.st_shndx == SHN_UNDEF && *name && !inspect_is_allowed(name))
            return inspect_refuse(o->kernel, INSPECT_CALLS, name, e);
    }
    return true;
}

static bool check_relocations(const object *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela r;
        memcpy(&r, o->data + s->sh_offset + i * sizeof r, sizeof r);
        uint64_t type = ELF64_R_TYPE(r.r_info);
        if (type == R_X86_64_IRELATIVE || type == R_AARCH64_IRELATIVE)
            return inspect_refuse(o->kernel, INSPECT_CHOSEN, "", e);
    }
    return true;
}

/* The address that the loader writes at `at`. */
static bool find_target(const object *o, uint64_t at, uint64_t *target) {
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
static bool is_own_constructor(const object *o, const Elf64_Shdr *s) {
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
static bool check_dynamic(const object *o, const Elf64_Shdr *s, err *e) {
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn d;
        memcpy(&d, o->data + s->sh_offset + i * sizeof d, sizeof d);
        if (d.d_tag == DT_NEEDED)
            return inspect_refuse(o->kernel, INSPECT_LIBRARY, "", e);
        if (d.d_tag == DT_INIT || d.d_tag == DT_FINI)
            return inspect_refuse(o->kernel, INSPECT_STARTS, "", e);
    }
    return true;
}

/* Code lies where the compiler and the linker put it, and cannot be written. On aarch64 no instruction
 * is anything else read from its middle, so that one which calls the system can be seen. */
static bool check_code(const object *o, const Elf64_Shdr *s, err *e) {
    Elf64_Shdr names = {.sh_link = o->head.e_shstrndx};
    const char *name = get_name(o, &names, s->sh_name);
    if (s->sh_flags & SHF_WRITE ||
        (strncmp(name, ".text", 5) != 0 && strncmp(name, ".plt", 4) != 0))
        return inspect_refuse(o->kernel, INSPECT_CODE, "", e);
    for (uint64_t i = 0; o->head.e_machine == EM_AARCH64 && i + 4 <= s->sh_size; i += 4) {
        uint32_t word;
        memcpy(&word, o->data + s->sh_offset + i, sizeof word);
        if ((word & 0xFFE0001Cu) == 0xD4000000u && (word & 3u) != 0) /* svc, hvc, smc */
            return inspect_refuse(o->kernel, INSPECT_SYSTEM, "", e);
    }
    return true;
}

/* What the loader makes executable holds code alone. */
static bool check_segment(const object *o, const Elf64_Phdr *p, err *e) {
    bool is_bad = p->p_type == PT_GNU_STACK || (p->p_type == PT_LOAD && p->p_flags & PF_W);
    for (size_t i = 0; i < o->head.e_shnum && p->p_type == PT_LOAD && !is_bad; i++) {
        Elf64_Shdr s;
        is_bad = get_section(o, i, &s) && s.sh_flags & SHF_ALLOC && s.sh_size > 0 &&
                 !(s.sh_flags & SHF_EXECINSTR) && s.sh_addr < p->p_vaddr + p->p_memsz &&
                 s.sh_addr + s.sh_size > p->p_vaddr;
    }
    return !is_bad || inspect_refuse(o->kernel, INSPECT_DATA, "", e);
}

static bool check_segments(const object *o, err *e) {
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

static bool check_section(const object *o, const Elf64_Shdr *s, err *e) {
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
               inspect_refuse(o->kernel, INSPECT_STARTS, "", e);
    default:
        return true;
    }
}

bool inspect_elf(const void *data, size_t bytes, const char *kernel, err *e) {
    object o = {.kernel = kernel, .data = data, .bytes = bytes};
    bool ok = o.bytes >= sizeof o.head;
    if (ok)
        memcpy(&o.head, o.data, sizeof o.head);
    ok = ok && memcmp(o.head.e_ident, ELFMAG, SELFMAG) == 0 &&
         o.head.e_ident[EI_CLASS] == ELFCLASS64 && o.head.e_shentsize == sizeof(Elf64_Shdr) &&
         has_range(&o, o.head.e_shoff, (uint64_t)o.head.e_shnum * sizeof(Elf64_Shdr));
    if (!ok)
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
bool inspect_elf(const void *data, size_t bytes, const char *kernel, err *e) {
    (void)data, (void)bytes;
    return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is no Mach-O object", kernel);
}
#endif
