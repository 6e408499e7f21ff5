#!/bin/sh
# clang: prints the newest clang along PATH that can compile kernels, as harness/base/toolchain.c
# chooses it: ASSAY_CLANG, else the highest clang-NN, else plain clang. Exit status 1 and nothing
# printed if there is none of version 16 or newer, the oldest with half floats on every CPU.
#
# Usage: tools/clang.sh          prints its path
#        tools/clang.sh package  prints the package to install: the version that this project is
#                                tested with, else the newest clang-NN that apt-get has
#
# Apple numbers its clang differently: on macOS any will do.
set -u
oldest=16
tested=19

newest=0
consider() { # version, and what to print for it
    case $1 in
        '' | *[!0-9]*) return ;;
    esac
    [ "$1" -ge "$oldest" ] && [ "$1" -gt "$newest" ] && newest=$1 found=$2
}

if [ "${1:-}" = package ]; then
    found=clang
    for name in $(apt-cache pkgnames clang- 2> /dev/null | grep '^clang-[0-9]*$'); do
        apt-cache policy "$name" 2> /dev/null | grep -q 'Candidate: [0-9]' || continue
        consider "${name#clang-}" "$name"
        [ "$name" = "clang-$tested" ] && found=$name && break
    done
    echo "$found"
    exit 0
fi

if [ -n "${ASSAY_CLANG:-}" ]; then
    command -v "$ASSAY_CLANG"
    exit
fi
found=
plain=$(command -v clang) && {
    [ "$(uname -s)" = Darwin ] && oldest=1
    consider "$("$plain" -dumpversion 2> /dev/null | cut -d. -f1)" "$plain"
}
IFS=:
for folder in $PATH; do
    for file in "${folder:-.}"/clang-[0-9]*; do
        [ -x "$file" ] && consider "${file##*/clang-}" "$file"
    done
done
[ -n "$found" ] && echo "$found"
