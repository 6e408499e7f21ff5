/* library: texts, functions and pipelines of the double. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "harness/device/metal/metal.h"

static const struct {
    MTLDataType type;
    elem as;
} types[] = {
    {MTLDataTypeBool, ELEM_U8},   {MTLDataTypeChar, ELEM_I8},    {MTLDataTypeUChar, ELEM_U8},
    {MTLDataTypeShort, ELEM_I16}, {MTLDataTypeUShort, ELEM_U16}, {MTLDataTypeInt, ELEM_I32},
    {MTLDataTypeUInt, ELEM_U32},  {MTLDataTypeLong, ELEM_I64},   {MTLDataTypeULong, ELEM_U64},
    {MTLDataTypeHalf, ELEM_F16},  {MTLDataTypeFloat, ELEM_F32},  {MTLDataTypeBFloat, ELEM_BF16},
};

@implementation MTLFunctionConstantValues

- (id)init {
    self = [super init];
    _values = [[NSMutableDictionary alloc] init];
    return self;
}

- (void)dealloc {
    [_values release];
    [super dealloc];
}

- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)index {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            constant_value v = {.index = (uint32_t)index, .type = types[i].as, .bits = 0};
            memcpy(&v.bits, value, elem_get_bytes(v.type));
            NSData *data = [NSData dataWithBytes:&v length:sizeof v];
            [_values setObject:data forKey:[NSNumber numberWithUnsignedInteger:index]];
            return;
        }
    double_refuse(self, _cmd, "data type %lu is not one of function constants",
                  (unsigned long)type);
}

- (NSData *)doubleValues {
    NSMutableData *all = [NSMutableData data];
    for (NSNumber *index in _values)
        [all appendData:[_values objectForKey:index]];
    return all;
}
@end

static size_t count_constants(const DoubleFunction *f) {
    return [f->constants length] / sizeof(constant_value);
}

@implementation DoubleLibrary
- (id)initWithDevice:(DoubleDevice *)device unit:(msl_unit *)parsed {
    self = [super initWithDevice:device];
    unit = parsed;
    return self;
}

- (void)dealloc {
    msl_free(unit);
    [super dealloc];
}

- (id<MTLFunction>)newFunctionWithName:(NSString *)functionName {
    if (!msl_find_kernel(unit, [functionName UTF8String], NULL))
        return nil;
    DoubleFunction *f = [[DoubleFunction alloc] initWithDevice:owner];
    f->home = [self retain];
    f->_name = [functionName copy];
    return f;
}

static bool has_all(const DoubleFunction *f, err *e) {
    size_t count = count_constants(f);
    const constant_value *values = [f->constants bytes];
    msl_constant_text *texts = calloc(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++)
        constant_spell(&values[i], &texts[i]);
    bool ok = msl_check_constants(f->home->unit, [f->_name UTF8String], texts, count, e);
    free(texts);
    return ok;
}

- (id<MTLFunction>)newFunctionWithName:(NSString *)name
                        constantValues:(MTLFunctionConstantValues *)constantValues
                                 error:(__autoreleasing NSError **)error {
    err e = {.code = EXIT_OK};
    DoubleFunction *f = [self newFunctionWithName:name];
    if (!f)
        err_set(&e, EXIT_USAGE, "Function %s was not found in the library", [name UTF8String]);
    else
        f->constants = [[constantValues doubleValues] retain];
    if (f && has_all(f, &e))
        return f;
    [f release];
    if (error)
        *error = double_make_error(MTLLibraryErrorDomain, MTLLibraryErrorFunctionNotFound, &e);
    return nil;
}
@end

@implementation DoubleFunction
@synthesize name = _name;
- (void)dealloc {
    [constants release];
    [_name release];
    [home release];
    [super dealloc];
}
@end

@implementation DoublePipeline
/* From the kernel to the next one of its file, or 0 for the last. */
static int count_lines(const DoublePipeline *p) {
    const msl_unit *u = p->function->home->unit;
    int next = INT_MAX;
    for (size_t i = 0; i < msl_count_kernels(u); i++) {
        int line = msl_get_kernel(u, i)->line;
        if (line > p->soft->signature.line && line < next)
            next = line;
    }
    return next == INT_MAX ? 0 : next - p->soft->signature.line;
}

- (id)initWithFunction:(DoubleFunction *)given
                 label:(NSString *)label
                 error:(__autoreleasing NSError **)error {
    self = [super initWithDevice:given->owner];
    err e = {.code = EXIT_OK};
    function = [given retain];
    _label = [label copy];
    if (![owner supportsFamily:MTLGPUFamilyApple7] &&
        msl_uses_matrices(given->home->unit, [given->_name UTF8String]))
        err_set(&e, EXIT_WRONG, "SC compilation failure: There is a call to an undefined label");
    else
        soft = device_new_pipeline(owner->soft, given->home->unit,
                                   [given->_name UTF8String], [given->constants bytes],
                                   count_constants(given), given->home->math, &e);
    if (soft)
        return self;
    if (error)
        *error = double_make_error(MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, &e);
    [self release];
    return nil;
}
- (void)dealloc {
    pipeline_free(soft);
    [function release];
    [super dealloc];
}
/* Long kernels are taken for those that need many registers, unless they say for how many threads
 * these must do, and validation needs some itself. */
- (NSUInteger)maxTotalThreadsPerThreadgroup {
    enum { LONG_KERNEL = 48, HEAVY_THREADS = 448, VALIDATED_THREADS = 512 };
    NSUInteger most = soft->max_group_threads;
    bool is_heavy = count_lines(self) >= LONG_KERNEL && !soft->signature.max_total_threads;
    if (is_heavy && most > HEAVY_THREADS)
        most = HEAVY_THREADS;
    if (device_get_facts(soft->device)->validates && most > VALIDATED_THREADS)
        most = VALIDATED_THREADS;
    return most;
}
- (NSUInteger)threadExecutionWidth {
    return double_has("simd-64") ? 64 : soft->simd_width;
}
- (NSUInteger)staticThreadgroupMemoryLength {
    return soft->threadgroup_bytes;
}
@end
