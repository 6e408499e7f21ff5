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
