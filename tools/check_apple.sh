#!/bin/sh
# check_apple: checks on Linux that the Metal device would compile on macOS 12. clang compiles it for
# Apple's targets with the declarations of tests/metal_double, whose API_AVAILABLE then takes effect:
# everything newer than the deployment target must be guarded by @available.
#
# Usage: tools/check_apple.sh [CLANG]
set -u
cd "$(dirname "$0")/.." || exit 1
clang=${1:-clang}
status=0
for target in arm64-apple-macos12.0 x86_64-apple-macos12.0 arm64-apple-macos15.0; do
    for file in harness/device/metal/*.m; do
        # __nonnull is a keyword for Apple and a macro in glibc's headers, which replace macOS's here.
        "$clang" --target="$target" -U__nonnull -fblocks -fsyntax-only -std=c11 -Wall -Wextra \
            -Wshadow -Wconversion -Wundeclared-selector -Wstrict-selector-match \
            -Wobjc-method-access -Wunguarded-availability -Werror -Itests/metal_double/apple \
            -Itests/metal_double/include -I. -isystem "/usr/include/$(uname -m)-linux-gnu" \
            -isystem /usr/include -D_DEFAULT_SOURCE "$file" || status=1
    done
done
[ "$status" -eq 0 ] && echo "the Metal device compiles for macOS 12 and 15"
exit "$status"
