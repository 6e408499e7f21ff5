#!/bin/sh
# deps: finds what Assay needs, installs what is missing, and says in one sentence what it could not.
#
# Usage: tools/deps.sh [PURPOSE...]   (default: run test)
#   run      what ./run_all.sh needs: compiler, make, clang, gnuplot
#   kernels  the same without gnuplot, for targets that only run kernels
#   test     what `make test` needs: the same as run, and greatest.h
#   fuzz, cross, model, double, browser, format
#            what `make fuzz`, `make test-other-arch`, `make model`, `make test-double`, the test that
#            opens the report in a browser, and `make format` need on top
#
# Debian and Ubuntu: packages by apt-get, as root or with sudo; one line says which before anything is
# installed. macOS: prints the brew line. Exit status: 0 if nothing is missing at the end, 1 otherwise;
# callers may continue with what is available.
#
# greatest.h, the test framework, is not part of this repository: a system-wide one is used if there
# is one, otherwise it goes to build/deps, with its hash verified. It has no Debian package of its
# own, so there it comes from the source package of fzy, which contains it.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)

GREATEST_DEBIAN_SHA256=4ecd1c1c1b1d2cd7f0c8b0c9d87f92030b9ef7910da3a8197076b17d13076940 # 1.3.1
GREATEST_UPSTREAM_SHA256=1292593d95c35eeccc89ffa1c91d6fe53b49f81cbf2c2b7758842b7f3186fcc2 # 1.5.0
GREATEST_UPSTREAM_URL=https://raw.githubusercontent.com/silentbicycle/greatest/v1.5.0/greatest.h
greatest=$root/build/deps/greatest.h
log=$root/build/deps/install.log
purposes=" ${*:-run test} "
system=$(uname -s)
machine=$(uname -m)
still_missing=0

say() { printf 'deps: %s\n' "$*" >&2; }
has() { command -v "$1" > /dev/null 2>&1; }
is_for() { case $purposes in *" $1 "*) return 0 ;; *) return 1 ;; esac }
for purpose in $purposes; do
    case $purpose in
        run | kernels | test | fuzz | cross | model | double | browser | format) ;;
        *)
            say "unknown purpose '$purpose': run, kernels, test, fuzz, cross, model, double, browser or format"
            exit 2
            ;;
    esac
done
missing() {
    say "$*"
    still_missing=1
}

# --- what is here -----------------------------------------------------------------------------

has_compiler() {
    set -- ${CC:-cc}
    has "$1" && echo '#include <stdio.h>' | "$@" -E -x c - > /dev/null 2>&1
}

has_clang() { sh tools/clang.sh > /dev/null; }
needs_gnuplot() { is_for run || is_for test; }

# libFuzzer comes with clang's own package only if that is the default clang.
has_fuzzer() {
    has_clang || return 1
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' |
        "$(sh tools/clang.sh)" -x c -fsanitize=fuzzer -o /dev/null - > /dev/null 2>&1
}

has_cross() {
    has "qemu-$other" && has "$other-linux-gnu-gcc" && [ -f "/usr/$other-linux-gnu/include/stdio.h" ]
}
has_browser() {
    has python3 || return 1
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        has "$name" && return 0
    done
    [ -d "/Applications/Google Chrome.app" ] || [ -d /Applications/Chromium.app ]
}
needs_python() { is_for run || is_for test; } # assay import, whose tests run there
has_pip() { python3 -m pip --version > /dev/null 2>&1; }

case $machine in
    x86_64 | amd64) other=aarch64 cross_packages='gcc-aarch64-linux-gnu libc6-dev-arm64-cross' ;;
    *) other=x86_64 cross_packages='gcc-x86-64-linux-gnu libc6-dev-amd64-cross' ;;
esac

# Foundation and an Objective-C runtime for the Metal device on Linux.
has_double() {
    [ -f /usr/include/GNUstep/Foundation/Foundation.h ] &&
        [ -f "$(gcc -print-file-name=include)/objc/objc.h" ] && has_clang
}

