/* ptx_names: registers, symbols and variables of a module. */
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_parse.h"

void *ptx_grow(void *array, size_t count, size_t size) {
    if (count & (count - 1) && count)
        return array;
    array = realloc(array, (count ? 2 * count : 1) * size);
    assert(array);
    return array;
}

void ptx_fail(parser *p, const char *format, ...) {
    if (p->has_failed)
        return;
    p->has_failed = true;
    int used = snprintf(p->log, p->log_size, "line %u: ", p->line);
    va_list args;
    va_start(args, format);
    vsnprintf(p->log + used, p->log_size - (size_t)used, format, args);
    va_end(args);
}

/* Names ----------------------------------------------------------------------------------------- */

uint32_t ptx_find_register(parser *p, const char *name) {
    for (size_t i = p->register_count; i-- > 0;)
        if (strcmp(p->registers[i].name, name) == 0)
            return p->registers[i].index;
    p->registers = ptx_grow(p->registers, p->register_count, sizeof *p->registers);
    label *l = &p->registers[p->register_count];
    snprintf(l->name, sizeof l->name, "%.47s", name);
    l->index = (uint32_t)p->register_count++;
    return l->index;
}

bool ptx_is_declared(const parser *p, const char *name) {
    for (size_t i = 0; i < p->register_count; i++)
        if (strcmp(p->registers[i].name, name) == 0)
            return true;
    return false;
}

/* ".reg .b16 tmp;" names one; those of ".reg .b32 %r<9>;" are known by their percent sign. */
void ptx_declare_registers(parser *p, char *text) {
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t\n,", &rest); word; word = strtok_r(NULL, " \t\n,", &rest))
        if (word[0] != '.' && word[0] != '%')
            ptx_find_register(p, word);
}

int ptx_find_symbol(const parser *p, const char *name) {
    for (size_t i = 0; i < p->program->symbol_count; i++)
        if (strcmp(p->program->symbols[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void add_symbol(parser *p, const char *name, ptx_space space, size_t at) {
    ptx_program *g = p->program;
    g->symbols = ptx_grow(g->symbols, g->symbol_count, sizeof *g->symbols);
    ptx_symbol *s = &g->symbols[g->symbol_count++];
    snprintf(s->name, sizeof s->name, "%.159s", name);
    s->space = space;
    s->at = at;
}

/* Variables ------------------------------------------------------------------------------------- */

static size_t take_room(size_t *used, size_t align, size_t bytes) {
    size_t at = (*used + align - 1) / align * align;
    *used = at + bytes;
    return at;
}

static void read_values(parser *p, const char *list, size_t at, size_t step, size_t room) {
    for (size_t i = 0; list && *list && *list != '}' && (i + 1) * step <= room; i++) {
        list += strspn(list, "{, \t\n");
        if (*list == '}')
            break;
        uint64_t value = strtoull(list, NULL, 0);
        if (list[0] == '0' && (list[1] == 'f' || list[1] == 'd'))
            value = strtoull(list + 2, NULL, 16);
        else if (!isdigit((unsigned char)*list) && *list != '-')
            ptx_fail(p, "an initial value that is not a number");
        memcpy(p->program->data + at + i * step, &value, step);
        list += strcspn(list, ",}");
    }
}

/* ".visible .const .align 4 .b8 name[24] = {...};" */
void ptx_read_variable(parser *p, char *text, ptx_space space) {
    ptx_program *g = p->program;
    size_t align = 1, step = 1, count = 1;
    char *equals = strchr(text, '='), *bracket, *name = NULL, *rest = NULL;
    char *values = equals ? strchr(equals, '{') ? strchr(equals, '{') : equals + 1 : NULL;
    if (equals)
        *equals = 0;
    for (char *word = strtok_r(text, " \t\n,;()", &rest); word;
         word = strtok_r(NULL, " \t\n,;()", &rest)) {
        if (strcmp(word, ".align") == 0) {
            word = strtok_r(NULL, " \t\n", &rest);
            align = word ? (size_t)atoi(word) : 1;
        } else if (word[0] == '.' && isdigit((unsigned char)word[strlen(word) - 1]))
            step = (size_t)atoi(strpbrk(word, "0123456789")) / 8;
        else if (word[0] != '.')
            name = word;
    }
    if (!name) {
        ptx_fail(p, "a variable without a name");
        return;
    }
    align = align > step ? align : step;
    if ((bracket = strchr(name, '['))) {
        *bracket = 0;
        count = (size_t)strtoul(bracket + 1, NULL, 10);
        if (count == 0)
            space = SPACE_DYNAMIC;
    }
    size_t none = 0, *used = space == SPACE_SHARED  ? &g->shared_bytes
                             : space == SPACE_LOCAL ? &g->local_bytes
                             : space == SPACE_PARAM ? &g->param_bytes
                             : space == SPACE_DATA  ? &g->data_bytes
                                                    : &none;
    size_t at = take_room(used, align, step * count);
    add_symbol(p, name, space, at);
    if (space != SPACE_DATA)
        return;
    g->data = realloc(g->data, g->data_bytes);
    assert(g->data);
    memset(g->data + at, 0, step * count);
    read_values(p, values, at, step, step * count);
}
