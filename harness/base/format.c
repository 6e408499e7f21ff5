#include "format.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *format_time(double ns, char *text, size_t size) {
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    size_t unit = 0;
    for (; unit < 3 && fabs(ns) >= 999.95 && isfinite(ns); unit++)
        ns /= 1000;
    if (isfinite(ns))
        snprintf(text, size, "%.4g %s", ns, units[unit]);
    else
        snprintf(text, size, "-");
    return text;
}

/* "1.31e+03", which %g makes of large numbers: the bytes of it at the start of the text; 0: it is not one. */
static size_t measure_exponent(const char *p) {
    size_t digits = strspn(p, "0123456789."), tail;
    if (digits == 0 || p[digits] != 'e' || p[digits + 1] != '+')
        return 0;
    tail = strspn(p + digits + 2, "0123456789");
    return tail ? digits + 2 + tail : 0;
}

const char *format_text(const char *text, char *out, size_t size) {
    static const char *const units[][2] = {{" us", " µs"}, {" x", " ×"}};
    size_t used = 0, length;
    for (const char *p = text; *p && used + 1 < size; p += length) {
        bool follows_digit = p > text && isdigit((unsigned char)p[-1]);
        size_t u = 0;
        while (u < 2 && !(follows_digit && strncmp(p, units[u][0], strlen(units[u][0])) == 0 &&
                          !isalnum((unsigned char)p[strlen(units[u][0])])))
            u++;
        bool is_start = p == text || !strchr("0123456789.", p[-1]);
        if (u < 2) {
            length = strlen(units[u][0]);
            snprintf(out + used, size - used, "%s", units[u][1]);
        } else if (is_start && (length = measure_exponent(p)))
            snprintf(out + used, size - used, "%.0f", strtod(p, NULL));
        else
            snprintf(out + used, size - used, "%.*s", (int)(length = 1), p);
        used += strlen(out + used);
    }
    out[used] = 0;
    return out;
}

const char *format_number(double value, int digits, char *text, size_t size) {
    double large = fabs(value);
    if (isnan(value))
        snprintf(text, size, "-");
    else if (isinf(value))
        snprintf(text, size, "%sinfinite", value < 0 ? "-" : "");
    else if (large >= 1e9 || (large > 0 && large < 1e-4))
        snprintf(text, size, "%.*g", digits, value);
    else if (value == floor(value) || large >= pow(10, digits) - 0.5)
        snprintf(text, size, "%.0f", value == 0 ? 0 : value); /* no -0 */
    else
        snprintf(text, size, "%.*g", digits, value);
    return text;
}
