/* loads: see agx.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agx.h"

/* `  %v = load i64, ptr addrspace(1) %p, align 8`: of the names how long they are; false: another line. */
static bool find_load(const char *line, int *value, const char **at, int *at_length,
                      unsigned *align) {
    static const char load[] = " = load i64, ptr addrspace(1) ";
    if (strncmp(line, "  %", 3) != 0)
        return false;
    *value = (int)strcspn(line + 2, " \n");
    if (strncmp(line + 2 + *value, load, strlen(load)) != 0)
        return false;
    *at = line + 2 + *value + strlen(load);
    *at_length = (int)strcspn(*at, ", \n");
    return **at == '%' && sscanf(*at + *at_length, ", align %u", align) == 1;
}

char *agx_split_loads(const char *module) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert(out);
    int number = 0;
    for (const char *line = module; *line;) {
        const char *next = strchr(line, '\n'), *at;
        int value, n;
        unsigned align;
        next = next ? next + 1 : line + strlen(line);
        if (find_load(line, &value, &at, &n, &align)) {
            const int i = number++;
            fprintf(out, "  %%agx%d.low = load i32, ptr addrspace(1) %.*s, align %u\n", i, n, at,
                    align);
            fprintf(out, "  %%agx%d.at = getelementptr i8, ptr addrspace(1) %.*s, i64 4\n", i, n,
                    at);
            fprintf(out, "  %%agx%d.high = load i32, ptr addrspace(1) %%agx%d.at, align %u\n", i, i,
                    align < 4 ? align : 4);
            fprintf(out, "  %%agx%d.x = zext i32 %%agx%d.low to i64\n", i, i);
            fprintf(out, "  %%agx%d.y = zext i32 %%agx%d.high to i64\n", i, i);
            fprintf(out, "  %%agx%d.z = shl i64 %%agx%d.y, 32\n", i, i);
            fprintf(out, "  %.*s = or i64 %%agx%d.x, %%agx%d.z\n", value, line + 2, i, i);
        } else {
            fwrite(line, 1, (size_t)(next - line), out);
        }
        line = next;
    }
    fclose(out);
    return text;
}
