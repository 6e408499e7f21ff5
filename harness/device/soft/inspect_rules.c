#include "inspect_rules.h"

#include <string.h>

/* What the shim and the compiler call: copies, and the functions of libm that it makes of
 * __builtin_expf and its like. Those with an f at the end are for float, which is all there is. */
bool inspect_is_allowed(const char *name) {
    static const char names[] =
        " memcpy memmove memset memcmp acosf acoshf asinf asinhf atan2f atanf atanhf cbrtf"
        " ceilf copysignf cosf coshf erfcf erff exp10f exp2f expf expm1f fabsf fdimf floorf"
        " fmaf fmaxf fminf fmodf frexpf hypotf ilogbf ldexpf lgammaf log10f log1pf log2f"
        " logbf logf lrintf lroundf modff nanf nearbyintf nextafterf powf remainderf remquof"
        " rintf roundevenf roundf scalbnf sincosf sinf sinhf sqrtf tanf tanhf tgammaf truncf"
        " exp log pow fmod floor __extendhfsf2 __truncsfhf2 __truncsfbf2 __extendbfsf2"
        " __gnu_h2f_ieee __gnu_f2h_ieee __truncdfhf2 __truncdfbf2 __extendhfdf2 __sincosf"
        " __udivti3 __umodti3 __divti3 __modti3 __multi3 __fixsfti __fixunssfti __floattisf"
        " __floatuntisf __popcountdi2 __tls_get_addr __powisf2 ";
    size_t length = strlen(name);
    if (length == 0 || strchr(name, ' '))
        return false;
    for (const char *p = names; (p = strstr(p, name)); p++)
        if (p[-1] == ' ' && p[length] == ' ')
            return true;
    return false;
}

bool inspect_refuse(const char *kernel, const char *why, const char *what, err *e) {
    return err_set(e, EXIT_WRONG, "kernel '%.80s' %s%.80s%s: it is not loaded", kernel, why, what,
                   *what ? "', which MSL does not have" : "");
}
