/* pipeline_metal: from the text of a .metal file to a pipeline.
 *
 * Metal compiles the text itself: local includes are already in it (msl_get_text), and its messages
 * name .metal files and lines by the line marks in it. The device keeps one library per text; a
 * pipeline is a function of it, specialised by function constants.
 *
 * Safe math alone leaves sin, exp and the rest in their fast variants, so the precise ones are
 * requested as well. Before macOS 15 one switch did both, and relaxed math was fast. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metal.h"

int metal_get_language(void) {
    if (@available(macOS 26.0, *))
        return 400;
    if (@available(macOS 15.0, *))
        return 320;
    if (@available(macOS 14.0, *))
        return 310;
    if (@available(macOS 13.0, *))
        return 300;
    return 240;
}

/* The version is a number, 310, as the text was read in: the headers of older systems lack the
 * names. */
static MTLCompileOptions *make_options(int language, math_mode math) {
    MTLCompileOptions *o = [[[MTLCompileOptions alloc] init] autorelease];
    [o setLanguageVersion:(MTLLanguageVersion)(language / 100 << 16 | language / 10 % 10)];
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
    if (@available(macOS 15.0, *)) {
        static const MTLMathMode modes[] = {[MATH_SAFE] = MTLMathModeSafe,
                                            [MATH_RELAXED] = MTLMathModeRelaxed,
                                            [MATH_FAST] = MTLMathModeFast};
        [o setMathMode:modes[math]];
        [o setMathFloatingPointFunctions:math == MATH_SAFE ? MTLMathFloatingPointFunctionsPrecise
                                                           : MTLMathFloatingPointFunctionsFast];
        return o;
    }
#endif
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations" /* since macOS 15 */
    [o setFastMathEnabled:math != MATH_SAFE];
#pragma clang diagnostic pop
    return o;
}

static bool refuse(const char *kernel, NSError *error, err *e) {
    err_set(e, EXIT_WRONG, "kernel '%.100s' does not compile", kernel);
    return err_set_detail(e, metal_describe(error));
}

/* Owned by the device; nil with e set. A text that compiles with warnings gives a library and an
 * error: only the library tells. */
id<MTLLibrary> metal_find_library(metal_device *m, const char *text, int language, math_mode math,
                                  const char *kernel, err *e) {
    NSString *source = [NSString stringWithUTF8String:text];
    if (!source) {
        err_set(e, EXIT_USAGE, "the file of kernel '%.100s' is not UTF-8 text", kernel);
        return nil;
    }
    NSString *key =
        [[[NSString alloc] initWithFormat:@"%d %d %@", language, math, source] autorelease];
    id<MTLLibrary> found = [m->libraries objectForKey:key];
    if (found)
        return found;
    NSError *error = nil;
    id<MTLLibrary> made = [m->device newLibraryWithSource:source
                                                  options:make_options(language, math)
                                                    error:&error];
    if (!made) {
        refuse(kernel, error, e);
        return nil;
    }
    [made setLabel:[NSString stringWithUTF8String:kernel]];
    [m->libraries setObject:made forKey:key];
    [made release];
    return made;
}

/* Function constants ------------------------------------------------------------------------- */

typedef struct {
    const char *names; /* in MSL, with a blank before and after each */
    elem given;        /* how device.h gives it */
    MTLDataType type;
} constant_type;

static const constant_type *find_type(const char *name) {
    static const constant_type types[] = {
        {" bool ", ELEM_U8, MTLDataTypeBool},
        {" char int8_t ", ELEM_I8, MTLDataTypeChar},
        {" uchar uint8_t ", ELEM_U8, MTLDataTypeUChar},
        {" short int16_t ", ELEM_I16, MTLDataTypeShort},
        {" ushort uint16_t ", ELEM_U16, MTLDataTypeUShort},
        {" int int32_t ", ELEM_I32, MTLDataTypeInt},
        {" uint uint32_t ", ELEM_U32, MTLDataTypeUInt},
        {" long int64_t ", ELEM_I64, MTLDataTypeLong},
        {" ulong uint64_t size_t ", ELEM_U64, MTLDataTypeULong},
        {" half ", ELEM_F16, MTLDataTypeHalf},
        {" float ", ELEM_F32, MTLDataTypeFloat},
    };
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strstr(types[i].names, word))
            return &types[i];
    return NULL;
}

