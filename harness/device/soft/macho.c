/* macho: see macho.h. The numbers are those of <mach-o/loader.h> and <mach-o/nlist.h>, which only
 * macOS has; the reader works everywhere, so that it can be tested everywhere. */
#include "macho.h"

#include <string.h>

static const uint32_t magic = 0xFEEDFACF; /* 64 bits, little-endian */

enum {
    TYPE_OBJECT = 1,
    COMMAND_SYMTAB = 2,
    COMMAND_SEGMENT = 0x19,
    COMMAND_LINKER_OPTION = 0x2D,
    SECTION_KIND = 0xFF,
    SECTION_STARTS = 0x9, /* pointers to functions that are called at loading */
    SECTION_ENDS = 0xA,
    SECTION_STARTS_THREAD = 0x15,
    SECTION_STARTS_OFFSETS = 0x16,
    RELOCATION_BYTES = 8,
    RELOCATION_EXTERN = 1u << 27,
    HEADER_BYTES = 32,
    SEGMENT_BYTES = 72,
    SECTION_BYTES = 80,
    SYMBOL_BYTES = 16,
    SYMBOL_DEBUG = 0xE0, /* any of these bits: an entry for debuggers */
    SYMBOL_KIND = 0x0E,
    SYMBOL_IN_SECTION = 0x0E,
    SYMBOL_UNDEFINED = 0,
    SYMBOL_OF_OTHERS = 0x01,
    SYMBOL_INDIRECT = 0x0A,
    SYMBOL_CHOSEN = 0x0100, /* of its description */
};

static bool has_range(const macho_file *f, uint64_t begin, uint64_t bytes) {
    return begin <= f->bytes && bytes <= f->bytes - begin;
}

static cursor get_range(const macho_file *f, uint64_t begin, uint64_t bytes) {
    if (!has_range(f, begin, bytes))
        return (cursor){f->data, f->data};
    return (cursor){f->data + begin, f->data + begin + bytes};
}

static uint64_t read_number(const macho_file *f, uint64_t at, size_t bytes) {
    cursor c = get_range(f, at, bytes);
    return cursor_take(&c, bytes);
}

/* Names are 16 bytes, with zeros after a shorter one. */
static bool has_name(const macho_file *f, uint64_t at, const char *name) {
    return has_range(f, at, 16) && strncmp((const char *)f->data + at, name, 16) == 0;
}

static void read_starter(macho_file *f, uint64_t section) {
    uint64_t kind = read_number(f, section + 64, 4) & SECTION_KIND;
    bool has_offsets = kind == SECTION_STARTS_OFFSETS;
    if ((kind != SECTION_STARTS && kind != SECTION_ENDS && kind != SECTION_STARTS_THREAD &&
         !has_offsets) ||
        f->starter_count == MACHO_STARTERS)
        return;
    f->starters[f->starter_count++] =
        (macho_starter){.bytes = read_number(f, section + 40, 8),
                        .relocations = read_number(f, section + 56, 4),
                        .relocation_count = read_number(f, section + 60, 4),
                        .width = has_offsets ? 4 : 8};
}

/* Sections are numbered through all segments. */
static void read_segment(macho_file *f, uint64_t at, uint64_t bytes, unsigned *sections) {
    if (has_name(f, at + 8, "__TEXT"))
        f->base = read_number(f, at + 24, 8);
    uint64_t count = read_number(f, at + 64, 4);
    for (uint64_t i = 0; i < count && SEGMENT_BYTES + (i + 1) * SECTION_BYTES <= bytes; i++) {
        uint64_t section = at + SEGMENT_BYTES + i * SECTION_BYTES;
        ++*sections;
        read_starter(f, section);
        if (has_name(f, section, "__text") && has_name(f, section + 16, "__TEXT"))
            f->code = *sections;
        if (has_name(f, section, "__debug_line") && has_name(f, section + 16, "__DWARF"))
            f->lines =
                get_range(f, read_number(f, section + 48, 4), read_number(f, section + 40, 8));
    }
}