sha256_of() {
    if has sha256sum; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

has_greatest() {
    [ -f /usr/include/greatest.h ] && return 0
    [ -f /usr/local/include/greatest.h ] && return 0
    if has brew && [ -f "$(brew --prefix)/include/greatest.h" ]; then
        # Not on every compiler's search path, so it is copied to build/deps.
        mkdir -p build/deps && cp "$(brew --prefix)/include/greatest.h" "$greatest"
        return
    fi
    [ -f "$greatest" ] || return 1
    case $(sha256_of "$greatest") in
        "$GREATEST_DEBIAN_SHA256" | "$GREATEST_UPSTREAM_SHA256") return 0 ;;
    esac
    return 1
}

# --- packages by apt-get ----------------------------------------------------------------------

can_be_root() {
    [ "$(id -u)" = 0 ] && return 0
    has sudo && { sudo -n true 2> /dev/null || [ -t 0 ]; }
}

apt_as_root() {
    set -- DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=1 "$@"
    if [ "$(id -u)" = 0 ]; then env "$@"; else sudo env "$@"; fi >> "$log" 2>&1 < /dev/null
}

find_fuzzer_package() {
    name=$(sh tools/clang.sh || sh tools/clang.sh package)
    case $name in
        *clang-*[0-9]) echo "libclang-rt-${name##*clang-}-dev" ;;
        *) echo libclang-rt-dev ;;
    esac
}

list_missing_packages() {
    has_compiler || echo gcc libc6-dev
    has make || echo make
    has_clang || sh tools/clang.sh package
    needs_gnuplot && ! has gnuplot && echo gnuplot-nox
    is_for fuzz && ! has_fuzzer && find_fuzzer_package
    is_for cross && ! has_cross && echo qemu-user "$cross_packages"
    needs_python && ! has python3 && echo python3
    is_for model && ! has_pip && echo python3-pip
    is_for double && ! has_double && echo libgnustep-base-dev gcc
    is_for browser && ! has_browser && echo chromium python3
    is_for format && ! sh tools/format.sh find > /dev/null && ! has_pip && echo python3-pip
    return 0
}

