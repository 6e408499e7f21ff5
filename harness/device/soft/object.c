/* object: see object.h. Every length is checked against the section: the object is ours, but a reader that
 * trusts its input is a crash. The line program is run, and its last row at or below the address kept.
 * The numbers of Mach-O are those of <mach-o/loader.h> and <mach-o/nlist.h>, which only macOS has; the
 * reader works everywhere, so that it can be tested everywhere. */
#include "object.h"

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

/* Reading --------------------------------------------------------------------------------------- */

uint64_t cursor_take(cursor *c, size_t bytes) {
    uint64_t value = 0;
    if ((size_t)(c->end - c->at) < bytes) {
        c->at = c->end;
        return 0;
    }
    memcpy(&value, c->at, bytes); /* both CPUs are little-endian, and so are their objects */
    c->at += bytes;
    return value;
}

static bool has_range(cursor file, uint64_t begin, uint64_t bytes) {
    const uint64_t all = (uint64_t)(file.end - file.at);
    return begin <= all && bytes <= all - begin;
}

/* Empty if it is not all there. */
static cursor get_range(cursor file, uint64_t begin, uint64_t bytes) {
    return has_range(file, begin, bytes) ? (cursor){file.at + begin, file.at + begin + bytes}
                                         : (cursor){file.at, file.at};
}

static uint64_t read_number(cursor file, uint64_t at, size_t bytes) {
    cursor c = get_range(file, at, bytes);
    return cursor_take(&c, bytes);
}

static uint64_t take_leb(cursor *c, bool is_signed) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    while (c->at < c->end && byte & 0x80 && shift < 64) {
        byte = *c->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        shift += 7;
    }
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~UINT64_C(0) << shift;
    return value;
}

static const char *take_string(cursor *c) {
    const char *text = (const char *)c->at;
    const uint8_t *nul = memchr(c->at, 0, (size_t)(c->end - c->at));
    if (!nul) {
        c->at = c->end;
        return "";
    }
    c->at = nul + 1;
    return text;
}

#define SHIM "device/shim"

typedef struct {
    uint8_t minimum, opcode_base, line_range;
    int8_t line_base;
    uint8_t lengths[256];
    cursor folders, files; /* where their names begin */
} header;

/* The next of the files, "" after the last; *folder: the number of the one that it is in. */
static const char *take_file(cursor *c, uint64_t *folder) {
    const char *name = take_string(c);
    for (int i = 0; *name && i < 3; i++) {
        uint64_t number = take_leb(c, false);
        *folder = i == 0 ? number : *folder;
    }
    return name;
}

/* The folder of that number, from 1; "": where the compiler ran. */
static const char *find_folder(const header *h, uint64_t number) {
    cursor c = h->folders;
    const char *name = "";
    for (uint64_t i = 0; i < number && (i == 0 || *name); i++)
        name = take_string(&c);
    return name;
}

/* The file of that number, from 1, without its folders. */
static void name_file(const header *h, uint64_t number, char *out, size_t size) {
    cursor c = h->files;
    const char *name = "";
    uint64_t folder = 0;
    for (uint64_t i = 0; i < number && (i == 0 || *name); i++)
        name = take_file(&c, &folder);
    const char *slash = strrchr(name, '/');
    const bool is_shim = *name && (strstr(find_folder(h, folder), SHIM) || strstr(name, SHIM));
    snprintf(out, size, "%s%s", is_shim ? DWARF_SHIM : "", slash ? slash + 1 : *name ? name : "?");
}

/* The header of one unit's program; afterwards c stands at its first instruction. */
static bool read_header(cursor *c, header *h) {
    if (cursor_take(c, 2) != 4)
        return false;
    uint64_t length = cursor_take(c, 4);
    if ((uint64_t)(c->end - c->at) < length)
        return false;
    const uint8_t *program = c->at + length;
    h->minimum = (uint8_t)cursor_take(c, 1);
    cursor_take(c, 1); /* operations per instruction: 1 */
    cursor_take(c, 1); /* statements by default */
    h->line_base = (int8_t)cursor_take(c, 1);
    h->line_range = (uint8_t)cursor_take(c, 1);
    h->opcode_base = (uint8_t)cursor_take(c, 1);
    for (int i = 1; i < h->opcode_base; i++)
        h->lengths[i] = (uint8_t)cursor_take(c, 1);
    h->folders = *c;
    while (*take_string(c))
        continue;
    h->files = *c;
    c->at = program;
    return h->line_range > 0 && h->opcode_base > 0;
}

