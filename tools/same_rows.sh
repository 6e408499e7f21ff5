#!/bin/sh
# same_rows: `assay check` on two devices must give the same rows, to the last digit. Kernels whose threads work alone with
# eight floats at a time (kernels/eight.h) add them in another order on a CPU,
# and those that load rows early (LOADS_AHEAD of kernels/prefetch.h) have another path on Metal; matrices of bfloats are matrices of floats
# in older languages (HAS_BFLOATS), with another order of sums: of these the verdicts must be the same.
#
# Usage: tools/same_rows.sh PROGRAM DEVICE DEVICE [FILTER...]
set -u
program=$1 first=$2 second=$3
shift 3
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-rows.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
for device in "$first" "$second"; do
    "$program" check --device "$device" --csv "$scratch/$device.csv" "$@" > "$scratch/log" || {
        tail -n 20 "$scratch/log"
        exit 1
    }
    # what a row was made of names its device
    sed -e '/^#/d' -e 's/ device:[a-z]*=[0-9a-f]*//' "$scratch/$device.csv" |
        awk -F, '$2 ~ /(matvec|decode_attention).*_per_thread$|attention_spread(_f16)?$|^attention_ranges(_f16)?$|^attention_merge$|bf16.*_matrix$/ { print $1, $2, $3, $4, $5, $6, $7, $8; next } { print }' \
            > "$scratch/$device.rows"
done
if ! cmp "$scratch/$first.rows" "$scratch/$second.rows"; then
    diff "$scratch/$first.rows" "$scratch/$second.rows" | head -n 20
    exit 1
fi
printf '%d rows of check are the same on %s and %s\n' \
    $(($(wc -l < "$scratch/$first.rows") - 1)) "$first" "$second"
