#include "msl_text.h"

#include <stdlib.h>
#include <string.h>

err text_why;
msl_unit *text_unit;
char *text_cpp;

void text_clear(void) {
    free(text_cpp);
    text_cpp = NULL;
    msl_free(text_unit);
    text_unit = NULL;
    text_why = (err){.code = EXIT_OK};
}

bool text_read(const char *text) {
    text_clear();
    text_unit = msl_from_text("test.metal", text, &text_why);
    return text_unit != NULL;
}

const msl_signature *text_find(const char *kernel) {
    return msl_find_kernel(text_unit, kernel, &text_why);
}

bool text_rewrite(const char *kernel, const msl_constant_text *constants, size_t count) {
    free(text_cpp);
    text_cpp = msl_rewrite(text_unit, kernel, constants, count, &text_why);
    return text_cpp != NULL;
}

bool text_has(const char *part) {
    return strstr(text_cpp, part) != NULL;
}

bool text_says(const char *part) {
    return strstr(text_why.text, part) != NULL;
}

int text_find_line(const char *text, const char *part) {
    const char *at = strstr(text, part);
    int line = 1;
    for (const char *p = text; at && p < at; p++)
        line += *p == '\n';
    return at ? line : -1;
}
