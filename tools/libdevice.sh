#!/bin/sh
# libdevice: prints the path of libdevice.10.bc, NVIDIA's math functions, without which no kernel is
# compiled for NVIDIA GPUs. Where no CUDA toolkit is installed, it comes out of the Python package
# nvidia-cuda-nvcc-cu12, with its hash verified, and is kept in build/deps; ptxas comes with it.
#
# Usage: ASSAY_LIBDEVICE=$(sh tools/libdevice.sh)
# Exit status: 0 with the path on stdout, 3 if it is not available, with one sentence that says why.
set -u
cd "$(dirname "$0")/.." || exit 3
package=nvidia-cuda-nvcc-cu12==12.9.86
x86_64=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
aarch64=sha256:44e1eca4d08926193a558d2434b1bf83d57b4d5743e0c431c0c83d51da1df62b
kept=$(pwd)/build/deps/libdevice.10.bc

stop() {
    printf 'libdevice: %s\n' "$*" >&2
    exit 3
}

for path in "${ASSAY_LIBDEVICE:-}" "${CUDA_HOME:-/usr/local/cuda}/nvvm/libdevice/libdevice.10.bc" \
    /usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc "$kept"; do
    [ -r "$path" ] && printf '%s\n' "$path" && exit 0
done

python3 -m pip --version > /dev/null 2>&1 || sh tools/deps.sh model
python3 -m pip --version > /dev/null 2>&1 ||
    stop "pip is missing, which it comes by: install the package python3-pip, or a CUDA toolkit"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-libdevice.XXXXXX") || stop "no room for temporary files"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 3' HUP INT TERM
printf '%s --hash=%s --hash=%s\n' "$package" "$x86_64" "$aarch64" > "$scratch/requirements"
printf 'libdevice: downloading %s (39 MB)\n' "$package" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --dest "$scratch" --requirement "$scratch/requirements" > "$scratch/log" 2>&1 ||
    stop "pip could not download $package: $(grep -i error "$scratch/log" | head -n 1)"
python3 -m zipfile -e "$scratch"/nvidia_cuda_nvcc_cu12-*.whl "$scratch/wheel" ||
    stop "the wheel of $package could not be unpacked"
mkdir -p build/deps && cp "$scratch/wheel/nvidia/cuda_nvcc/bin/ptxas" build/deps/ptxas &&
    chmod 755 build/deps/ptxas &&
    mv "$scratch/wheel/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc" "$kept" ||
    stop "the wheel of $package has no libdevice in it"
printf '%s\n' "$kept"
