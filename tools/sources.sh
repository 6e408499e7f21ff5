#!/bin/sh
# Writes OUT.c, the table of harness/device/source_hash.h: sources.sh OUT.c FILE...
set -eu
export LC_ALL=C
out=$1
shift
scratch=$out.texts
rm -rf "$scratch"
mkdir -p "$scratch"
awk -v folder="$scratch" -f "$(dirname "$0")/sources.awk" "$@" > "$scratch/list"
[ "$(wc -l < "$scratch/list")" -eq $# ] || { echo "sources.sh: a source is empty" >&2; exit 1; }
i=0
while [ $i -lt $# ]; do
    i=$((i + 1))
    echo $i
done | (cd "$scratch" && xargs cksum) | paste -d ' ' - "$scratch/list" | awk '
    BEGIN { print "#include \"harness/device/source_hash.h\"\n\nconst source_file source_files[] = {" }
    {
        includes = ""
        for (i = 5; i <= NF; i++)
            includes = includes $i " "
        printf "    {\"%s\", \"%s-%s\", \"%s\"},\n", $4, $1, $2, includes
    }
    END { print "};\nconst size_t source_file_count = sizeof source_files / sizeof *source_files;" }' > "$out.new"
rm -rf "$scratch"
cmp -s "$out.new" "$out" && touch "$out" && rm "$out.new" || mv "$out.new" "$out"