install_packages() {
    packages=$(list_missing_packages | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    if ! can_be_root; then
        say "cannot install packages: not root, and no sudo without a password; as root, run:" \
            "apt-get install $packages"
        return 1
    fi
    say "installing for${purposes% }: $packages(log: build/deps/install.log)"
    mkdir -p build/deps && : > "$log" || return 1
    apt_as_root update
    if ! grep -Eq '^(Get|Hit):' "$log"; then
        say "apt-get reaches no package source: $(grep '^[EW]:' "$log" | head -n 1)"
        return 1
    fi
    # Asked again, because only now is it known which clang is packaged. Installed one by one, so that
    # a package that fails does not keep the others away.
    for package in $(list_missing_packages); do
        apt_as_root install --no-install-recommends "$package" ||
            say "apt-get could not install $package: $(grep '^E:' "$log" | tail -n 1)"
    done
}

# --- greatest.h -------------------------------------------------------------------------------

keep_greatest() { # file, sha256, where it came from
    if [ "$(sha256_of "$1")" != "$2" ]; then
        say "greatest.h from $3 does not have the expected sha256: not used"
        return 1
    fi
    mkdir -p build/deps && cp "$1" "$greatest.$$" && mv "$greatest.$$" "$greatest" &&
        say "greatest.h from $3 is in build/deps"
}

# The machine's package sources, as sources of source packages, in a folder of ours. apt gets its
# lists and caches there too: the system's own settings and state are not touched.
copy_apt_sources() { # folder
    mkdir -p "$1/parts" "$1/lists/partial" "$1/cache/archives/partial" || return 1
    eval "$(apt-config shell list Dir::Etc::SourceList/f parts Dir::Etc::SourceParts/d)"
    for file in "$list" "$parts"/*.list; do
        [ -f "$file" ] && sed -n 's/^[[:space:]]*deb\([[:space:]]\)/deb-src\1/p' "$file"
    done > "$1/parts/assay.list"
    for file in "$parts"/*.sources; do
        [ -f "$file" ] && sed 's/^[Tt]ypes:.*/Types: deb-src/' "$file" > "$1/parts/${file##*/}"
    done
    return 0
}

fetch_greatest_by_apt() {
    copy_apt_sources "$scratch" || return 1
    (
        cd "$scratch" || exit 1
        set -- -q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$scratch/parts" \
            -o "Dir::State::Lists=$scratch/lists" -o "Dir::Cache=$scratch/cache" \
            -o APT::Sandbox::User=root -o Acquire::Retries=1 -o Acquire::http::Timeout=20
        # the status of update is ignored: one unreachable source of many is no reason to stop
        apt-get "$@" update > apt.log 2>&1 < /dev/null
        if ! apt-get "$@" source --download-only fzy >> apt.log 2>&1 < /dev/null; then
            say "apt-get has no source package fzy: $(grep '^[EW]:' apt.log | head -n 1)"
            exit 1
        fi
        tarball=$(ls fzy_*.orig.tar.*z | head -n 1)
        member=$(tar -tf "$tarball" | grep 'deps/greatest/greatest\.h$') || exit 1
        tar -xOf "$tarball" "$member" > greatest.h
    ) || return 1
    keep_greatest "$scratch/greatest.h" "$GREATEST_DEBIAN_SHA256" "source package fzy"
}

fetch_greatest_by_curl() {
    curl -fsSL --connect-timeout 15 --retry 1 -o "$scratch/greatest.h" "$GREATEST_UPSTREAM_URL" \
        2> /dev/null || return 1
    keep_greatest "$scratch/greatest.h" "$GREATEST_UPSTREAM_SHA256" "its author's v1.5.0"
}

fetch_greatest() {
    say "fetching greatest.h, the test framework, into build/deps"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-deps.XXXXXX") || return 1
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    if [ "$system" = Linux ] && has apt-get; then
        fetch_greatest_by_apt && return 0
    fi
    has curl && fetch_greatest_by_curl
}

# --- all together -----------------------------------------------------------------------------

if [ "$system" = Linux ] && has apt-get; then
    install_packages
fi
if is_for test && ! has_greatest; then
    fetch_greatest
fi

if [ "$system" = Darwin ]; then
    { has_compiler && has make && has_clang; } ||
        missing "the C compiler or make is missing: run  xcode-select --install"
    needs_gnuplot && ! has gnuplot &&
        missing "gnuplot is missing (charts are drawn with it): run  brew install gnuplot"
else
    has_compiler || missing "a C compiler is missing: install the packages gcc and libc6-dev"
    has make || missing "make is missing: install the package make"
    has_clang || missing "clang 16 or newer is missing (the software device compiles kernels with" \
        "it): install the package $(sh tools/clang.sh package), or name one in ASSAY_CLANG"
    needs_gnuplot && ! has gnuplot &&
        missing "gnuplot is missing (charts are drawn with it): install the package gnuplot-nox"
fi
is_for test && ! has_greatest &&
    missing "greatest.h is missing (only the tests need it) and could not be fetched: put version" \
        "1.3.1 or 1.5.0 in build/deps"
is_for fuzz && ! has_fuzzer &&
    missing "clang's libFuzzer is missing: install the package $(find_fuzzer_package)"
is_for cross && ! has_cross &&
    missing "the $other cross compiler or qemu is missing: install the packages qemu-user" \
        "$cross_packages"
needs_python && ! has python3 &&
    missing "python3 is missing (assay import reads Python files with it): install the package" \
        "python3, or run  brew install python3"
is_for model && ! has_pip && missing "pip is missing: install the package python3-pip"
is_for double && ! has_double &&
    missing "GNUstep's Foundation is missing (the Metal device on Linux needs it): install the" \
        "package libgnustep-base-dev"
is_for browser && ! has_browser &&
    missing "Chromium or python3 is missing (the report is opened in it; without it that test is" \
        "skipped): install the packages chromium and python3"
exit "$still_missing"
