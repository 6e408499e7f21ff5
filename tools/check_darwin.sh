#!/bin/sh
# check_darwin: compiles and links every C file for macOS, product, tests, fuzzers and the double of
# NVIDIA's driver, for arm64 and x86_64, on a machine that need not be a Mac. The headers and libSystem
# come with the Python package ziglang, installed by pip into build/deps/zig. Warnings are errors.
# Frameworks and libobjc do not come with it: the Objective-C of the Metal device is compiled with the
# declarations of tests/metal_double, whose API_AVAILABLE then takes effect, so that everything newer than
# the deployment target must be guarded by @available. It is not linked: a table without functions and
# lists of symbols stand for it and for libraries. Scripts may not call commands that macOS does not have.
#
# Usage: tools/check_darwin.sh [ARCH...]   (default: aarch64 x86_64)
# Exit status: 0 if all of it compiles and links, 1 if not, 3 if zig is not available.
set -u
cd "$(dirname "$0")/.." || exit 3
package=ziglang==0.17.0
folder=$(pwd)/build/deps/zig
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)

stop() { # status, sentence
    printf 'check_darwin: %s\n' "$2" >&2
    exit "$1"
}

# GNU's own commands, at the beginning of one, in what a Mac runs.
gnu='(^|[|;&(!]|then|do|else|run:)[[:space:]]*(timeout|nproc|tac|shuf)([[:space:])]|$)|readlink -f'
scripts=$(ls .ci/* run_all.sh action.yml .github/workflows/* tools/*.sh | grep -v -e profile-ncu -e check_darwin)
! grep -nE "$gnu" $scripts || stop 1 "macOS has no such command: the lines are above"

if ! PYTHONPATH=$folder python3 -m ziglang version > /dev/null 2>&1; then
    sh tools/deps.sh model || stop 3 "pip is missing: install the package python3-pip"
    printf 'check_darwin: installing %s by pip into build/deps/zig (100 MB)\n' "$package" >&2
    python3 -m pip install --quiet --disable-pip-version-check --target "$folder" "$package" \
        > /dev/null 2>&1 || stop 3 "pip could not install $package"
fi
sh tools/deps.sh test || stop 3 "greatest.h is missing"
PYTHONPATH=$folder
export PYTHONPATH
absent=build/darwin/absent.c
mkdir -p build/darwin || exit 3
# The two words of __builtin_cpu_supports are in Apple's compiler runtime, but not in zig's.
cat > "$absent" << 'END'
#include "harness/device/device.h"
const device_ops metal_device_ops = {.name = "metal"};
#if defined(__x86_64__)
extern unsigned __cpu_model[4], __cpu_features2[4];
unsigned __cpu_model[4], __cpu_features2[4];
#endif
END
cat > build/darwin/libobjc.tbd << 'END'
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: /usr/lib/libobjc.A.dylib
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ _objc_getClass, _objc_msgSend, _sel_registerName ]
...
END

compile_metal() { # target
    for file in harness/device/metal/*.m; do
        python3 -m ziglang cc -target "$1" -fblocks -c -o build/darwin/metal.o -std=c11 -Wall -Wextra \
            -Wshadow -Wconversion -Wundeclared-selector -Wstrict-selector-match -Wobjc-method-access \
            -Wunguarded-availability -Werror -Itests/metal_double/apple -Itests/metal_double/include \
            -I. "$file" || stop 1 "$file does not compile for $1: the compiler's message is above"
    done
}

for arch in ${*:-aarch64 x86_64}; do
    compile_metal "$arch-macos.12.0"
    compile_metal "$arch-macos.15.0"
    out=build/darwin/$arch
    programs="$out/assay $out/tests $out/libcuda_double.so"
    for file in tests/bench_*.c tests/fuzz_*.c; do
        name=${file##*/}
        programs="$programs $out/${name%.c}"
    done
    make -j "$jobs" OS=Darwin WERROR=1 BUILD="$out" CC="python3 -m ziglang cc -target $arch-macos.12.0" \
        CFLAGS=-O0 METAL_SOURCES="$absent" LIBS="-lm -Lbuild/darwin -lobjc" $programs ||
        stop 1 "the sources do not compile or link for macOS on $arch: the compiler's message is above"
done
printf 'check_darwin: everything compiles and links for macOS\n'
