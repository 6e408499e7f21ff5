#!/bin/sh
# gate.sh PROJECT DEVICE OUT [BASE [MIN_EFFECT]]: what action.yml runs, for any CI that has assay in PATH.
#
# Lints, checks and validates the kernels of a project and, where BASE is given (the same folder as it was
# before the change), times both interleaved. OUT gets JUnit and SARIF files, the rows of bench, and
# comment.md: a table for a pull request, which also goes into the job's summary on GitHub. Each verb
# runs whatever the ones before found. The exit status is the highest of theirs; that bench cannot tell
# (5) does not count.
set -u
project=$1 device=$2 out=$3 base=${4:-} effect=${5:-5}
worst=0 comment=$out/comment.md
mkdir -p "$out"
printf '### Assay: `%s` on %s\n\n| | result | |\n|---|---|---|\n' "$project" "$device" > "$comment"

row() { # VERB RESULT TEXT
    printf '| %s | %s | %s |\n' "$1" "$2" "$(printf '%s' "$3" | tr '|\n' '/ ')" >> "$comment"
}

attempt() { # VERB OPTION...
    status=0
    assay "$@" > "$out/$1.log" 2>&1 || status=$?
    cat "$out/$1.log"
    result=ok
    [ $status -eq 0 ] || result="**failed** ($status)"
    row "$1" "$result" "$(grep -E '^[0-9]+ passed|^assay: |, [0-9]+ errors?, ' "$out/$1.log" | tail -n 1)"
    [ $status -le $worst ] || worst=$status
}

attempt lint -C "$project" --brief --sarif "$out/lint.sarif"
attempt check -C "$project" --device "$device" --quiet --junit "$out/check.xml"
attempt validate -C "$project" --device "$device" --quick --quiet --junit "$out/validate.xml" \
    --sarif "$out/validate.sarif"

if [ -n "$base" ]; then
    mkdir -p "$base" # a pull request that adds the project has no such folder in its base
    status=0
    assay bench -C "$project" --device "$device" --out "$out/bench.csv" --baseline "$base" \
        --min-effect "$effect" --md > "$out/bench.md" 2> "$out/bench.log" || status=$?
    cat "$out/bench.md" "$out/bench.log"
    case $status in
        0) result=ok ;;
        4) result='**slower**' ;;
        5) result='cannot tell' ;;
        *) result="**failed** ($status)" ;;
    esac
    row bench "$result" "$(grep -E '^[0-9]+ same, |^assay: ' "$out/bench.md" "$out/bench.log" -h | tail -n 1)"
    [ $status -eq 5 ] || [ $status -le $worst ] || worst=$status
    printf '\n' >> "$comment"
    cat "$out/bench.md" >> "$comment"
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >> "$GITHUB_STEP_SUMMARY"
exit $worst
