#!/bin/sh
# Writes OUT.c, the table of harness/device/source_hash.h: sources.sh OUT.c FILE...
set -eu
export LC_ALL=C
out=$1
shift
scratch=$out.texts
rm -rf "$scratch"
mkdir -p "$scratch"
awk -v folder="$scratch" -f "$(dirname "$0")/sources.awk" "$@"
(cd "$scratch" && cksum ./*) | awk '
    BEGIN { print "#include \"harness/device/source_hash.h\"\n\nconst built_part built_parts[] = {" }
    { gsub(/%/, "/", $3); printf "    {\"%s\", \"%s-%s\"},\n", substr($3, 3), $1, $2 }
    END { print "};\nconst size_t built_part_count = sizeof built_parts / sizeof *built_parts;" }' > "$out.new"
rm -rf "$scratch"
cmp -s "$out.new" "$out" && touch "$out" && rm "$out.new" || mv "$out.new" "$out"
