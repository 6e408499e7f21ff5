#!/bin/sh
# The main job: brings what is missing, builds, says what this machine is, checks and validates every
# kernel, then checks the model that ships with the project, lets it write and says how fast.
# Data goes to stdout, talk to stderr. The exit status is that of the step that failed: 1 a kernel
# is wrong, 3 this machine cannot run it (see README.md).
set -u
cd "$(dirname "$0")" || exit 3

step() { printf '\n== %s\n' "$*" >&2; }
stop() { # status, sentence
    printf 'run_all: %s\n' "$2" >&2
    exit "$1"
}
try() { # arguments of assay: one step, which must succeed
    step "assay $*"
    ./assay "$@"
    status=$?
    [ "$status" -eq 0 ] || stop "$status" "assay $1 exited with $status: what is above says why"
}

step "what this machine has"
sh tools/deps.sh || printf 'run_all: going on with what there is\n' >&2
command -v make > /dev/null || stop 3 "make is missing: install the package make"

step "build"
make -j "$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)" all >&2 ||
    stop 3 "the build failed: the compiler's message is above"

try info
try check
try validate
try model check
try run -p "The old smith" -n 96 --temp 0.7 --seed 2 --echo
try model bench -p 8,64 -n 32 -r 3
step "done: every kernel agrees with its oracle, none touches what it should not, and the model runs"
