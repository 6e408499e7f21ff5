#include "format.h"

#include <math.h>
#include <stdio.h>

const char *format_time(double ns, char *text, size_t size) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; unit < 3 && fabs(ns) >= 999.95 && isfinite(ns); unit++)
        ns /= 1000;
    if (isfinite(ns))
        snprintf(text, size, "%.4g %s", ns, units[unit]);
    else
        snprintf(text, size, "-");
    return text;
}