/* A constant of another width would be read beyond its end. */
static bool set_constant(MTLFunctionConstantValues *values, const msl_constant *c,
                         const constant_value *v, err *e) {
    const constant_type *t = find_type(c->type);
    if (!t)
        return err_set(e, EXIT_USAGE,
                       "function constant %.60s (index %d) is %.30s, which is not supported here",
                       c->name, c->index, c->type);
    if (elem_get_bytes(v->type) != elem_get_bytes(t->given))
        return err_set(e, EXIT_USAGE, "function constant %.60s (index %d) is %.30s: give it as %s",
                       c->name, c->index, c->type, elem_get_name(t->given));
    uint64_t bits = t->type == MTLDataTypeBool ? (v->bits & 0xFF) != 0 : v->bits;
    [values setConstantValue:&bits type:t->type atIndex:(NSUInteger)c->index]; /* little endian */
    return true;
}

/* Those that the file declares: Metal rejects others. */
static MTLFunctionConstantValues *make_constants(const msl_unit *unit, const constant_value *given,
                                                 size_t count, err *e) {
    MTLFunctionConstantValues *values = [[[MTLFunctionConstantValues alloc] init] autorelease];
    for (size_t i = 0; i < msl_count_constants(unit); i++) {
        const msl_constant *c = msl_get_constant(unit, i);
        for (size_t k = 0; k < count; k++)
            if ((int)given[k].index == c->index && !set_constant(values, c, &given[k], e))
                return nil;
    }
    return values;
}

/* Pipelines ---------------------------------------------------------------------------------- */

static bool specialise(pipeline *p, const msl_unit *unit, const constant_value *constants,
                       size_t count, err *e) {
    msl_constant_text *texts = calloc(count + 1, sizeof *texts);
    assert(texts);
    for (size_t i = 0; i < count; i++)
        constant_spell(&constants[i], &texts[i]);
    bool ok = msl_specialise(unit, p->kernel, texts, count, &p->signature, e) &&
              msl_check_constants(unit, p->kernel, texts, count, e);
    free(texts);
    return ok;
}

/* Autoreleased. */
static id<MTLFunction> find_function(pipeline *p, const msl_unit *unit,
                                     const constant_value *constants, size_t count, err *e) {
    id<MTLLibrary> library = metal_find_library(metal_get(p->device), msl_get_text(unit),
                                                msl_get_language(unit), p->math, p->kernel, e);
    NSString *name = [NSString stringWithUTF8String:p->kernel];
    NSError *error = nil;
    id<MTLFunction> function = nil;
    if (!library)
        return nil;
    if (msl_count_constants(unit) > 0) {
        MTLFunctionConstantValues *values = make_constants(unit, constants, count, e);
        if (!values)
            return nil;
        function = [library newFunctionWithName:name constantValues:values error:&error];
    } else {
        function = [library newFunctionWithName:name];
    }
    if (!function) {
        err_set(e, EXIT_WRONG, "Metal finds no kernel '%.100s' in %.120s", p->kernel,
                msl_get_name(unit));
        err_set_detail(e, metal_describe(error));
    }
    return [function autorelease];
}

id<MTLComputePipelineState> metal_new_state(metal_device *m, id<MTLFunction> function,
                                            const char *label, NSError **error) {
    MTLComputePipelineDescriptor *what = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
    [what setLabel:[NSString stringWithUTF8String:label]];
    [what setComputeFunction:function];
    return [m->device newComputePipelineStateWithDescriptor:what
                                                    options:MTLPipelineOptionNone
                                                 reflection:NULL
                                                      error:error];
}

bool metal_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                        size_t count, err *e) {
    @autoreleasepool {
        if (!specialise(p, unit, constants, count, e))
            return false;
        id<MTLFunction> function = find_function(p, unit, constants, count, e);
        if (!function)
            return false;
        NSError *error = nil;
        id<MTLComputePipelineState> state =
            metal_new_state(metal_get(p->device), function, p->kernel, &error);
        /* Metal compiles the text on every GPU; without the units only the pipeline fails. */
        p->needs_matrices = !state && !device_offers(&p->device->facts, FEATURE_MATRICES, NULL) &&
                            msl_uses_matrices(unit, p->kernel);
        if (p->needs_matrices)
            return true;
        if (!state)
            return refuse(p->kernel, error, e);
        p->impl = state;
        p->max_group_threads = (uint32_t)[state maxTotalThreadsPerThreadgroup];
        p->simd_width = (uint32_t)[state threadExecutionWidth];
        p->threadgroup_bytes = (uint32_t)[state staticThreadgroupMemoryLength];
        return true;
    }
}

void metal_free_pipeline(pipeline *p) {
    @autoreleasepool {
        [(id<MTLComputePipelineState>)p->impl release];
    }
}
