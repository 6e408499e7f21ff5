/* lines: see lines.h. ELF images carry their line table. Images of macOS do not: theirs is in the
 * object file that compile.c keeps beside them. */
#include "lines.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf.h"
#include "harness/base/os.h"
#include "macho.h"

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
