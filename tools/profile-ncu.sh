#!/bin/sh
# profile-ncu: the counters of an NVIDIA GPU for the cases that `assay profile` counts.
#
#   tools/profile-ncu.sh OUT [SECONDS [GROUP...]]    on the machine with the GPU: OUT/<group>.<n>.plays.csv and .ncu.csv
#
# Then, anywhere: tools/profile-compare.sh OUT. ncu writes when the program ends, so cases are played a few at a time,
# the first shape of every kernel before the second. A batch that does not end in time has no files; after SECONDS none
# is begun (default 200), and the next call goes on with those that are left. A group of your own is a list of cases
# in OUT/<group>.cases.txt.
set -eu
out=${1:?the folder for the counters}
seconds=${2:-200}
longest=60 # seconds of a batch
started=$(date +%s)
mkdir -p "$out"
assay=${ASSAY:-./assay}
export ASSAY_DEVICE="${ASSAY_DEVICE:-cuda}"
groups="published copy norm rope attention"
for format in f32 bf16 q4_1 q5_0 q5_1 q5_k f16 q8_0 q6_k q4_k q4_0; do
    groups="$groups matvec-$format"
done
[ $# -le 2 ] || { shift 2; groups=$*; }

# l1tex__data_bank_conflicts are what the hardware counts: conflicts of addresses, and wavefronts that wait because
# something else uses the banks, as data that arrives from memory does. Those with sass in their name are computed from
# the addresses of each instruction, as `assay profile` does.
wanted=
for m in l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st \
    l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st \
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st \
    smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared \
    smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared \
    l1tex__t_sectors_pipe_lsu_mem_local_op_ld smsp__inst_executed dram__bytes_read gpu__time_duration; do
    wanted="$wanted $m"
done

select_kernels() { # group
    case $1 in
        published) echo multi_token_matvec_q4_0/576x576x8/normal multi_token_matvec_q4_0_reuse/576x576x8/normal ;;
        copy) echo buffer_copy kv_cache_copy kv_cache_copy_tokens blit ;;
        norm) echo rmsnorm layer_norm l2_norm group_norm ;;
        rope) echo rope_apply rope_apply_tokens rope_apply_table rope_apply_dual ;;
        attention) echo decode_attention prefill_attention attention_ranges attention_merge ;;
        matvec-?*) echo matvec --format "${1#matvec-}" ;;
        *) echo "profile-ncu: no group is called $1" >&2; exit 2 ;;
    esac
}

is_whole() { # batch: has ncu seen each launch that was played?
    plays=$(grep -c '^[^,]*/[^,]*,[0-9]*,' "$out/$1.plays.csv") || return 1
    seen=$(awk -F'"' '$2 ~ /^[0-9]+$/ && !ids[$2]++ { n++ } END { print n + 0 }' "$out/$1.part")
    [ "$plays" -eq "$seen" ] || { echo "$1: $plays launches were played, ncu lists $seen" >&2; return 1; }
}

find_cases() { # group
    if [ -s "$out/$1.cases.txt" ]; then
        "$assay" profile $(cat "$out/$1.cases.txt") --each 100 --play
    else
        "$assay" profile $(select_kernels "$1") --each 3 --play
    fi
}

# Without ncu and all at a time, so that the compilers have done their work when ncu looks.
compile() {
    for group in $groups; do
        {
            find_cases "$group" 2> "$out/$group.errors.txt" |
                awk -F, '$1 ~ /\// && !seen[$1]++ { split($1, kernel, "/"); print n[kernel[1]]++, $1 }' |
                sort -n -s -k 1,1 | cut -d' ' -f2 > "$out/$group.found"
            mv "$out/$group.found" "$out/$group.cases.txt"
        } &
    done
    wait
    echo "compiled after $(($(date +%s) - started)) s"
}

choose_metrics() { # what this GPU does not offer is left out, and said
    [ -s "$out/metrics.txt" ] || ncu --query-metrics > "$out/metrics.txt" 2> /dev/null || true
    metrics=launch__registers_per_thread
    for m in $wanted; do
        if [ ! -s "$out/metrics.txt" ] || grep -q "^$m " "$out/metrics.txt"; then
            metrics="$metrics,$m.sum"
        else
            echo "this GPU has no $m" >&2
        fi
    done
}

count() { # batch, seconds, case...
    batch=$1 left=$2 begun=$(date +%s)
    shift 2
    rm -f "$out/$batch.part"
    timeout -k 5 "$left" ncu --csv --print-units base --log-file "$out/$batch.part" --metrics "$metrics" \
        --clock-control none --target-processes application-only \
        "$assay" profile "$@" --each 100 --play > "$out/$batch.plays.csv" 2> "$out/$batch.errors.txt" || true
    if [ -f "$out/$batch.part" ] && is_whole "$batch"; then
        mv "$out/$batch.part" "$out/$batch.ncu.csv"
        rm -f "$out/$batch.errors.txt"
        echo "$batch: $plays launches in $(($(date +%s) - begun)) s"
    else
        rm -f "$out/$batch.plays.csv"
        echo "$batch: not done in $(($(date +%s) - begun)) s, see $batch.errors.txt and $batch.part"
    fi
}

compile
choose_metrics
for group in $groups; do
    split -l 8 -a 2 "$out/$group.cases.txt" "$out/$group.batch."
    for list in "$out/$group.batch."*; do
        [ -f "$list" ] || continue # no case could be played
        batch=$group.${list##*.}
        left=$((started + seconds - $(date +%s)))
        [ -f "$out/$batch.ncu.csv" ] || [ "$left" -le 5 ] ||
            count "$batch" $((left < longest ? left : longest)) $(cat "$list")
        rm "$list"
    done
done
