#!/bin/sh
# The main job: installs what is missing, builds, shows what this machine is, checks every kernel and
# validates every variant of it, checks the included model, runs the experiments, draws their charts, writes the
# report and generates text with the model.
#
# Usage: ./run_all.sh [--full]   --full: every kernel and case under validation, whole sweeps; takes an hour
#
# A step that fails or cannot run never stops the ones after it. The last lines list what each step
# took, what failed and what was skipped, and why; the very last is for programs:
# 'run_all: N steps ok, N failed, N skipped'. Only a failed build stops everything: nothing can run without it.
#
# Data goes to stdout, messages to stderr. The exit status is the worst of all steps: a crash, then 1
# (a kernel or the model is wrong), 2 (a bad command line or a malformed file), 3 (this machine cannot
# run it), 4 (slower than the baseline), 5 (not enough data). Missing charts for want of gnuplot are
# reported and do not count. 2 is also the status when this script is called with bad arguments.
set -u
cd "$(dirname "$0")" || exit 3

quick=--quick cases=--quick # of the experiments, of validation
case "$#:${1:-}" in
    0:) ;;
    1:--full) quick='' cases=--full ;;
    *)
        printf 'run_all: usage: ./run_all.sh [--full]\n' >&2
        exit 2
        ;;
esac

# --- steps ------------------------------------------------------------------------------------

# About how long each step takes, in seconds on 2 slow cores the first time. The time left is
# estimated from these and from how this machine has compared with them so far.
if [ -n "$quick" ]; then
    plan='setup:2 build:35 info:1 check:95 validate:60 model:2 experiments:100 charts:4 report:2 text:4'
else
    plan='setup:2 build:35 info:1 check:95 validate:250 model:10 experiments:3600 charts:4 report:2 text:4'
fi
# What the steps took here the last time is a better estimate.
times=build/run_all$quick.times
if [ -f "$times" ]; then
    known=
    for entry in $plan; do
        took=$(awk -v name="${entry%:*}" '$1 == name { s = $2 } END { print s }' "$times")
        known="$known ${entry%:*}:${took:-${entry#*:}}"
    done
    plan=$known
fi
started=$(date +%s)
mkdir -p build && : > "$times.new"
status=0 # the worst so far
succeeded=0 # commands of assay
steps_ok=0 steps_failed=0 steps_skipped=0
name= outcome=ok # of the step that runs
remarks= # what failed and what was skipped, one line each
table= # the steps, one line each

end_step() {
    [ -n "$name" ] || return 0
    seconds=$(($(date +%s) - step_started))
    printf '%s %s\n' "$name" "$seconds" >> "$times.new"
    table="$table$(printf '  %-12s %5s s  %s' "$name" "$seconds" "$outcome")
"
    case $outcome in
        ok) steps_ok=$((steps_ok + 1)) ;;
        failed) steps_failed=$((steps_failed + 1)) ;;
        skipped) steps_skipped=$((steps_skipped + 1)) ;;
    esac
}

step() { # name, what is done
    end_step
    step_started=$(date +%s)
    name=$1 outcome=ok number=0 before=0 all=0 count=0
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

remark() { # text
    printf 'run_all: %s\n' "$1" >&2
    remarks="$remarks  $1
"
}

# For what this machine cannot do, and nothing else.
skip() { # why
    [ "$outcome" = failed ] || outcome=skipped
    remark "skipped $name: $1"
}

fail() { # status, why
    outcome=failed
    note_status "$1"
    remark "failed  $name: $2"
}

# A crash (a status above 5) is worse than any verdict; among verdicts the smaller number is worse.
note_status() { # status
    if [ "$1" -gt 5 ]; then
        status=$1
    elif [ "$1" -gt 0 ] && [ "$status" -le 5 ] && { [ "$status" -eq 0 ] || [ "$1" -lt "$status" ]; }; then
        status=$1
    fi
}

explain() { # status
    case $1 in
        1) echo "a kernel or the model is wrong" ;;
        2) echo "a bad command line or a malformed file" ;;
        3) echo "this machine cannot run it" ;;
        4) echo "slower than the baseline" ;;
        5) echo "not enough data" ;;
        130) echo "interrupted" ;;
        *) echo "assay crashed" ;;
    esac
}

