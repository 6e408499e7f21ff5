#!/bin/sh
# format: runs the one version of clang-format that this project is formatted with. Another version
# formats differently. It is the system's if that is the right version, otherwise the wheel of the same
# version, installed by pip into build/deps/format.
#
# Usage: tools/format.sh FILE...          formats the files
#        tools/format.sh --check FILE...  changes nothing; exit status 1 and a list if any differ
#        tools/format.sh find             prints the path of clang-format if it exists, else status 1
# Exit status 3: it is not available, with one sentence that says why.
set -u
cd "$(dirname "$0")/.." || exit 3
version=14.0.6
folder=build/deps/format

find_formatter() {
    for name in clang-format-${version%%.*} clang-format "$folder/bin/clang-format"; do
        PYTHONPATH=$folder "$name" --version 2> /dev/null | grep -q "version $version" &&
            command -v "$name" && return 0
    done
    return 1
}

install_formatter() {
    sh tools/deps.sh kernels format > /dev/null || true
    printf 'format: installing clang-format %s by pip into %s\n' "$version" "$folder" >&2
    python3 -m pip install --quiet --disable-pip-version-check --target "$folder" \
        "clang-format==$version" > /dev/null 2>&1 || {
        printf 'format: clang-format %s is missing and pip could not install it\n' "$version" >&2
        exit 3
    }
}

if [ "${1:-}" = find ]; then
    find_formatter
    exit
fi
find_formatter > /dev/null || install_formatter
formatter=$(find_formatter) || {
    printf 'format: the clang-format that pip installed does not run\n' >&2
    exit 3
}
PYTHONPATH=$folder
export PYTHONPATH
if [ "${1:-}" != --check ]; then
    exec "$formatter" -i "$@"
fi
shift
status=0
for file; do
    "$formatter" "$file" | cmp -s - "$file" || {
        printf 'format: %s is not formatted: run make format\n' "$file" >&2
        status=1
    }
done
exit "$status"
