/* lines: see lines.h. Runs the line program and keeps the last row at or below the address. Every
 * length is checked against the section: the object is ours, but a reader that trusts its input is
 * a crash. ELF images carry their line table. Images of macOS do not: theirs is in the object file that
 * compile.c keeps beside them. */
#include "lines.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "macho.h"

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
            if (extended == 1)
                emit = ends = true;
            else if (extended == 2)
                now.address = cursor_take(&inside, 8);
        } else {
            switch (op) {
            case 1:
                emit = true;
                break;
            case 2:
                now.address += take_leb(c, false) * h->minimum;
                break;
            case 3:
                now.line += (int64_t)take_leb(c, true);
                break;
            case 4:
                now.file = take_leb(c, false);
                break;
            case 8:
                now.address += (uint64_t)((255 - h->opcode_base) / h->line_range) * h->minimum;
                break;
            case 9:
                now.address += cursor_take(c, 2);
                break;
            default:
                for (int i = 0; i < h->lengths[op]; i++)
                    take_leb(c, false);
            }
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

/* Files ---------------------------------------------------------------------------------------- */

/* Of an Elf64_Ehdr and an Elf64_Shdr, whose header only Linux has. */
enum { ELF_HEADER_BYTES = 64, ELF_SECTION_BYTES = 64 };

static uint64_t read_number(const uint8_t *data, size_t bytes, uint64_t at, size_t width) {
    cursor c = {data + (at < bytes ? at : bytes), data + bytes};
    return cursor_take(&c, width);
}

static cursor find_elf_section(const uint8_t *data, size_t bytes, const char *name) {
    uint64_t table = read_number(data, bytes, 40, 8), count = read_number(data, bytes, 60, 2);
    uint64_t names_at = table + read_number(data, bytes, 62, 2) * ELF_SECTION_BYTES;
    uint64_t names = read_number(data, bytes, names_at + 24, 8);
    if (bytes < ELF_HEADER_BYTES || table > bytes || count > (bytes - table) / ELF_SECTION_BYTES)
        return (cursor){data, data};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = table + i * ELF_SECTION_BYTES, label = read_number(data, bytes, at, 4);
        uint64_t offset = read_number(data, bytes, at + 24, 8);
        uint64_t length = read_number(data, bytes, at + 32, 8);
        if (names >= bytes || label >= bytes - names || offset > bytes || length > bytes - offset)
            continue;
        /* The file is read with a zero after its last byte. */
        if (strcmp((const char *)data + names + label, name) == 0)
            return (cursor){data + offset, data + offset + length};
    }
    return (cursor){data, data};
}

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
            bytes > 4 && memcmp(data, "\177ELF", 4) == 0 &&
            dwarf_find_line(find_elf_section(data, bytes, ".debug_line"), offset, file, size, line);
    else if (image.is_object)
        found = dwarf_find_line(image.lines, offset, file, size, line);
    else
        found = find_in_object(path, &image, offset, file, size, line);
    free(text);
    return found;
}
