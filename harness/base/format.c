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
