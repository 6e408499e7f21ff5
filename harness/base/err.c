#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "macro_place.h"

bool err_set(err *e, exit_code code, const char *format, ...) {
    if (!e)
        return false;
    e->code = code;
    e->detail[0] = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    macro_place_tell(e->text, sizeof e->text);
    return false;
}

bool err_set_detail(err *e, const char *detail) {
    if (!e)
        return false;
    size_t n = strlen(detail);
    if (n >= sizeof e->detail) {
        n = sizeof e->detail - 1;
        while (n > 0 && detail[n - 1] != '\n')
            n--;
    }
    memcpy(e->detail, detail, n);
    e->detail[n] = 0;
    macro_place_tell(e->detail, sizeof e->detail);
    return false;
}

static err fault;

bool err_blame_machine(err *e) {
    if (e)
        e->code = EXIT_CANNOT;
    if (e && !fault.text[0])
        fault = *e;
    return false;
}

const err *err_get_machine_fault(void) {
    return fault.text[0] ? &fault : NULL;
}
