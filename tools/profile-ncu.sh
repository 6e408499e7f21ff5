#!/bin/sh
# profile-ncu: the counters of an NVIDIA GPU for the cases that `assay profile` counts.
#
#   tools/profile-ncu.sh OUT [SECONDS [GROUP...]]    on the machine with the GPU: OUT/<group>.plays.csv and .ncu.csv
#
# Then, anywhere: tools/profile-compare.sh OUT. ncu writes at its end, so kernels are played in groups of some seconds,
# the shortest first. A group that does not end in time has no files; after SECONDS none is begun (default
# 200), and the next call goes on with those that are left.
set -eu
out=${1:?the folder for the counters}
seconds=${2:-200}
longest=60 # seconds of a group
started=$(date +%s)
mkdir -p "$out"
assay=${ASSAY:-./assay}
export ASSAY_DEVICE="${ASSAY_DEVICE:-cuda}"
groups="copy norm rope attention"
for format in f32 bf16 q4_1 q5_0 q5_1 q5_k f16 q8_0 q6_k q4_k q4_0; do
    groups="$groups matvec-$format"
done
[ $# -le 2 ] || { shift 2; groups=$*; }
metrics=launch__registers_per_thread
for m in l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st \
    l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st \
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st \
    l1tex__t_sectors_pipe_lsu_mem_local_op_ld smsp__inst_executed smsp__thread_inst_executed \
    dram__bytes_read gpu__time_duration; do
    metrics="$metrics,$m.sum"
done

select_kernels() { # group
    case $1 in
        copy) echo buffer_copy kv_cache_copy kv_cache_copy_tokens blit ;;
        norm) echo rmsnorm layer_norm l2_norm group_norm ;;
        rope) echo rope_apply rope_apply_tokens rope_apply_table rope_apply_dual ;;
        attention) echo decode_attention prefill_attention attention_ranges attention_merge ;;
        matvec-?*) echo matvec --format "${1#matvec-}" ;;
        *) echo "profile-ncu: no group is called $1" >&2; exit 2 ;;
    esac
}

play() { # group, program before it...
    group=$1
    shift
    "$@" "$assay" profile $(select_kernels "$group") --each 3 --play
}

is_whole() { # group: has ncu seen each launch that was played?
    plays=$(grep -c '^[^,]*/[^,]*,[0-9]*,' "$out/$1.plays.csv") || return 1
    seen=$(awk -F'"' '$2 ~ /^[0-9]+$/ && !ids[$2]++ { n++ } END { print n + 0 }' "$out/$1.part")
    [ "$plays" -eq "$seen" ] || { echo "$1: $plays launches were played, ncu lists $seen" >&2; return 1; }
}

# Without ncu and all at a time, so that the compilers have done their work when ncu looks.
for group in $groups; do
    [ -f "$out/$group.ncu.csv" ] || play "$group" timeout "$longest" > /dev/null 2> "$out/$group.errors.txt" &
done
wait
echo "compiled after $(($(date +%s) - started)) s"
for group in $groups; do
    [ ! -f "$out/$group.ncu.csv" ] || continue
    left=$((started + seconds - $(date +%s)))
    [ "$left" -gt 5 ] || break
    [ "$left" -lt "$longest" ] || left=$longest
    begun=$(date +%s)
    rm -f "$out/$group.part"
    play "$group" timeout -k 5 "$left" ncu --csv --print-units base --log-file "$out/$group.part" --metrics "$metrics" \
        --clock-control none --target-processes application-only \
        > "$out/$group.plays.csv" 2>> "$out/$group.errors.txt" || true
    if [ -f "$out/$group.part" ] && is_whole "$group"; then
        mv "$out/$group.part" "$out/$group.ncu.csv"
        echo "$group: $plays launches in $(($(date +%s) - begun)) s"
    else
        rm -f "$out/$group.plays.csv"
        echo "$group: not done, see $group.errors.txt and $group.part"
    fi
done
