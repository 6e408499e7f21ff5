#include "format.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
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

const char *format_units(const char *text, char *out, size_t size) {
    static const char *const units[][2] = {{" us", " µs"}, {" x", " ×"}};
    size_t used = 0;
    for (const char *p = text; *p && used + 5 < size;) {
        size_t u = 0;
        while (u < 2 && !(p > text && isdigit((unsigned char)p[-1]) &&
                          strncmp(p, units[u][0], strlen(units[u][0])) == 0 &&
                          !isalnum((unsigned char)p[strlen(units[u][0])])))
            u++;
        if (u < 2)
            used += (size_t)snprintf(out + used, size - used, "%s", units[u][1]);
        else
            out[used++] = *p;
        p += u < 2 ? strlen(units[u][0]) : 1;
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
