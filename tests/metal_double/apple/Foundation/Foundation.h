/* Foundation: the declarations of Apple's Foundation that harness/device/metal uses, for a compiler that
 * is asked on Linux whether the files would compile on macOS: for Apple's runtime and word sizes,
 * with every API that is newer than the deployment target guarded by @available. Nothing is ever linked
 * with it. See tools/check_darwin.sh. */
#ifndef ASSAY_APPLE_FOUNDATION_H
#define ASSAY_APPLE_FOUNDATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef bool BOOL;
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#define nil ((void *)0)
#define NS_ENUM(type, name)                                                                        \
    enum name : type name;                                                                         \
    enum name : type
#define NS_OPTIONS(type, name)                                                                     \
    enum name : type name;                                                                         \
    enum __attribute__((flag_enum)) name : type
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")

#define ASSAY_SINCE_macos(...) macos, introduced = __VA_ARGS__
#define ASSAY_SINCE_ios(...) ios, introduced = __VA_ARGS__
#define ASSAY_AVAILABLE1(a) __attribute__((availability(ASSAY_SINCE_##a)))
#define ASSAY_AVAILABLE2(a, b) ASSAY_AVAILABLE1(a) ASSAY_AVAILABLE1(b)
#define ASSAY_PICK(a, b, which, ...) which
#define API_AVAILABLE(...) ASSAY_PICK(__VA_ARGS__, ASSAY_AVAILABLE2, ASSAY_AVAILABLE1)(__VA_ARGS__)
#define API_UNAVAILABLE(...)
#define ASSAY_UNTIL_macos(first, last) macos, introduced = first, deprecated = last
#define ASSAY_UNTIL_ios(first, last) ios, introduced = first, deprecated = last
#define API_DEPRECATED(why, mac, phone)                                                            \
    __attribute__((availability(ASSAY_UNTIL_##mac, message = why)))

typedef struct {
    NSUInteger location, length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
    return (NSRange){location, length};
}
static const NSInteger NSNotFound = INTPTR_MAX;

typedef struct _NSZone NSZone;

@protocol NSObject
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
@end
@protocol NSCopying
- (id)copyWithZone:(NSZone *)zone;
@end
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(void *)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)len;
@end

__attribute__((objc_root_class))
@interface NSObject<NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end

@class NSDictionary<K, V>;

@interface NSString : NSObject <NSCopying>
@property(readonly) const char *UTF8String;
+ (instancetype)stringWithUTF8String:(const char *)text;
- (instancetype)initWithFormat:(NSString *)format, ... __attribute__((format(__NSString__, 1, 2)));
- (BOOL)isEqualToString:(NSString *)other;
- (NSRange)rangeOfString:(NSString *)part options:(NSUInteger)mask;
@end
@interface NSConstantString : NSString
@end
enum { NSCaseInsensitiveSearch = 1 };

typedef NSString *NSErrorDomain;
typedef NSString *NSErrorUserInfoKey;
@interface NSError : NSObject
@property(readonly) NSInteger code;
@property(readonly, copy) NSDictionary<NSErrorUserInfoKey, id> *userInfo;
@property(readonly, copy) NSString *localizedDescription;
@end

@interface NSArray<T> : NSObject <NSFastEnumeration>
@property(readonly) NSUInteger count;
- (T)objectAtIndex:(NSUInteger)index;
@end
@interface NSDictionary<K, V> : NSObject
- (V)objectForKey:(K)key;
@end
@interface NSMutableDictionary<K, V> : NSDictionary <K, V>
- (void)setObject:(V)object forKey:(K<NSCopying>)key;
@end
@interface NSData : NSObject
@property(readonly) NSUInteger length;
@property(readonly) const void *bytes;
@end
@interface NSURL : NSObject <NSCopying>
+ (NSURL *)fileURLWithPath:(NSString *)path;
@end
@interface NSProcessInfo : NSObject
+ (NSProcessInfo *)processInfo;
@property(readonly, copy) NSString *operatingSystemVersionString;
@property(readonly) unsigned long long physicalMemory;
@end

#endif
