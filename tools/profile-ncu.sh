#!/bin/sh
# profile-ncu: the counters of an NVIDIA GPU for the cases that `assay profile` counts.
#
#   tools/profile-ncu.sh OUT [SECONDS [GROUP...]]    on the machine with the GPU: OUT/<group>.<n>.plays.csv and .ncu.csv
#
# Then, anywhere: tools/profile-compare.sh OUT. A batch is one process with some launches, the first shape of every
# kernel before the second. JOBS processes (4) run at a time; ncu lets them pass launch by launch. ncu writes when the
# program ends: a batch that does not end has no files, and none is begun in the last 15 of SECONDS (default 200). The
# next call goes on with those that are left. Cases with bank conflicts are played once more at the end. A group of
# your own is a list of cases in OUT/<group>.cases.txt.
set -eu
out=${1:?the folder for the counters}
seconds=${2:-200}
jobs=${JOBS:-4}
size=24 # launches of a batch
started=$(date +%s)
mkdir -p "$out"
assay=${ASSAY:-./assay}
export ASSAY_DEVICE="${ASSAY_DEVICE:-cuda}"
first="published copy rope norm attention" # those that show whether processes disturb each other
groups=
for format in q4_0 q4_k q6_k q8_0 f16 f32 bf16 q4_1 q5_0 q5_1 q5_k; do
    groups="$groups matvec-$format"
done
groups="$groups fused activate"
[ $# -le 2 ] || { shift 2; first='' groups=$*; }

# l1tex__data_bank_conflicts are what the hardware counts: conflicts of addresses, and those of arbitration, where
# something else uses the banks, as data that arrives from memory does.
all="l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st
    l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st
    l1tex__data_bank_conflicts_type_arbitration smsp__inst_executed"
# Cycles of shared memory as instrumented instructions have them, without arbitration; and without bank conflicts.
# ncu does not list the second two, and takes them.
wavefronts="smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld
    smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st"
ideal=memory_l1_wavefronts_shared,memory_l1_wavefronts_shared_ideal

select_kernels() { # group
    case $1 in
        published) echo multi_token_matvec_q4_0/576x576x8/normal multi_token_matvec_q4_0_reuse/576x576x8/normal ;;
        copy) echo buffer_copy kv_cache_copy kv_cache_copy_tokens blit ;;
        norm) echo rmsnorm layer_norm l2_norm group_norm ;;
        rope) echo rope_apply rope_apply_table rope_apply_dual ;;
        attention) echo decode_attention prefill_attention attention_ranges attention_merge ;;
        fused) echo rmsnorm_matvec silu_matvec matvec_mixed matvec_batched layer_norm_shift ;;
        activate) echo matvec_activate ;;
        matvec-?*) echo matvec --format "${1#matvec-}" ;;
        *) echo "profile-ncu: no group is called $1" >&2; exit 2 ;;
    esac
}

is_whole() { # batch: has ncu seen each launch that was played?
    plays=$(grep -c '^[^,]*/[^,]*,[0-9]*,' "$out/$1.plays.csv") || { echo "$1: nothing was played" >&2; return 1; }
    seen=$(awk -F'"' '$2 ~ /^[0-9]+$/ && !ids[$2]++ { n++ } END { print n + 0 }' "$out/$1.part")
    [ "$plays" -eq "$seen" ] || { echo "$1: $plays launches were played, ncu lists $seen" >&2; return 1; }
}

find_cases() { # group
    if [ ! -s "$out/$1.cases.txt" ]; then
        "$assay" profile $(select_kernels "$1") --each 3 --play || true
    elif ! "$assay" profile $(cat "$out/$1.cases.txt") --each 100 --play; then # one that is unknown refuses all
        while read -r name; do "$assay" profile "$name" --each 100 --play < /dev/null || true; done < "$out/$1.cases.txt"
    fi
}

# Without ncu and all at a time, so that the compilers have done their work when ncu looks.
compile() {
    for group in $first $groups; do
        [ ! -f "$out/$group.batches" ] || continue
        {
            find_cases "$group" 2> "$out/$group.errors.txt" |
                awk -F, '$1 ~ /\// && !seen[$1]++ { split($1, kernel, "/"); print n[kernel[1]]++, $1 }' |
                sort -n -s -k 1,1 | cut -d' ' -f2 > "$out/$group.found"
            [ -s "$out/$group.found" ] || echo "$group: no case could be played, see $group.errors.txt" >&2
            make_batches "$group"
        } &
    done
    wait
    echo "compiled after $(($(date +%s) - started)) s"
}

