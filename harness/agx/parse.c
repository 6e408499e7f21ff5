/* parse: what agx_driver printed. See agx.h. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"

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
