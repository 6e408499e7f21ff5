#!/bin/sh
# sanitizer_samples: what compute-sanitizer says about each canary, tool by tool, as it says it.
#
# Usage: tools/sanitizer_samples.sh FOLDER [assay]
#
# Needs an NVIDIA GPU and compute-sanitizer. Writes FOLDER/<tool>.txt; the parser of reports
# (harness/check) and its tests are written from these. A worker is driven by hand: a name on
# descriptor 3, and the pipe kept open until the answer is out.
set -u
folder=${1:?usage: tools/sanitizer_samples.sh FOLDER [assay]}
assay=${2:-./assay}
canaries=$(sed -n 's/^kernel void \(canary_[a-z_]*\)(.*/\1/p' harness/check/canaries/canary.metal |
    grep -v canary_endless)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

sample() { # tool, canary
    { echo "canary/$2" && sleep 10; } |
        timeout 60 compute-sanitizer --tool "$1" --destroy-on-device-error kernel --print-limit 4 \
            "$assay" validate --worker --device cuda 3<&0 4> /dev/null > "$scratch/$1.$2" 2>&1
    echo "exit status $?" >> "$scratch/$1.$2"
}

for tool in memcheck initcheck racecheck synccheck; do
    for canary in $canaries; do
        sample "$tool" "$canary" &
    done
    wait
    for canary in $canaries; do
        printf '##### %s %s\n' "$tool" "$canary"
        cat "$scratch/$tool.$canary"
    done > "$folder/$tool.txt"
done