make_batches() { # group: what was found, in lists of a batch each
    split -l "$size" -a 2 "$out/$1.found" "$out/$1.batch."
    for list in "$out/$1.batch."*; do
        [ -f "$list" ] && echo "$1.${list##*.}"
    done > "$out/$1.batches" || true
    mv "$out/$1.found" "$out/$1.cases.txt"
}

choose_metrics() { # metric...: what this GPU does not offer is left out, and said
    [ -s "$out/metrics.txt" ] || ncu --query-metrics > "$out/metrics.txt" 2> /dev/null || true
    metrics=launch__registers_per_thread
    for m in "$@"; do
        if [ ! -s "$out/metrics.txt" ] || grep -q "^$m " "$out/metrics.txt"; then
            metrics="$metrics,$m.sum"
        else
            echo "this GPU has no $m" >&2
        fi
    done
}

count() { # batch, metrics
    batch=$1 begun=$(date +%s)
    left=$((started + seconds - begun))
    [ ! -f "$out/$batch.ncu.csv" ] && [ "$left" -gt 15 ] || return 0
    rm -f "$out/$batch.part"
    timeout -k 5 "$left" ncu --csv --print-units base --log-file "$out/$batch.part" --metrics "$2" \
        --clock-control none --cache-control none --target-processes application-only \
        "$assay" profile $(cat "$out/${batch%.*}.batch.${batch##*.}") --each 100 --play \
        > "$out/$batch.plays.csv" 2> "$out/$batch.errors.txt" || true
    if [ -f "$out/$batch.part" ] && is_whole "$batch"; then
        mv "$out/$batch.part" "$out/$batch.ncu.csv"
        rm -f "$out/$batch.errors.txt"
        echo "$batch: $plays launches in $(($(date +%s) - begun)) s, $(($(date +%s) - started)) s in all"
    else
        rm -f "$out/$batch.plays.csv"
        echo "$batch: not done in $(($(date +%s) - begun)) s, see $batch.errors.txt and $batch.part"
    fi
}

run_batches() { # processes, metrics, group...: each process has its share of the batches
    processes=$1 asked=$2 share=0
    shift 2
    while [ "$share" -lt "$processes" ]; do
        for group in "$@"; do
            cat "$out/$group.batches"
        done | awk -v n="$processes" -v share="$share" 'NR % n == share' |
            while read -r batch; do count "$batch" "$asked" < /dev/null; done &
        share=$((share + 1))
    done
    wait
}

# Is what the first batch of copies has the same if nothing runs beside it? Else one process at a time.
check_jobs() {
    [ "$jobs" -gt 1 ] && [ -f "$out/copy.aa.ncu.csv" ] && [ ! -f "$out/checked" ] || return 0
    cp "$out/copy.batch.aa" "$out/again.batch.aa"
    count again.aa "$metrics"
    [ -f "$out/again.aa.ncu.csv" ] || return 0
    for batch in copy.aa again.aa; do
        grep l1tex__t_ "$out/$batch.ncu.csv" | sed 's/"[0-9]*",//2' > "$out/$batch.sectors" # without the process
    done
    if cmp -s "$out/copy.aa.sectors" "$out/again.aa.sectors"; then
        : > "$out/checked"
    else
        echo "processes disturb each other's counters: again, one at a time" >&2
        jobs=1
        rm -f "$out"/*.ncu.csv
        run_batches 1 "$metrics" $first
    fi
    rm -f "$out"/again.* "$out"/*.sectors
}

run_addresses() { # the cases that have bank conflicts by the hardware, and are not done
    group=addresses-$started
    for ncu in "$out"/*.ncu.csv; do
        case $ncu in */addresses-* | */\*.ncu.csv) continue ;; esac
        awk -F'"' 'FNR == NR { if (split($0, f, ",") >= 5 && f[1] ~ /\//) name[n++] = f[1]; next }
            /data_bank_conflicts_pipe_lsu_mem_shared/ && $(NF - 1) != "0" { print name[$2] }' "${ncu%.ncu.csv}.plays.csv" "$ncu"
    done | sort -u > "$out/$group.have"
    cat "$out"/addresses-*.plays.csv 2> /dev/null | cut -d, -f1 | sort -u | comm -23 "$out/$group.have" - > "$out/$group.found"
    rm "$out/$group.have"
    make_batches "$group"
    choose_metrics $wavefronts
    run_batches "$jobs" "$metrics,$ideal" "$group"
    run_batches "$jobs" "$metrics" "$group" # if this ncu does not take the others
}

compile
choose_metrics $all
run_batches "$jobs" "$metrics" $first
check_jobs
run_batches "$jobs" "$metrics" $groups
run_batches 1 "$metrics" $first $groups # those that failed beside others
run_addresses
echo "$(ls "$out" | grep -c 'ncu.csv$' || true) batches have counters"