static bool read_symbols(macho_file *f, uint64_t at) {
    f->symbols = read_number(f, at + 8, 4);
    f->symbol_count = read_number(f, at + 12, 4);
    f->names = read_number(f, at + 16, 4);
    f->names_bytes = read_number(f, at + 20, 4);
    return has_range(f, f->symbols, (uint64_t)f->symbol_count * SYMBOL_BYTES) &&
           has_range(f, f->names, f->names_bytes);
}

bool macho_read(const uint8_t *data, size_t bytes, macho_file *out) {
    *out = (macho_file){.data = data, .bytes = bytes, .lines = {data, data}};
    if (bytes < HEADER_BYTES || read_number(out, 0, 4) != magic)
        return false;
    out->is_object = read_number(out, 12, 4) == TYPE_OBJECT;
    uint64_t at = HEADER_BYTES, end = at + read_number(out, 20, 4);
    if (end > bytes)
        return false;
    unsigned sections = 0;
    while (end - at >= 8) {
        uint64_t command = read_number(out, at, 4), length = read_number(out, at + 4, 4);
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
    const char *name; /* ends inside the file */
    uint64_t address;
} symbol;

/* False for what is not the name of a function: those begin with an underscore, unlike the marks that
 * assemblers leave in objects. */
static bool get_symbol(const macho_file *f, size_t i, symbol *out) {
    uint64_t at = f->symbols + (uint64_t)i * SYMBOL_BYTES, name = read_number(f, at, 4);
    unsigned type = (unsigned)read_number(f, at + 4, 1);
    if (type & SYMBOL_DEBUG || (type & SYMBOL_KIND) != SYMBOL_IN_SECTION ||
        read_number(f, at + 5, 1) != f->code || name >= f->names_bytes)
        return false;
    out->name = (const char *)f->data + f->names + name;
    out->address = read_number(f, at + 8, 8);
    return out->name[0] == '_' && memchr(out->name, 0, f->names_bytes - name) != NULL;
}

bool macho_translate(const macho_file *image, const macho_file *object, uint64_t address,
                     uint64_t *out) {
    symbol before = {0}, s;
    for (size_t i = 0; i < image->symbol_count; i++)
        if (get_symbol(image, i, &s) && s.address <= address &&
            (!before.name || s.address > before.address))
            before = s;
    for (size_t i = 0; before.name && i < object->symbol_count; i++)
        if (get_symbol(object, i, &s) && strcmp(s.name, before.name) == 0) {
            *out = s.address + (address - before.address);
            return true;
        }
    return false;
}

static const char *get_name(const macho_file *f, size_t i) {
    uint64_t name = read_number(f, f->symbols + (uint64_t)i * SYMBOL_BYTES, 4);
    const char *text = (const char *)f->data + f->names + name;
    return name < f->names_bytes && memchr(text, 0, f->names_bytes - name) ? text : "?";
}

const char *macho_get_undefined(const macho_file *f, size_t i) {
    unsigned type = (unsigned)read_number(f, f->symbols + (uint64_t)i * SYMBOL_BYTES + 4, 1);
    if (type & SYMBOL_DEBUG)
        return NULL;
    bool is_other = (type & SYMBOL_KIND) == SYMBOL_UNDEFINED && type & SYMBOL_OF_OTHERS;
    return is_other || (type & SYMBOL_KIND) == SYMBOL_INDIRECT ? get_name(f, i) : NULL;
}

bool macho_is_chosen(const macho_file *f, size_t i) {
    uint64_t at = f->symbols + (uint64_t)i * SYMBOL_BYTES;
    unsigned type = (unsigned)read_number(f, at + 4, 1);
    return !(type & SYMBOL_DEBUG) && (type & SYMBOL_KIND) == SYMBOL_IN_SECTION &&
           read_number(f, at + 6, 2) & SYMBOL_CHOSEN;
}

bool macho_starts_only(const macho_file *f, const macho_starter *s, const char *name) {
    uint64_t word = read_number(f, s->relocations + 4, 4);
    return s->bytes == s->width && s->relocation_count == 1 &&
           has_range(f, s->relocations, RELOCATION_BYTES) && word & RELOCATION_EXTERN &&
           (word & 0xFFFFFF) < f->symbol_count &&
           strcmp(get_name(f, (size_t)(word & 0xFFFFFF)), name) == 0;
}
