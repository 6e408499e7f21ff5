#!/bin/sh
# Measures a device whole: every kernel checked and validated, the choices of kernels, the times of kernels, the
# experiments, and whole models. Everything in the folder of results is then of one commit. The ops of a token of
# larger models are in folders beside it, DIR-1b and DIR-7b.
#
# Usage: tools/measure.sh [--out DIR] [--seconds N] [--quick|--smoke] [--dirty] [--plan]
#
#   --out DIR    the folder of the device (default results/<device>)
#   --seconds N  stop before this many seconds are over; the next call goes on from there
#   --quick      shorter experiments, and kernels chosen for one model: about 17 minutes on an H200 instead of 50
#   --smoke      the same parts with almost nothing in them, to try the script
#   --dirty      go on although files differ from the commit; all rows say so
#   --plan       only print the parts that are left
#
# New files go to DIR/measuring, with the list of parts that are done; they take the place of those in DIR when all
# parts are. DIR may be copied to another machine in between. A run of another commit is put aside, never continued.
# A copy of the sources without .git needs ASSAY_COMMIT. Charts are drawn later, by `assay plot DIR`.
#
# Exit status: 0 all parts are done; 1 a kernel or a model is wrong; 2 bad usage, or a tree with changes; 3 this
# machine cannot do it; 5 parts are left.
set -u
cd "$(dirname "$0")/.." || exit 3
started=$(date +%s)
assay=${ASSAY:-./assay}
models=${ASSAY_MODELS:-build/models} # synthetic models are made here
out= seconds=0 smoke= quick= dirty= only_plan=

fail() { # status, text
    printf 'measure: %s\n' "$2" >&2
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail 2 "--out needs a folder"; out=$2; shift ;;
        --seconds) [ $# -gt 1 ] || fail 2 "--seconds needs a number"; seconds=$2; shift ;;
        --quick) quick=--quick ;;
        --smoke) smoke=yes quick=--smoke ;;
        --dirty) dirty=yes ;;
        --plan) only_plan=yes ;;
        *) fail 2 "usage: tools/measure.sh [--out DIR] [--seconds N] [--quick|--smoke] [--dirty] [--plan]" ;;
    esac
    shift
done
case $seconds in '' | *[!0-9]*) fail 2 "--seconds takes a whole number, not '$seconds'" ;; esac
[ -x "$assay" ] || fail 3 "there is no $assay: run make first"

# --- which commit, which folder ---------------------------------------------------------------------------------

commit=${ASSAY_COMMIT:-}
if [ -z "$commit" ]; then
    commit=$(git rev-parse --short=12 HEAD 2> /dev/null) ||
        fail 2 "this is not a working tree of git: say which commit it is with ASSAY_COMMIT"
    [ -z "$(git status --porcelain -uno)" ] || commit=$commit-dirty
fi
case $commit in
    *-dirty) [ -n "$dirty" ] || fail 2 "files differ from the commit: commit them first, or use --dirty to try things out" ;;
esac
[ -z "$smoke" ] || [ -n "$out" ] || fail 2 "--smoke measures nothing that may replace results: say with --out where to put it"
[ -n "$out" ] || out=$("$assay" info --field results) || fail 3 "assay info names no folder of results: use --out DIR"
work=$out/measuring
state=$work/state
mkdir -p "$out" || fail 3 "cannot make the folder $out"
if [ -d "$work" ]; then
    of=$(sed -n 's/^commit //p' "$state" 2> /dev/null)
    if [ "$of" != "$commit $quick" ]; then
        of=${of%% *}
        printf 'measure: an unfinished run of commit %s is put aside\n' "${of:-unknown}" >&2
        mv "$work" "$out/measuring-${of:-unknown}-$started" || exit 3
    fi
fi
if [ ! -d "$work" ]; then
    mkdir -p "$work" && printf 'commit %s %s\n' "$commit" "$quick" > "$state" || fail 3 "cannot write to $work"
    [ ! -f "$out/bench.history.csv" ] || cp "$out/bench.history.csv" "$work/"
