#!/bin/sh
# The main job: brings what is missing, builds, says what this machine is, checks and validates every
# kernel.
# Data goes to stdout, talk to stderr. The exit status is that of the step that failed: 1 a kernel
# is wrong, 3 this machine cannot run it (see README.md).
set -u
cd "$(dirname "$0")" || exit 3

step() { printf '\n== %s\n' "$*" >&2; }
stop() { # status, sentence
    printf 'run_all: %s\n' "$2" >&2
    exit "$1"
}

step "what this machine has"
sh tools/deps.sh || printf 'run_all: going on with what there is\n' >&2
command -v make > /dev/null || stop 3 "make is missing: install the package make"

step "build"
make -j "$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)" all >&2 ||
    stop 3 "the build failed: the compiler's message is above"

step "assay info"
./assay info || stop $? "assay info failed: its message is above"

step "assay check"
./assay check
status=$?
[ "$status" -eq 0 ] || stop "$status" "assay check exited with $status: the rows above say why"

step "assay validate"
./assay validate
status=$?
[ "$status" -eq 0 ] || stop "$status" "assay validate exited with $status: the rows above say why"
step "done: every kernel agrees with its oracle, and none touches what it should not"
