/* object: what all objects of the double have in common: they are counted, and their dead are kept
 * for a while as zombies. Also how a mistake is reported. */
#include <objc/runtime.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"

_Noreturn void double_refuse(id object, SEL what, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "-[%s %s]: failed assertion: %s\n", class_getName(object_getClass(object)),
            sel_getName(what), text);
    fflush(stderr);
    abort();
}

bool double_has(const char *fault) {
    const char *list = getenv("METAL_DOUBLE");
    size_t n = strlen(fault);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && strncmp(p, fault, n) == 0)
            return true;
    return false;
}

NSError *double_make_error(NSErrorDomain domain, NSUInteger code, const err *e) {
    const char *text = e->detail[0] ? e->detail : e->text;
    NSString *said = [NSString stringWithUTF8String:text];
    NSDictionary *info = [NSDictionary dictionaryWithObject:said ? said : @"not UTF-8"
                                                     forKey:NSLocalizedDescriptionKey];
    return [NSError errorWithDomain:domain code:(NSInteger)code userInfo:info];
}

/* Zombies ------------------------------------------------------------------------------------ */

enum { GRAVES = 256 };

typedef struct {
    id body;
    Class was;
} grave;

static grave graves[GRAVES];
static size_t buried, objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

@interface DoubleZombie : NSObject
@end

static _Noreturn void rise(id zombie, SEL what) {
    const char *name = "object";
    for (size_t i = 0; i < GRAVES; i++)
        if (graves[i].body == zombie)
            name = class_getName(graves[i].was);
    fprintf(stderr, "-[%s %s]: failed assertion: the object is gone: it was released too often\n",
            name, sel_getName(what));
    fflush(stderr);
    abort();
}

@implementation DoubleZombie
- (id)retain {
    rise(self, _cmd);
}
- (oneway void)release {
    rise(self, _cmd);
}
- (id)autorelease {
    rise(self, _cmd);
}
- (NSUInteger)retainCount {
    rise(self, _cmd);
}
- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector {
    rise(self, selector);
}
@end

static void bury(id body) {
    pthread_mutex_lock(&lock);
    grave *g = &graves[buried++ % GRAVES];
    grave old = *g;
    *g = (grave){body, object_getClass(body)};
    objects--;
    object_setClass(body, [DoubleZombie class]);
    pthread_mutex_unlock(&lock);
    if (old.body) {
        object_setClass(old.body, old.was);
        NSDeallocateObject(old.body);
    }
}

@implementation DoubleObject
@synthesize label = _label, device = owner;

- (id)initWithDevice:(DoubleDevice *)device {
    self = [super init];
    owner = [device retain];
    return self;
}
+ (id)allocWithZone:(NSZone *)zone {
    pthread_mutex_lock(&lock);
    objects++;
    pthread_mutex_unlock(&lock);
    return [super allocWithZone:zone];
}
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wobjc-missing-super-calls" /* the memory is kept */
- (void)dealloc {
    [_label release];
    [owner release];
    bury(self);
}
#pragma clang diagnostic pop
@end

size_t double_count_objects(void) {
    pthread_mutex_lock(&lock);
    size_t n = objects;
    pthread_mutex_unlock(&lock);
    return n;
}
