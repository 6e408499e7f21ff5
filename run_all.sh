#!/bin/sh
# The main job: brings what is missing, builds, says what this machine is, checks and validates every
# kernel, checks the model that ships, runs the experiments, draws their charts, writes the report
# and lets the model write.
#
# Usage: ./run_all.sh [--full]   --full: every case under validation, whole sweeps; it takes an hour
#
# Data goes to stdout, talk to stderr. The exit status is that of the step that failed: 1 a kernel
# or the model is wrong, 2 this script was called wrongly, 3 this machine cannot run it (README.md).
set -u
cd "$(dirname "$0")" || exit 3

stop() { # status, sentence
    printf 'run_all: %s\n' "$2" >&2
    exit "$1"
}

quick=--quick
case "$#:${1:-}" in
    0:) ;;
    1:--full) quick= ;;
    *) stop 2 "usage: ./run_all.sh [--full]" ;;
esac

# About how long each step takes, in seconds on 2 slow cores the first time: what is left is told
# from these and from how this machine has kept to them so far.
if [ -n "$quick" ]; then
    plan='setup:5 build:60 info:1 check:60 validate:120 model:10 experiments:120 report:3 text:10'
else
    plan='setup:5 build:60 info:1 check:60 validate:180 model:10 experiments:3600 report:3 text:10'
fi
started=$(date +%s)

step() { # name, what is done
    number=0 before=0 all=0 count=0
    for entry in $plan; do
        count=$((count + 1))
        [ "${entry%:*}" = "$1" ] && number=$count before=$all
        all=$((all + ${entry#*:}))
    done
    elapsed=$(($(date +%s) - started))
    left=$((all - before))
    [ "$before" -gt 10 ] && [ "$elapsed" -gt 0 ] && left=$((left * elapsed / before))
    printf '\n== %s of %s: %s (about %s s left)\n' "$number" "$count" "$2" "$left" >&2
}

try() { # arguments of assay: must succeed
    ./assay "$@"
    status=$?
    [ "$status" -eq 0 ] || stop "$status" "assay $1 exited with $status: what is above says why"
}

step setup "what this machine has"
sh tools/deps.sh || printf 'run_all: going on with what there is\n' >&2
command -v make > /dev/null || stop 3 "make is missing: install the package make"

step build "build"
make -j "$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)" all >&2 ||
    stop 3 "the build failed: the compiler's message is above"

step info "assay info"
try info
results=$(./assay info | sed -n 's/^results  *//p')
mkdir -p "$results" || stop 3 "the folder $results cannot be made"

step check "every kernel against its oracle"
try check --csv "$results/check.csv"

step validate "every access of every kernel watched"
try validate $quick --csv "$results/validate.csv"

step model "every launch of the model against its oracle"
try model check

step experiments "experiments and their charts"
try experiment all $quick
try plot "$results"

step report "claims and report"
try claims
try report

step text "text from the model"
try run -p "The old smith" -n 96 --temp 0.7 --seed 2 --echo
try model bench -p 8,64 -n 32 -r 3
printf '\nrun_all: done in %s s; open results/report.html\n' "$(($(date +%s) - started))" >&2
