#!/bin/sh
# check_apple: would the Metal device compile on macOS 12? Asked of clang on Linux, for the targets
# of Apple, with the declarations of tests/metal_double, whose API_AVAILABLE then means something:
# whatever is newer than the deployment target must be behind @available.
#
# Usage: tools/check_apple.sh [CLANG]
set -u
cd "$(dirname "$0")/.." || exit 1
clang=${1:-clang}
status=0
for target in arm64-apple-macos12.0 x86_64-apple-macos12.0 arm64-apple-macos15.0; do
    for file in harness/device/metal/*.m; do
        # __nonnull is a word of Apple's and a macro of glibc's headers, which stand in for macOS's.
        "$clang" --target="$target" -U__nonnull -fblocks -fsyntax-only -std=c11 -Wall -Wextra \
            -Wshadow -Wconversion -Wundeclared-selector -Wstrict-selector-match \
            -Wobjc-method-access -Wunguarded-availability -Werror -Itests/metal_double/apple \
            -Itests/metal_double/include -I. -isystem "/usr/include/$(uname -m)-linux-gnu" \
            -isystem /usr/include -D_DEFAULT_SOURCE "$file" || status=1
    done
done
[ "$status" -eq 0 ] && echo "the Metal device compiles for macOS 12 and 15"
exit "$status"
