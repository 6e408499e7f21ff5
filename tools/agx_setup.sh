#!/bin/sh
# agx_setup FOLDER: unpacks Mesa's compiler for Apple GPUs (G13: M1) and the clang that it needs into a
# folder, without root: nothing is installed. apt-get does the work on lists of its own: it follows
# the dependencies, verifies the signature of Release with the keys of the Debian archive, and the hashes of
# Packages and of every package. No maintainer script is run.
#
# ASSAY_AGX_URI: the archive (default: the one of the machine's own apt sources); ASSAY_AGX_KEYS: its keys.
# Exit status: 0, or 3 with one sentence that says why not.
set -u
home=$(cd "$(dirname "$0")/.." && pwd) suite=trixie folder=$1
keys=${ASSAY_AGX_KEYS:-/usr/share/keyrings/debian-archive-keyring.gpg}

stop() {
    printf 'agx: %s\n' "$*" >&2
    exit 3
}

[ "$(uname -s)" = Linux ] || stop "Mesa's compiler is unpacked from Debian packages, on Linux only"
for program in apt-get dpkg-deb "${CC:-cc}"; do
    command -v "$program" > /dev/null || stop "$program is missing, which this needs"
done
[ -r "$keys" ] || stop "$keys is missing: install the package debian-archive-keyring"
uri=${ASSAY_AGX_URI:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' \
    2> /dev/null | grep -v security | head -n 1)}
[ -n "$uri" ] || uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
    grep -oE '(https?|file|mirror[a-z+]*):[^] ]*/debian/?( |$)' | head -n 1)
[ -n "$uri" ] || stop "apt has no Debian archive among its sources: name one in ASSAY_AGX_URI"

mkdir -p "$folder" || stop "cannot write $folder"
scratch=$(mktemp -d "$folder/.new.XXXXXX") || stop "cannot write $folder"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 3' HUP INT TERM
apt=$scratch/apt tree=$scratch/tree
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/parts" "$tree/usr"
: > "$apt/status"
for part in $suite $suite-backports; do
    echo "deb [signed-by=$keys] $uri $part main" >> "$apt/sources"
done
printf 'Package: mesa-opencl-icd mesa-drm-shim\nPin: release n=%s-backports\nPin-Priority: 990\n' \
    $suite > "$apt/preferences"
cat > "$apt/conf" << END
Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources"; Dir::Etc::sourceparts "$apt/parts";
Dir::Etc::preferences "$apt/preferences"; Dir::Etc::preferencesparts "$apt/parts";
APT::Sandbox::User ""; APT::Install-Recommends "false"; Acquire::Languages "none";
Acquire::AllowInsecureRepositories "false"; APT::Get::AllowUnauthenticated "false";
APT::Update::Error-Mode "any";
END
run_apt() {
    APT_CONFIG=$apt/conf apt-get -q -y "$@" > "$apt/log" 2>&1 ||
        stop "apt-get $1: $(grep -E '^(E|W|Err)' "$apt/log" | head -n 1)"
}
run_apt update
echo "agx: downloading 190 MB of Debian packages ($suite, $suite-backports)" >&2
run_apt install --download-only mesa-opencl-icd mesa-drm-shim ocl-icd-libopencl1 clang-22 llvm-22

for link in bin lib lib64 sbin; do # as on a merged /usr
    mkdir -p "$tree/usr/$link" && ln -s "usr/$link" "$tree/$link"
done
for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in
    binutils* | lib*san[0-9]_* | *-dev_*) continue ;;
    esac
    dpkg-deb -x "$package" "$tree" || stop "${package##*/} could not be unpacked"
done
"${CC:-cc}" -O1 -rdynamic -o "$tree/agx_driver" "$home/tools/agx_driver.c" -ldl ||
    stop "tools/agx_driver.c did not compile"
# Where harness/agx/compile.c looks, whatever the processor; the version is in the name of its compiler.
triplet=$(cd "$tree/usr/lib" && echo *-linux-gnu)
ln -s "usr/lib/$triplet" "$tree/libraries"
ln -s "$(cd "$tree" && find usr -name 'ld-linux-*' | head -n 1)" "$tree/loader"
version_of() { ls "$apt/cache/archives" | sed -nE "s/^$1_([0-9]+%3a)?([0-9.]+).*/\2/p"; }
echo "Mesa $(version_of mesa-opencl-icd), clang $(version_of clang-22)" > "$tree/version"
rm -rf "$folder/tree"
mv "$tree" "$folder/tree" || stop "cannot write $folder/tree"
echo "agx: $folder, $(du -sm "$folder/tree" | cut -f 1) MB" >&2