fi
ASSAY_TUNED=off # until the part `tune` has made a table
[ ! -f "$work/tuned.csv" ] || ASSAY_TUNED=$work/tuned.csv
ASSAY_COMMIT=$commit
export ASSAY_TUNED ASSAY_COMMIT

# --- the parts: name and seconds, as on an H200 with its 16 cores and an empty cache ------------------------------
# Whole models first: if the time ends early, theirs are the numbers that people ask for.

experiments=$("$assay" experiment | awk '{ print $1 }')
tuning=tune-smollm-135m:150 # quick: the shape with the most to choose
[ -n "$quick" ] || tuning="$tuning tune-1b:600 tune-7b:600 tune-rwkv7-0.1b:300"
plan="models:15 check-fast:85 $tuning
model-smollm-135m:10 model-1b:20 model-7b:45 model-rwkv7-0.1b:10 formats-7b:60 rivals:110 trace:10"
for name in $experiments; do
    case $name in
        matvec_ladder) cost=115 ;;
        batch_scaling | fusion) cost=70 ;;
        optimisation_stack | roofline) cost=40 ;;
        sensitivity) cost=30 ;;
        bandwidth | dispatch_overhead | prefill) cost=25 ;;
        *) cost=15 ;;
    esac
    [ -z "$quick" ] || cost=8
    plan="$plan experiment-$name:$cost"
done
plan="$plan validate:150 token-1b:20 token-7b:70
bench-matvec:120 bench-tokens:75 bench-attention:70 bench-other:20 check-relaxed:65 check-safe:40"

is_done() { # part
    grep -q "^done $1 " "$state"
}

left=
total=0
for entry in $plan; do
    is_done "${entry%:*}" && continue
    left="$left $entry"
    total=$((total + ${entry#*:}))
done
printf 'measure: commit %s, into %s; about %s s left:%s\n' "$commit" "$out" "$total" "${left:- nothing}" >&2
[ -z "$only_plan" ] || exit 0

# --- what each part does ----------------------------------------------------------------------------------------

shapes=smollm-135m,1b,7b,rwkv7-0.1b
cache=cold
budget=0.3 # seconds of samples of a kernel
repeat=5   # of a test of a model beside its rival
[ -z "$quick" ] || budget=0.15 repeat=3
if [ -n "$smoke" ]; then
    cache=warm
    shapes=tiny,rwkv7-tiny
fi

make_model() { # shape, type (default q4_0)
    mkdir -p "$models"
    type=${2:-q4_0}
    [ -f "$models/$1-$type.gguf" ] || "$assay" model synth "$1" "$models/$1-$type.gguf" --type "$type"
}

make_models() { # side by side: each keeps only one core busy
    made=
    for shape in $(echo $shapes | tr ',' ' '); do
        make_model "$shape" &
        made="$made $!"
    done
    for process in $made; do
        wait "$process" || return
    done
}

find_model() { # shape: itself, or the tiny one of its family
    case $smoke:$1 in
        yes:rwkv7*) echo "$models/rwkv7-tiny-q4_0.gguf" ;;
        yes:*) echo "$models/tiny-q4_0.gguf" ;;
        *) echo "$models/$1-q4_0.gguf" ;;
    esac
}

# The only place that knows how kernels are chosen.
tune() { # shape
    "$assay" tune -m "$(find_model "$1")" --out "$work/tuned.csv" ${smoke:+--list} ${quick:+--budget 0.5}
}

check() { # math mode; rows are kept of the one that models run in
    if [ "$1" = fast ]; then
        "$assay" check --math fast --quiet --csv "$work/check.csv" ${smoke:+rmsnorm}
    else
        "$assay" check --math "$1" --quiet ${smoke:+rmsnorm}
    fi
}

bench() { # arguments of bench
    "$assay" bench --resume --out "$work/bench.csv" --cache "$cache" --budget $budget "$@"
}

