// types: the scalar types of MSL.
//
// Owns what exists before any vector does. numeric_limits are in limits.h, the bfloat of compilers
// without one in bfloat.h. No libc or libstdc++ header is included anywhere in the shim, because
// kernels define names those headers own (erf, sum, ...). Only what MSL defines stands in namespace
// metal; helpers of the shim are in namespace assay.
#pragma once
#pragma clang system_header

// nodebug: its instructions belong to the line of the .metal file that called for them. At its end
// metal.h defines it again for kernels, without that: their lines are their own.
#define METAL_FUNC inline __attribute__((always_inline, nodebug))
// After the parameters of a lambda, for the same reason.
#define ASSAY_LAMBDA __attribute__((always_inline, nodebug))
#define METAL_INTERNAL METAL_FUNC

#ifndef __METAL__
#define __METAL__ 1
#endif
#ifndef __HAVE_BFLOAT__
#define __HAVE_BFLOAT__ 1
#endif

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef _Float16 half;

// __bf16 has had arithmetic since LLVM 18; Apple counts its versions differently. soft/compile.c asks
// the same compilers to round it after every operation.
#if defined(__apple_build_version__) ? __clang_major__ >= 17 : __clang_major__ >= 18
#define ASSAY_NATIVE_BFLOAT 1
typedef __bf16 bfloat;
#else
#define ASSAY_NATIVE_BFLOAT 0
struct bfloat;
#endif

#include "constants.h"

#define ASSAY_CONSTANT
#include "traits.h"
#undef ASSAY_CONSTANT

namespace metal {
template <class T> struct remove_addrspace { using type = T; };
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;
} // namespace metal

#include "bfloat.h"
#include "limits.h"
#include "literal.h"
