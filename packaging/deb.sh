#!/bin/sh
# deb.sh VERSION BUILD: a Debian package of what `make install` installs, in BUILD.
set -eu
version=$1 build=$2
root=$build/deb/root
maintainer="${DEBFULLNAME:-The Assay authors} <${DEBEMAIL:-assay@example.org}>"
docs=$root/usr/share/doc/assay
arch=$(dpkg --print-architecture)
package=$build/assay_${version}_$arch.deb

rm -rf "$build/deb"
mkdir -p "$build/deb/debian" "$docs" "$root/DEBIAN"
make install BUILD="$build" DESTDIR="$root" PREFIX=/usr ZSH_DIR=zsh/vendor-completions > /dev/null
rm "$root/usr/share/assay/installed" # dpkg has its own list
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/assay"
gzip -9n "$root"/usr/share/man/man1/*.1 "$root"/usr/share/man/man5/*.5

date=$(git log -1 --format=%ct 2> /dev/null || date +%s)
{
    printf 'assay (%s) unstable; urgency=medium\n\n  * See the CHANGELOG.md of the sources.\n\n' "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(date -R -u -d "@$date")"
} | gzip -9n > "$docs/changelog.gz"
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
    printf 'Upstream-Name: assay\n\nFiles: *\nCopyright: %s\nLicense: Expat\n' \
        "$(sed -n 's/^Copyright (c) //p' LICENSE)"
    sed -e '1,/^Copyright/d' -e '/./!d' -e 's/^/ /' LICENSE
} > "$docs/copyright"

printf 'Source: assay\n' > "$build/deb/debian/control"
program=$(cd "$root/usr/bin" && pwd)/assay
depends=$(cd "$build/deb" && dpkg-shlibdeps -O "$program" 2> /dev/null | sed -n 's/^shlibs:Depends=//p')
cat > "$root/DEBIAN/control" <<END
Package: assay
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk "$root" | cut -f1)
Depends: $depends
Recommends: clang (>= 1:16) | clang-19 | clang-18 | clang-17 | clang-16, gcc | c-compiler
Suggests: gnuplot-nox
Section: devel
Priority: optional
Description: checks, validates and times Metal compute kernels
 Assay checks every output of a Metal compute kernel against a reference in
 double precision, watches every memory access, times kernels with samples
 and significance tests, and runs whole language models on them. One kernel
 source runs on Apple GPUs, on NVIDIA GPUs and, without any GPU, on a
 software Metal device.
END
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum > DEBIAN/md5sums)
chmod -R u=rwX,go=rX "$root"
dpkg-deb --root-owner-group --build "$root" "$package"
if command -v lintian > /dev/null; then
    lintian --tag-display-limit 0 --fail-on warning,error "$package"
fi