bench_model() { # shape
    model=$(find_model "$1")
    prompts=8,64,512 tokens=128 more=32 depth=0,512,1900
    [ -z "$smoke" ] || { prompts=8; tokens=4; more=2; depth=16; }
    "$assay" model bench -m "$model" -p $prompts -n $tokens --csv "$work/model_bench.csv" &&
        "$assay" model bench -m "$model" -p 0 -n $more -d $depth --csv "$work/model_bench.csv" || return
    case "$1" in
        1b | 7b) [ -n "$smoke" ] || for kv in f32 f16; do
            "$assay" model bench -m "$model" -p 0 -n $more -d 4096,16384,32768 --kv $kv --csv "$work/model_bench.csv" || return
        done ;;
    esac
}

# One token of a model in the other formats. The files are large: each is gone before the next is made.
bench_formats() { # shape
    types="q8_0 q4_k q5_k q6_k f16" tokens=32
    [ -z "$smoke" ] || { set -- tiny; types=q8_0; tokens=2; }
    for type in $types; do
        had=
        [ ! -f "$models/$1-$type.gguf" ] || had=yes
        make_model "$1" $type &&
            "$assay" model bench -m "$models/$1-$type.gguf" -p 0 -n $tokens --csv "$work/model_bench.csv" || return
        [ -n "$had" ] || rm -f "$models/$1-$type.gguf"
    done
}

# The same models and matrices, side by side with what else is installed. ASSAY_GGML: llama.cpp's ggml-metal.metal;
# ASSAY_LLAMA_BENCH: its llama-bench, if it is not on the path.
bench_rivals() {
    if [ -n "${ASSAY_GGML:-}" ]; then
        "$assay" bench matvec --format q4_0 --variant $one --batch 1 --shape $big --cache cold --budget $budget \
            --out "$work/against.csv" --launch examples/ggml/mul_mv.launch --against "$ASSAY_GGML:kernel_mul_mv_q4_0_f32"
        case $? in 0 | 4 | 5) ;; *) return 1 ;; esac
    fi
    command -v "${ASSAY_LLAMA_BENCH:-llama-bench}" > /dev/null || { echo "measure: no llama-bench, so no rivals" >&2; return 0; }
    files=
    more=
    for shape in rwkv7-1.5b rwkv7-7.2b; do # quickly, only if they are there
        [ -n "$quick" ] && [ ! -f "$models/$shape-q4_0.gguf" ] || more="$more $shape"
    done
    for shape in $(echo $shapes $more | tr ',' ' '); do
        make_model "$shape" && files="$files $(find_model "$shape")" || return
    done
    [ -n "$smoke" ] || for type in q4_k q6_k f16; do # one size of the other formats
        make_model 1b $type && files="$files $models/1b-$type.gguf" || return
    done
    export ASSAY_TESTS="-p 8,64,512 -n 64 -r $repeat"
    [ -z "$smoke" ] || export ASSAY_TESTS="-p 8 -n 4 -r 1" ASSAY_DEPTHS=16
    ASSAY=$assay tools/rivals.sh "$work/rivals.csv" $files
}

# Caches of 4096, 16384 and 32768 keys.
list_deep() { # heads x kv_heads x head_dim x ranges
    [ -z "$smoke" ] || { echo "256x$1"; return; }
    echo "4096x$1,16384x$1,32768x$1"
}

validate() {
    "$assay" validate --quick --quiet --csv "$work/validate.csv" ${smoke:+rmsnorm}
    code=$?
    [ $code -ne 3 ] || { echo "measure: validation cannot run here, so there is none" >&2; return 0; }
    return $code
}

