#!/bin/sh
# rivals: the speed of models beside llama.cpp's: the same files, one program after the other, in one CSV.
#
# Usage: tools/rivals.sh OUT.csv MODEL.gguf...
#   ASSAY              our program (default ./assay)
#   ASSAY_LLAMA_BENCH  llama.cpp's llama-bench (default: the one on the path)
#   ASSAY_TESTS        options for both (default -p 8,64,512 -n 64 -r 5)
#   ASSAY_DEPTHS       context depths to generate 32 tokens at, besides (default 1900; RWKV has none)
#
# llama-bench waits for the logits of each token; so does `assay model bench --wait`, and those two are compared. Greedy
# decoding, which does not wait, has columns of its own. A model that llama-bench cannot read has none of its numbers.
#
# Exit status: 0; 1 our program failed; 2 bad usage; 3 there is no llama-bench.
set -u
cd "$(dirname "$0")/.." || exit 3
assay=${ASSAY:-./assay}
rival=${ASSAY_LLAMA_BENCH:-llama-bench}
tests=${ASSAY_TESTS:--p 8,64,512 -n 64 -r 5}
depths=${ASSAY_DEPTHS-1900}
[ $# -gt 1 ] || { echo "usage: tools/rivals.sh OUT.csv MODEL.gguf..." >&2; exit 2; }
out=$1
shift
command -v "$rival" > /dev/null || { echo "rivals: there is no $rival: say where it is with ASSAY_LLAMA_BENCH" >&2; exit 3; }
scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT

# Appends the rows of a command to a file whose head is there already, all or none.
append() { # file, command...
    to=$1
    shift
    "$@" > "$scratch/part" 2> "$scratch/log" || { tail -n 2 "$scratch/log" >&2; return 1; }
    if [ -f "$scratch/$to" ]; then
        sed 1d "$scratch/part" >> "$scratch/$to"
    else
        cp "$scratch/part" "$scratch/$to"
    fi
}

run_tests() { # model, options...
    model=$1
    shift
    rm -f "$scratch"/kept*
    append greedy.csv "$assay" model bench -m "$model" "$@" -o csv --csv "$scratch/kept.csv" &&
        append origins.csv sed '/^# /d' "$scratch/kept.csv" &&
        append waiting.csv "$assay" model bench -m "$model" "$@" --wait -o csv || exit 1
    append llama.csv "$rival" -m "$model" "$@" -o csv || echo "rivals: llama-bench does not run $model" >&2
}

# After each model, so that a run whose time ends has those before.
write_rows() {
    {
        sed -n '/^# /p; /^# /!q' "$scratch/kept.csv"
        awk -v folder="$scratch" -f tools/csv.awk -f tools/rivals.awk
    } > "$scratch/all" && cp "$scratch/all" "$out.part" && mv "$out.part" "$out"
}

for file in "$@"; do
    run_tests "$file" $tests
    case $file:$depths in
        *rwkv* | *:) ;;
        *) run_tests "$file" -p 0 -n 32 -r 3 -d "$depths" ;;
    esac
    write_rows || exit 1
done
sed -n 's/^# conclusion: /rivals: /p' "$out" >&2