judge() { # status, verb of assay
    if [ "$1" -eq 0 ]; then
        succeeded=$((succeeded + 1))
        return 0
    fi
    fail "$1" "assay $2 exited with $1 ($(explain "$1")); its message is above"
    return "$1"
}

try() { # arguments of assay
    ./assay "$@"
    judge $? "$1"
}

# Of the sentences of `assay claims` those that a reader must see, in at most 12 lines: what does not hold, and the counts
# of each device.
summarise() {
    failing=0 counted=0
    while IFS= read -r line; do
        case $line in
            'Does not hold: '*) failing=$((failing + 1)) && [ "$failing" -le 5 ] || continue ;;
            *' hold, '*' cannot be measured here') counted=$((counted + 1)) && [ "$counted" -le 6 ] || continue ;;
            *) continue ;;
        esac
        printf '%s\n' "$line"
    done
    echo "run_all: assay claims says of each claim why" >&2
}

# Only some devices can: a virtual GPU has no validation.
try_if_possible() { # arguments of assay
    ./assay "$@"
    code=$?
    if [ "$code" -eq 3 ]; then
        skip "this device cannot do it; its message is above"
    else
        judge "$code" "$1"
    fi
}

finish() {
    end_step
    mv "$times.new" "$times" 2> /dev/null
    printf '\nrun_all: %s commands succeeded in %s s\n%s%s' "$succeeded" \
        "$(($(date +%s) - started))" "$table" "$remarks" >&2
    [ ! -f results/report.html ] || printf 'run_all: open results/report.html\n' >&2
    [ "$status" -eq 0 ] || printf 'run_all: exit status %s: %s\n' "$status" "$(explain "$status")" >&2
    printf 'run_all: %s steps ok, %s failed, %s skipped\n' "$steps_ok" "$steps_failed" \
        "$steps_skipped" >&2
    exit "$status"
}

trap 'printf "\nrun_all: interrupted\n" >&2; exit 130' INT
trap 'exit 143' TERM

# --- what can be done without a device --------------------------------------------------------

step setup "what this machine has"
sh tools/deps.sh run || remark "missing tools: see the lines that start with deps: above"

step build "build"
# A line per file would be most of the log: warnings and errors are what matters.
make -j "$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)" all > build/make.log 2>&1
built=$?
grep -v ' build/.*\.o$' build/make.log >&2
if [ "$built" -ne 0 ]; then
    fail 3 "the compiler's message is above; nothing else can run without it"
    finish
fi

# --- what needs one ---------------------------------------------------------------------------

step info "assay info"
results= # the device's folder; empty without a device
try info && results=$(./assay info --field results)
if [ -n "$results" ] && ! mkdir -p "$results"; then
    fail 3 "the folder $results cannot be made"
    results=
fi

on_device() {
    [ -n "$results" ] && return 0
    skip "there is no device to run kernels on; assay info says why"
    return 1
}

step check "every kernel against its oracle"
on_device && try check -q --math fast --csv "$results/check.csv" # as it is timed below

step validate "kernels with each memory access watched"
on_device && try_if_possible validate -q $cases --csv "$results/validate.csv"

step model "every launch of the model against its oracle"
on_device && try model check

# Those of the same build, device and kernels stand: `assay experiment all` measures them again.
step experiments "experiments"
on_device && try experiment all $quick --resume

step charts "charts"
if ! command -v gnuplot > /dev/null; then
    skip "gnuplot is missing: install the package gnuplot-nox (brew: gnuplot), then run assay plot"
elif on_device; then
    try plot "$results"
fi

# Earlier results are reported too, so this runs without a device and after any failure.
step report "claims and report"
said=$(./assay claims)
judge $? claims && printf '%s\n' "$said" | summarise
try report

step text "text from the model"
if on_device; then
    try run -p "The old smith" -n 96 --temp 0.7 --seed 2 --echo
    try model bench -p 8,64 -n 32 -r 3
fi
finish
