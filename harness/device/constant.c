/* constant: values of function constants as C++ text. Declared in device.h. */
#include <stdio.h>
#include <string.h>

#include "device.h"

void constant_spell(const constant_value *v, msl_constant_text *out) {
    out->index = (int)v->index;
    switch (v->type) {
    case ELEM_F32: {
        float f;
        uint32_t bits = (uint32_t)v->bits;
        memcpy(&f, &bits, sizeof f);
        if (f - f == 0)
            snprintf(out->text, sizeof out->text, "%af", (double)f);
        else
            snprintf(out->text, sizeof out->text, "__builtin_bit_cast(float, %uu)", bits);
        break;
    }
    case ELEM_F16:
    case ELEM_BF16:
        snprintf(out->text, sizeof out->text, "__builtin_bit_cast(%s, (unsigned short)%u)",
                 v->type == ELEM_F16 ? "half" : "bfloat", (unsigned)(v->bits & 0xFFFF));
        break;
    case ELEM_I8:
        snprintf(out->text, sizeof out->text, "%d", (int8_t)v->bits);
        break;
    case ELEM_I16:
        snprintf(out->text, sizeof out->text, "%d", (int16_t)v->bits);
        break;
    case ELEM_I32:
        snprintf(out->text, sizeof out->text, "int(%uu)", (uint32_t)v->bits);
        break;
    case ELEM_I64:
        snprintf(out->text, sizeof out->text, "long(%lluul)", (unsigned long long)v->bits);
        break;
    case ELEM_U64:
        snprintf(out->text, sizeof out->text, "%lluul", (unsigned long long)v->bits);
        break;
    default:
        snprintf(out->text, sizeof out->text, "%uu",
                 (unsigned)(v->bits & (v->type == ELEM_U8    ? 0xFF
                                       : v->type == ELEM_U16 ? 0xFFFF
                                                             : 0xFFFFFFFF)));
    }
}

bool constant_check(const msl_unit *u, const constant_value *values, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        const msl_constant *found = NULL;
        for (size_t k = 0; k < msl_count_constants(u) && !found; k++)
            if (msl_get_constant(u, k)->index == (int)values[i].index)
                found = msl_get_constant(u, k);
        if (!found)
            return err_set(e, EXIT_USAGE, "%.120s has no function constant %u", msl_get_name(u),
                           values[i].index);
        elem wanted;
        if (elem_find_msl(found->type, &wanted) && wanted != values[i].type)
            return err_set(e, EXIT_USAGE,
                           "function constant %d (%.60s) is %.30s: give it as %s, not as %s",
                           found->index, found->name, found->type, elem_get_name(wanted),
                           elem_get_name(values[i].type));
    }
    return true;
}
