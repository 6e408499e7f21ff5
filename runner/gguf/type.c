/* gguf/type: the table of the ways in which a GGUF file stores numbers.
 *
 * Owns sizes and names; what a block means is reference/quant. Ids that are not listed were never
 * given or have been withdrawn: files with them are refused. */
#include <ctype.h>

#include "gguf.h"

static const gguf_type types[] = {
    {0, "F32", 1, 4, &format_f32},
    {1, "F16", 1, 2, &format_f16},
    {2, "Q4_0", 32, 18, &format_q4_0},
    {3, "Q4_1", 32, 20, &format_q4_1},
    {6, "Q5_0", 32, 22, &format_q5_0},
    {7, "Q5_1", 32, 24, &format_q5_1},
    {8, "Q8_0", 32, 34, &format_q8_0},
    {9, "Q8_1", 32, 36, NULL},
    {10, "Q2_K", 256, 84, NULL},
    {11, "Q3_K", 256, 110, NULL},
    {12, "Q4_K", 256, 144, &format_q4_k},
    {13, "Q5_K", 256, 176, &format_q5_k},
    {14, "Q6_K", 256, 210, &format_q6_k},
    {15, "Q8_K", 256, 292, NULL},
    {16, "IQ2_XXS", 256, 66, NULL},
    {17, "IQ2_XS", 256, 74, NULL},
    {18, "IQ3_XXS", 256, 98, NULL},
    {19, "IQ1_S", 256, 50, NULL},
    {20, "IQ4_NL", 32, 18, NULL},
    {21, "IQ3_S", 256, 110, NULL},
    {22, "IQ2_S", 256, 82, NULL},
    {23, "IQ4_XS", 256, 136, NULL},
    {24, "I8", 1, 1, NULL},
    {25, "I16", 1, 2, NULL},
    {26, "I32", 1, 4, NULL},
    {27, "I64", 1, 8, NULL},
    {28, "F64", 1, 8, NULL},
    {29, "IQ1_M", 256, 56, NULL},
    {30, "BF16", 1, 2, &format_bf16},
    {34, "TQ1_0", 256, 54, NULL},
    {35, "TQ2_0", 256, 66, NULL},
    {39, "MXFP4", 32, 17, NULL},
    {40, "NVFP4", 64, 36, NULL},
    {41, "Q1_0", 128, 18, NULL},
    {42, "Q2_0", 64, 18, NULL},
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

const gguf_type *gguf_find_type(uint32_t id) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

const gguf_type *gguf_find_format(const weight_format *f) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (f && types[i].format == f)
            return &types[i];
    return NULL;
}

static bool equals_any_case(const char *a, const char *b) {
    while (*a && toupper((unsigned char)*a) == toupper((unsigned char)*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

const gguf_type *gguf_find_type_name(const char *name) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (equals_any_case(types[i].name, name))
            return &types[i];
    return NULL;
}