typedef struct {
    uint64_t address, file;
    int64_t line;
} row;

/* Keeps the row in `best` if the address lies between the last row and this one. */
static void pass_row(const row *last, const row *now, bool in_sequence, uint64_t offset, row *best,
                     bool *found) {
    if (in_sequence && last->address <= offset && offset < now->address) {
        *best = *last;
        *found = true;
    }
}

/* Instructions; the last two are extended ones. */
enum { COPY = 1, ADVANCE_ADDRESS, ADVANCE_LINE, SET_FILE, ADD_CONSTANT = 8, ADD_FIXED };
enum { END_SEQUENCE = 1, SET_ADDRESS };

static bool run_program(cursor *c, const header *h, uint64_t offset, row *best) {
    row now = {0, 1, 1}, last = now;
    bool found = false, in_sequence = false;
    while (c->at < c->end && !found) {
        uint8_t op = (uint8_t)cursor_take(c, 1);
        bool emit = false, ends = false;
        if (op >= h->opcode_base) {
            uint8_t special = (uint8_t)(op - h->opcode_base);
            now.address += (uint64_t)(special / h->line_range) * h->minimum;
            now.line += h->line_base + special % h->line_range;
            emit = true;
        } else if (op == 0) {
            uint64_t length = take_leb(c, false);
            if (length == 0 || length > (uint64_t)(c->end - c->at))
                return false;
            cursor inside = {c->at, c->at + length};
            c->at += length;
            uint8_t extended = (uint8_t)cursor_take(&inside, 1);
            if (extended == END_SEQUENCE)
                emit = ends = true;
            else if (extended == SET_ADDRESS)
                now.address = cursor_take(&inside, 8);
        } else if (op == COPY) {
            emit = true;
        } else if (op == ADVANCE_ADDRESS) {
            now.address += take_leb(c, false) * h->minimum;
        } else if (op == ADVANCE_LINE) {
            now.line += (int64_t)take_leb(c, true);
        } else if (op == SET_FILE) {
            now.file = take_leb(c, false);
        } else if (op == ADD_CONSTANT) {
            now.address += (uint64_t)((255 - h->opcode_base) / h->line_range) * h->minimum;
        } else if (op == ADD_FIXED) {
            now.address += cursor_take(c, 2);
        } else {
            for (int i = 0; i < h->lengths[op]; i++)
                take_leb(c, false);
        }
        if (!emit)
            continue;
        pass_row(&last, &now, in_sequence, offset, best, &found);
        last = now;
        in_sequence = !ends;
        if (ends)
            now = (row){0, 1, 1};
    }
    return found;
}

bool dwarf_find_line(cursor table, uint64_t address, char *file, size_t size, int *line) {
    while (table.end - table.at > 4) {
        uint64_t length = cursor_take(&table, 4);
        if (length > (uint64_t)(table.end - table.at))
            break;
        cursor unit = {table.at, table.at + length};
        table.at += length;
        header h;
        row best;
        if (!read_header(&unit, &h) || !run_program(&unit, &h, address, &best))
            continue;
        *line = (int)best.line;
        name_file(&h, best.file, file, size);
        return true;
    }
    return false;
}

/* Mach-O --------------------------------------------------------------------------------------- */

static const uint32_t magic = 0xFEEDFACF; /* 64 bits, little-endian */