run_part() { # name
    of=${1#*-}
    big=576x576,1536x576,576x1536,2048x2048,4096x4096,14336x4096,4096x14336
    [ -z "$smoke" ] || big=576x576
    one=vec16,vec16_rows,stream,bulk,bulk_chunks,bulk_cluster many=tiled_skinny,tiled_split_k,tiled,tiled_stream,tiled_bulk,tiled_bulk_cluster # what rules choose among on a GPU
    case $1 in
        models) make_models ;;
        check-*) check "$of" ;;
        tune-*) tune "$of" ;;
        bench-matvec) bench matvec --variant $one --batch 1 --shape $big --format q4_0,q8_0,q4_k,q5_k,q6_k,f16 ;;
        bench-tokens) # the oracle takes longer than all samples, and += as long as =
            wide=${big##*2048,}
            bench matvec --variant $many --accumulate no --batch 8 --shape ${wide%,*} --format q4_0,q8_0,q4_k,q5_k,q6_k,f16 &&
                bench matvec --variant $many --accumulate no --batch 64 --shape ${wide%,*} --format q4_0
            ;;
        bench-attention)
            bench decode_attention prefill_attention &&
                bench attention_ranges --variant shared,mma --shape "$(list_deep 9x3x64x44),$(list_deep 32x4x64x32),$(list_deep 32x8x128x16)"
            ;;
        bench-other) bench rmsnorm rope_apply_dual ffn_silu embedding_lookup argmax softmax residual_add layer_norm ;;
        experiment-rwkv7_*) "$assay" experiment "$of" --resume --out "$work" -m "$(find_model rwkv7-0.1b)" $quick ;;
        experiment-*) "$assay" experiment "$of" --resume --out "$work" -m "$(find_model smollm-135m)" $quick ;;
        model-*) bench_model "$of" ;;
        formats-*) bench_formats "$of" ;;
        token-*) # into a folder of its own: what the others show for one size
            "$assay" experiment op_breakdown optimisation_stack --resume --out "$out-$of" -m "$(find_model "$of")" $quick
            ;;
        trace) "$assay" trace -m "$(find_model smollm-135m)" --out /dev/null --csv "$work/trace.csv" ;;
        rivals) bench_rivals ;;
        validate) validate ;;
    esac
}

# --- the run ----------------------------------------------------------------------------------------------------

stop() { # what did not fit
    now=
    for entry in $left; do
        is_done "${entry%:*}" || now="$now ${entry%:*}"
    done
    printf 'measure: %s; left:%s\n' "$1" "$now" >&2
    exit 5
}

# Runs a part, and ends it when the time is over.
run_limited() { # part, seconds
    run_part "$1" > "$work/log" 2>&1 &
    part=$!
    if [ "$2" -gt 0 ]; then
        (
            sleep "$2" &
            trap 'kill $! 2> /dev/null' TERM
            wait $! && pkill -P "$part"
        ) 2> /dev/null &
        watch=$!
        wait "$part"
        code=$?
        kill "$watch" 2> /dev/null
        return $code
    fi
    wait "$part"
}

worst=0
for entry in $left; do
    name=${entry%:*} cost=${entry#*:}
    [ -z "$smoke" ] || cost=1
    elapsed=$(($(date +%s) - started))
    room=0
    if [ "$seconds" -gt 0 ]; then
        room=$((seconds - elapsed))
        [ "$room" -ge "$cost" ] || stop "$room s are too few for $name, which takes about $cost"
    fi
    begun=$(date +%s)
    run_limited "$name" "$room"
    code=$?
    took=$(($(date +%s) - begun))
    case $code in
        0 | 1)
            summary=$(grep -E 'passed|timed|done|decided|findings' "$work/log" | tail -n 1 | sed -e 's/[,;] on the .*//' -e 's/; [a-z]* in .*//')
            printf 'done %s %s %s\n' "$name" "$took" "$summary" >> "$state"
            printf 'measure: %s took %s s (about %s expected). %s\n' "$name" "$took" "$cost" "$summary" >&2
            [ $code -eq 0 ] || worst=1
            ;;
        *)
            [ "$code" -lt 128 ] || stop "the time ended during $name"
            tail -n 5 "$work/log" >&2
            fail "$code" "$name failed with status $code; call again to go on from here"
            ;;
    esac
    [ ! -f "$work/tuned.csv" ] || ASSAY_TUNED=$work/tuned.csv
done

# --- all parts are done: the new files take the place of the old -------------------------------------------------

rm -f "$work/log"
rm -f "$out"/*.csv "$out"/*.svg "$out"/*.png "$out/measured.txt"
mv "$state" "$work/measured.txt" && mv "$work"/* "$out"/ && rmdir "$work" || fail 3 "cannot move the new files to $out"
ASSAY_TUNED=off "$assay" results "$out"
printf 'measure: all parts are done; charts: assay plot %s\n' "$out" >&2
exit $worst
