#!/bin/sh
# formula.sh VERSION TARBALL URL: the Homebrew formula of a release, to stdout.
set -eu
sum=$( (sha256sum "$2" 2> /dev/null || shasum -a 256 "$2") | cut -d' ' -f1)
sed -e '/^# template:/d' -e "s|@VERSION@|$1|g" -e "s|@URL@|$3|g" -e "s|@SHA256@|$sum|g" "$(dirname "$0")/assay.rb.in"