enum { TYPE_OBJECT = 1, COMMAND_SYMTAB = 2, COMMAND_SEGMENT = 0x19, COMMAND_LINKER_OPTION = 0x2D };
enum { HEADER_BYTES = 32, SEGMENT_BYTES = 72, SECTION_BYTES = 80, SYMBOL_BYTES = 16 };
enum { RELOCATION_BYTES = 8, RELOCATION_EXTERN = 1u << 27 };
/* Kinds of sections: pointers to functions that are called at loading, or at the end. */
enum { SECTION_KIND = 0xFF, SECTION_STARTS = 0x9, SECTION_ENDS = 0xA };
enum { SECTION_STARTS_THREAD = 0x15, SECTION_STARTS_OFFSETS = 0x16 };
/* Types of symbols. Any bit of the first: an entry for debuggers; the last is of the description. */
enum { SYMBOL_DEBUG = 0xE0, SYMBOL_KIND = 0x0E, SYMBOL_IN_SECTION = 0x0E, SYMBOL_UNDEFINED = 0 };
enum { SYMBOL_OF_OTHERS = 0x01, SYMBOL_INDIRECT = 0x0A, SYMBOL_CHOSEN = 0x0100 };

/* Names are 16 bytes, with zeros after a shorter one. */
static bool has_name(const macho_file *f, uint64_t at, const char *name) {
    return has_range(f->all, at, 16) && strncmp((const char *)f->all.at + at, name, 16) == 0;
}

static void read_starter(macho_file *f, uint64_t section) {
    uint64_t kind = read_number(f->all, section + 64, 4) & SECTION_KIND;
    bool has_offsets = kind == SECTION_STARTS_OFFSETS;
    if ((kind != SECTION_STARTS && kind != SECTION_ENDS && kind != SECTION_STARTS_THREAD &&
         !has_offsets) ||
        f->starter_count == MACHO_STARTERS)
        return;
    f->starters[f->starter_count++] =
        (macho_starter){.bytes = read_number(f->all, section + 40, 8),
                        .relocations = read_number(f->all, section + 56, 4),
                        .relocation_count = read_number(f->all, section + 60, 4),
                        .width = has_offsets ? 4 : 8};
}

/* Sections are numbered through all segments. */
static void read_segment(macho_file *f, uint64_t at, uint64_t bytes, unsigned *sections) {
    if (has_name(f, at + 8, "__TEXT"))
        f->base = read_number(f->all, at + 24, 8);
    uint64_t count = read_number(f->all, at + 64, 4);
    for (uint64_t i = 0; i < count && SEGMENT_BYTES + (i + 1) * SECTION_BYTES <= bytes; i++) {
        uint64_t section = at + SEGMENT_BYTES + i * SECTION_BYTES;
        ++*sections;
        read_starter(f, section);
        if (has_name(f, section, "__text") && has_name(f, section + 16, "__TEXT"))
            f->code = *sections;
        if (has_name(f, section, "__debug_line") && has_name(f, section + 16, "__DWARF"))
            f->lines = get_range(f->all, read_number(f->all, section + 48, 4),
                                 read_number(f->all, section + 40, 8));
    }
}

static bool read_symbols(macho_file *f, uint64_t at) {
    f->symbols = read_number(f->all, at + 8, 4);
    f->symbol_count = read_number(f->all, at + 12, 4);
    f->names = read_number(f->all, at + 16, 4);
    f->names_bytes = read_number(f->all, at + 20, 4);
    return has_range(f->all, f->symbols, (uint64_t)f->symbol_count * SYMBOL_BYTES) &&
           has_range(f->all, f->names, f->names_bytes);
}

bool macho_read(const uint8_t *data, size_t bytes, macho_file *out) {
    *out = (macho_file){.all = {data, data + bytes}, .lines = {data, data}};
    if (bytes < HEADER_BYTES || read_number(out->all, 0, 4) != magic)
        return false;
    out->is_object = read_number(out->all, 12, 4) == TYPE_OBJECT;
    uint64_t at = HEADER_BYTES, end = at + read_number(out->all, 20, 4);
    if (end > bytes)
        return false;
    unsigned sections = 0;
    while (end - at >= 8) {
        uint64_t command = read_number(out->all, at, 4), length = read_number(out->all, at + 4, 4);
        if (length < 8 || length > end - at)
            return false;
        if (command == COMMAND_SEGMENT && length >= SEGMENT_BYTES)
            read_segment(out, at, length, &sections);
        out->has_options = out->has_options || command == COMMAND_LINKER_OPTION;
        if (command == COMMAND_SYMTAB && (length < 24 || !read_symbols(out, at)))
            return false;
        at += length;
    }
    return true;
}

