/* lines: reads the DWARF 4 line table of an ELF object (compile.c asks clang for that version).
 *
 * Runs the line program and keeps the last row at or below the address. Every length is checked
 * against the section: the object is ours, but a reader that trusts its input is a crash. On macOS
 * objects are Mach-O and nothing is found: findings then have no line. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

#if defined(__linux__)
#include <elf.h>

typedef struct {
    const uint8_t *at, *end;
} cursor;

static uint64_t take(cursor *c, size_t bytes) {
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

enum { MAX_FILES = 64 };

typedef struct {
    uint8_t minimum, opcode_base, line_range;
    int8_t line_base;
    uint8_t lengths[256];
    const char *files[MAX_FILES]; /* 1-based */
    size_t file_count;
} header;

/* The header of one unit's program; afterwards c stands at its first instruction. */
static bool read_header(cursor *c, header *h) {
    if (take(c, 2) != 4)
        return false;
    uint64_t length = take(c, 4);
    if ((uint64_t)(c->end - c->at) < length)
        return false;
    const uint8_t *program = c->at + length;
    h->minimum = (uint8_t)take(c, 1);
    take(c, 1); /* operations an instruction: 1 */
    take(c, 1); /* statements by default */
    h->line_base = (int8_t)take(c, 1);
    h->line_range = (uint8_t)take(c, 1);
    h->opcode_base = (uint8_t)take(c, 1);
    for (int i = 1; i < h->opcode_base; i++)
        h->lengths[i] = (uint8_t)take(c, 1);
    while (*take_string(c))
        continue;
    h->file_count = 0;
    for (const char *name; *(name = take_string(c));) {
        for (int i = 0; i < 3; i++)
            take_leb(c, false);
        if (h->file_count + 1 < MAX_FILES)
            h->files[++h->file_count] = name;
    }
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
        uint8_t op = (uint8_t)take(c, 1);
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
            uint8_t extended = (uint8_t)take(&inside, 1);
            if (extended == 1)
                emit = ends = true;
            else if (extended == 2)
                now.address = take(&inside, 8);
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
                now.address += take(c, 2);
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

static cursor find_section(const uint8_t *data, size_t bytes, const char *name) {
    cursor none = {data, data};
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)(const void *)data;
    if (bytes < sizeof *elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_shoff > bytes ||
        elf->e_shnum > (bytes - elf->e_shoff) / sizeof(Elf64_Shdr) ||
        elf->e_shstrndx >= elf->e_shnum)
        return none;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(data + elf->e_shoff);
    const Elf64_Shdr *names = &sections[elf->e_shstrndx];
    for (int i = 0; i < elf->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        if (names->sh_offset > bytes || s->sh_name >= bytes - names->sh_offset ||
            s->sh_offset > bytes || s->sh_size > bytes - s->sh_offset)
            continue;
        if (strncmp((const char *)data + names->sh_offset + s->sh_name, name, 32) == 0)
            return (cursor){data + s->sh_offset, data + s->sh_offset + s->sh_size};
    }
    return none;
}

bool soft_find_line(const char *object, uint64_t offset, char *file, size_t size, int *line) {
    size_t bytes;
    char *data = os_read_file(object, &bytes, NULL);
    if (!data)
        return false;
    cursor c = find_section((const uint8_t *)data, bytes, ".debug_line");
    bool found = false;
    while (c.end - c.at > 4 && !found) {
        uint64_t length = take(&c, 4);
        if (length > (uint64_t)(c.end - c.at))
            break;
        cursor unit = {c.at, c.at + length};
        c.at += length;
        header h;
        row best;
        if (!read_header(&unit, &h) || !run_program(&unit, &h, offset, &best))
            continue;
        found = true;
        *line = (int)best.line;
        const char *name = best.file >= 1 && best.file <= h.file_count ? h.files[best.file] : "?";
        const char *slash = strrchr(name, '/');
        snprintf(file, size, "%s", slash ? slash + 1 : name);
    }
    free(data);
    return found;
}
#else
bool soft_find_line(const char *object, uint64_t offset, char *file, size_t size, int *line) {
    (void)object, (void)offset, (void)file, (void)size, (void)line;
    return false;
}
#endif
