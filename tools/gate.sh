#!/bin/sh
# gate.sh PROJECT DEVICE OUT [BASE [MIN_EFFECT]]: what action.yml runs, for any CI that has assay in PATH.
#
# Lints, checks and validates the kernels of a project and, where BASE is given (the same folder as it was
# before the change), says what has changed of what is proved, and times both interleaved, unless MIN_EFFECT is
# none. OUT gets JUnit and SARIF files, the rows of bench, and comment.md: a table for a pull request, the
# changes and what failed, which also goes into the job's summary on GitHub. Each verb runs whatever the ones
# before found. The exit status is the highest of theirs; that changes or bench cannot tell (5) does not count.
set -u
[ $# -ge 3 ] || { echo 'usage: gate.sh PROJECT DEVICE OUT [BASE [MIN_EFFECT]]' >&2; exit 2; }
project=$1 device=$2 out=$3 base=${4:-} effect=${5:-5}
worst=0 comment=$out/comment.md
mkdir -p "$out" && rm -f "$out/bench.md"
failures=$out/failures.txt
printf '### Assay: `%s` on %s\n\n| | result | |\n|---|---|---|\n' "$project" "$device" > "$comment"
: > "$failures"

row() { # VERB RESULT TEXT
    printf '| %s | %s | %s |\n' "$1" "$2" "$(printf '%s' "$3" | tr '|\n' '/ ')" >> "$comment"
}

# The errors of lint, and what it could not lint; of check and validate the first failed case of each kernel.
list_failures() { # LOG
    awk -v here="$(pwd -P)/" '
        /^[^:]+:[0-9]+:[0-9]+: error: / || /: warning: compiled, not linted: / || /^  [^ \/]+\/[^ ]+: / {
            sub(/^ */, "")
            while (i = index($0, here))
                $0 = substr($0, 1, i - 1) substr($0, i + length(here))
            print
        }' "$1" >> "$failures"
}

attempt() { # VERB OPTION...
    status=0
    assay "$@" > "$out/$1.log" 2>&1 || status=$?
    cat "$out/$1.log"
    result=ok
    ! grep -q ': warning: compiled, not linted: ' "$out/$1.log" || result='**not linted**'
    [ $status -eq 0 ] || result="**failed** ($status)"
    [ "$result" = ok ] || list_failures "$out/$1.log"
    row "$1" "$result" "$(grep -E '^[0-9]+ passed|^assay: |, [0-9]+ errors?, ' "$out/$1.log" | tail -n 1)"
    [ $status -le $worst ] || worst=$status
}

against_base() { # VERB OPTION...
    status=0
    mkdir -p "$base" # a pull request that adds the project has no such folder in its base
    assay "$@" > "$out/$1.md" 2> "$out/$1.log" || status=$?
    cat "$out/$1.md" "$out/$1.log"
    case $1$status in
        *0) result=ok ;;
        changes1) result='**proves less**' ;;
        *4) result='**slower**' ;;
        *5) result='cannot tell' ;;
        *) result="**failed** ($status)" ;;
    esac
    row "$1" "$result" "$(grep -hE '^[0-9]+ same, |; compared: |^assay: ' "$out/$1.md" "$out/$1.log" | tail -n 1)"
    [ $status -eq 5 ] || [ $status -le $worst ] || worst=$status
}

[ -z "$base" ] || against_base changes "$base" -C "$project" --device "$device" --md \
    --junit "$out/changes.xml" --sarif "$out/changes.sarif"
attempt lint -C "$project" --brief --sarif "$out/lint.sarif"
attempt check -C "$project" --device "$device" --quiet --junit "$out/check.xml"
attempt validate -C "$project" --device "$device" --quick --quiet --junit "$out/validate.xml" \
    --sarif "$out/validate.sarif"
[ -z "$base" ] || [ "$effect" = none ] || against_base bench -C "$project" --device "$device" \
    --out "$out/bench.csv" --baseline "$base" --min-effect "$effect" --md

[ -z "$base" ] || ! grep -q '^- ' "$out/changes.md" || { echo && sed '$d' "$out/changes.md"; } >> "$comment"
[ ! -s "$failures" ] || printf '\n```\n%s\n```\n' "$(awk '!seen[$0]++' "$failures" | head -n 40)" >> "$comment"
[ ! -f "$out/bench.md" ] || { echo && cat "$out/bench.md"; } >> "$comment"
rm "$failures"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$comment" >> "$GITHUB_STEP_SUMMARY"
exit $worst