typedef struct {
    const char *name; /* "?": it does not end inside the file */
    unsigned type, section, description;
    uint64_t address;
} macho_symbol;

static macho_symbol get_symbol(const macho_file *f, size_t i) {
    const uint64_t at = f->symbols + (uint64_t)i * SYMBOL_BYTES, name = read_number(f->all, at, 4);
    const char *text = (const char *)f->all.at + f->names + name;
    const bool is_whole = name < f->names_bytes && memchr(text, 0, f->names_bytes - name);
    return (macho_symbol){is_whole ? text : "?", (unsigned)read_number(f->all, at + 4, 1),
                          (unsigned)read_number(f->all, at + 5, 1),
                          (unsigned)read_number(f->all, at + 6, 2), read_number(f->all, at + 8, 8)};
}

/* Not an entry for debuggers. */
static bool is_kind(const macho_symbol *s, unsigned kind) {
    return !(s->type & SYMBOL_DEBUG) && (s->type & SYMBOL_KIND) == kind;
}

/* Names of functions begin with an underscore, unlike the marks that assemblers leave in objects. */
static bool get_function(const macho_file *f, size_t i, macho_symbol *out) {
    *out = get_symbol(f, i);
    return is_kind(out, SYMBOL_IN_SECTION) && out->section == f->code && out->name[0] == '_';
}

bool macho_translate(const macho_file *image, const macho_file *object, uint64_t address,
                     uint64_t *out) {
    macho_symbol before = {0}, s;
    for (size_t i = 0; i < image->symbol_count; i++)
        if (get_function(image, i, &s) && s.address <= address &&
            (!before.name || s.address > before.address))
            before = s;
    for (size_t i = 0; before.name && i < object->symbol_count; i++)
        if (get_function(object, i, &s) && strcmp(s.name, before.name) == 0) {
            *out = s.address + (address - before.address);
            return true;
        }
    return false;
}

/* Is the function of this name the only one that the loader calls? */
static bool starts_only(const macho_file *f, const macho_starter *s, const char *name) {
    uint64_t word = read_number(f->all, s->relocations + 4, 4);
    return s->bytes == s->width && s->relocation_count == 1 &&
           has_range(f->all, s->relocations, RELOCATION_BYTES) && word & RELOCATION_EXTERN &&
           (word & 0xFFFFFF) < f->symbol_count &&
           strcmp(get_symbol(f, (size_t)(word & 0xFFFFFF)).name, name) == 0;
}

/* What a kernel may be ------------------------------------------------------------------------- */

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
        const macho_symbol s = get_symbol(f, i);
        const bool is_undefined = is_kind(&s, SYMBOL_INDIRECT) ||
                                  (is_kind(&s, SYMBOL_UNDEFINED) && s.type & SYMBOL_OF_OTHERS);
        if (is_undefined && !is_allowed_on_macos(s.name)) /* C has no underscore in front */
            return refuse(kernel, REFUSED_CALLS, s.name + (s.name[0] == '_'), e);
        if (is_kind(&s, SYMBOL_IN_SECTION) && s.description & SYMBOL_CHOSEN)
            return refuse(kernel, REFUSED_CHOSEN, "", e);
    }
    for (size_t i = 0; i < f->starter_count; i++)
        if (i > 0 || !starts_only(f, &f->starters[i], "_tsan.module_ctor"))
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
    cursor all;
    Elf64_Ehdr head;
} elf_file;

static bool open_elf(const uint8_t *data, size_t bytes, elf_file *o) {
    o->all = (cursor){data, data + bytes};
    if (!data || bytes < sizeof o->head)
        return false;
    memcpy(&o->head, data, sizeof o->head);
    return memcmp(o->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           o->head.e_ident[EI_CLASS] == ELFCLASS64 && o->head.e_shentsize == sizeof(Elf64_Shdr) &&
           has_range(o->all, o->head.e_shoff, (uint64_t)o->head.e_shnum * sizeof(Elf64_Shdr));
}

static bool get_section(const elf_file *o, size_t i, Elf64_Shdr *out) {
    memcpy(out, o->all.at + o->head.e_shoff + i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || has_range(o->all, out->sh_offset, out->sh_size);
}

/* Entry i of a section that is a table; false after the last. */
static bool get_entry(const elf_file *o, const Elf64_Shdr *s, uint64_t i, void *out, size_t bytes) {
    if (i >= s->sh_size / bytes)
        return false;
    memcpy(out, o->all.at + s->sh_offset + i * bytes, bytes);
    return true;
}

/* A name of a symbol table: its strings end where their section does. */
static const char *get_name(const elf_file *o, const Elf64_Shdr *symbols, uint32_t at) {
    Elf64_Shdr names;
    if (symbols->sh_link >= o->head.e_shnum || !get_section(o, symbols->sh_link, &names) ||
        at >= names.sh_size || !memchr(o->all.at + names.sh_offset + at, 0, names.sh_size - at))
        return "?";
    return (const char *)o->all.at + names.sh_offset + at;
}

/* Symbols that others would have to provide, and those whose value is the result of a call. */
static bool check_symbols(const elf_file *o, const Elf64_Shdr *s, err *e) {
    Elf64_Sym symbol;
    for (uint64_t i = 1; get_entry(o, s, i, &symbol, sizeof symbol); i++) {
        const char *name = get_name(o, s, symbol.st_name);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
            return refuse(o->kernel, REFUSED_CHOSEN, "", e);
        if (symbol.st_shndx == SHN_UNDEF && *name && !is_allowed(name))
            return refuse(o->kernel, REFUSED_CALLS, name, e);
    }
    return true;
}

static bool check_relocations(const elf_file *o, const Elf64_Shdr *s, err *e) {
    Elf64_Rela r;
    for (uint64_t i = 0; get_entry(o, s, i, &r, sizeof r); i++)
        if (ELF64_R_TYPE(r.r_info) == R_X86_64_IRELATIVE ||
            ELF64_R_TYPE(r.r_info) == R_AARCH64_IRELATIVE)
            return refuse(o->kernel, REFUSED_CHOSEN, "", e);
    return true;
}

/* The address that the loader writes at `at`. */
static bool find_target(const elf_file *o, uint64_t at, uint64_t *target) {
    for (size_t i = 0; i < o->head.e_shnum; i++) {
        Elf64_Shdr s;
        Elf64_Rela r;
        if (!get_section(o, i, &s) || s.sh_type != SHT_RELA)
            continue;
        for (uint64_t k = 0; get_entry(o, &s, k, &r, sizeof r); k++)
            if (r.r_offset == at) {
                *target = (uint64_t)r.r_addend;
                return ELF64_R_SYM(r.r_info) == 0;
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
        Elf64_Sym symbol;
        if (!get_section(o, i, &table) || table.sh_type != SHT_SYMTAB)
            continue;
        for (uint64_t k = 1; get_entry(o, &table, k, &symbol, sizeof symbol); k++)
            if (symbol.st_value == target && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                strcmp(get_name(o, &table, symbol.st_name), "tsan.module_ctor") == 0)
                return true;
    }
    return false;
}

/* Libraries that would be loaded with it, and functions that the loader calls. */
static bool check_dynamic(const elf_file *o, const Elf64_Shdr *s, err *e) {
    Elf64_Dyn d;
    for (uint64_t i = 0; get_entry(o, s, i, &d, sizeof d); i++) {
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
        memcpy(&word, o->all.at + s->sh_offset + i, sizeof word);
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
        !has_range(o->all, o->head.e_phoff, (uint64_t)o->head.e_phnum * sizeof(Elf64_Phdr)))
        return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is damaged", o->kernel);
    for (size_t i = 0; i < o->head.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, o->all.at + o->head.e_phoff + i * sizeof p, sizeof p);
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

static bool check_elf(const uint8_t *data, size_t bytes, const char *kernel, err *e) {
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

/* The next section that is loaded; notes only name the build. */
static bool next_section(const elf_file *o, size_t *i, Elf64_Shdr *out) {
    for (; *i < o->head.e_shnum; (*i)++) {
        memcpy(out, o->all.at + o->head.e_shoff + *i * sizeof *out, sizeof *out);
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
           (has_range(a->all, x->sh_offset, x->sh_size) &&
            has_range(b->all, y->sh_offset, y->sh_size) &&
            memcmp(a->all.at + x->sh_offset, b->all.at + y->sh_offset, x->sh_size) == 0);
}

static bool is_same_elf(const uint8_t *one, size_t one_bytes, const uint8_t *two,
                        size_t two_bytes) {
    elf_file x_file = {0}, y_file = {0}, *a = &x_file, *b = &y_file;
    if (!open_elf(one, one_bytes, a) || !open_elf(two, two_bytes, b))
        return false;
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

static cursor find_elf_section(const uint8_t *data, size_t bytes, const char *name) {
    elf_file o = {0};
    Elf64_Shdr s;
    for (size_t i = 0; open_elf(data, bytes, &o) && i < o.head.e_shnum; i++) {
        const Elf64_Shdr names = {.sh_link = o.head.e_shstrndx};
        if (get_section(&o, i, &s) && strcmp(get_name(&o, &names, s.sh_name), name) == 0)
            return get_range(o.all, s.sh_offset, s.sh_size);
    }
    return (cursor){data, data};
}
#else
static bool check_elf(const uint8_t *data, size_t bytes, const char *kernel, err *e) {
    (void)data, (void)bytes;
    return err_set(e, EXIT_CANNOT, "the compiled kernel '%.80s' is no Mach-O object", kernel);
}

static bool is_same_elf(const uint8_t *one, size_t one_bytes, const uint8_t *two,
                        size_t two_bytes) {
    (void)one, (void)one_bytes, (void)two, (void)two_bytes;
    return false;
}

static cursor find_elf_section(const uint8_t *data, size_t bytes, const char *name) {
    (void)bytes, (void)name;
    return (cursor){data, data};
}
#endif

bool soft_is_same_code(const pipeline *a, const pipeline *b) {
    const soft_loaded *p = a->impl, *q = b->impl;
    size_t one_bytes = 0, two_bytes = 0;
    char *one = os_read_file(p->object, &one_bytes, NULL);
    char *two = os_read_file(q->object, &two_bytes, NULL);
    bool is_same = is_same_elf((const uint8_t *)one, one_bytes, (const uint8_t *)two, two_bytes);
    free(one);
    free(two);
    return is_same;
}

bool soft_inspect(const char *path, const char *kernel, err *e) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, e);
    const uint8_t *data = (const uint8_t *)text;
    macho_file f;
    bool ok = data && (macho_read(data, bytes, &f) ? check_macho(&f, kernel, e)
                                                   : check_elf(data, bytes, kernel, e));
    free(text);
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

/* Lines of files ------------------------------------------------------------------------------- */

/* The object of an image of macOS has its name, with another ending. */
static bool find_in_object(const char *path, const macho_file *image, uint64_t offset, char *file,
                           size_t size, int *line) {
    char beside[PATH_MAX];
    const char *dot = strrchr(path, '.');
    if (!dot ||
        snprintf(beside, sizeof beside, "%.*s.o", (int)(dot - path), path) >= (int)sizeof beside)
        return false;
    size_t bytes;
    char *data = os_read_file(beside, &bytes, NULL);
    macho_file object;
    uint64_t address;
    bool found = data && macho_read((const uint8_t *)data, bytes, &object) &&
                 macho_translate(image, &object, image->base + offset, &address) &&
                 dwarf_find_line(object.lines, address, file, size, line);
    free(data);
    return found;
}

bool soft_find_line(const char *path, uint64_t offset, char *file, size_t size, int *line) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, NULL);
    if (!text)
        return false;
    const uint8_t *data = (const uint8_t *)text;
    macho_file image;
    bool found;
    if (!macho_read(data, bytes, &image))
        found =
            dwarf_find_line(find_elf_section(data, bytes, ".debug_line"), offset, file, size, line);
    else if (image.is_object)
        found = dwarf_find_line(image.lines, offset, file, size, line);
    else
        found = find_in_object(path, &image, offset, file, size, line);
    free(text);
    return found;
}
