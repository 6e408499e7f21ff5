#!/bin/sh
# profile-ncu: the counters of an NVIDIA GPU for the cases that `assay profile` counts.
#
#   tools/profile-ncu.sh OUT [SECONDS]    on the machine with the GPU: writes OUT/<op>.plays.csv and OUT/<op>.ncu.csv
#
# Then, anywhere: tools/profile-compare.sh OUT. An op that does not end in time has no files; no op is begun after so
# many seconds (default 200), and the next call goes on with those that are left.
set -eu
out=${1:?the folder for the counters}
seconds=${2:-200}
started=$(date +%s)
mkdir -p "$out"
ops="matvec rmsnorm layer_norm l2_norm group_norm decode_attention prefill_attention attention_ranges attention_merge
rope_apply rope_apply_tokens rope_apply_table rope_apply_dual buffer_copy kv_cache_copy kv_cache_copy_tokens blit"
metrics=""
for m in l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st \
    l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st \
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st \
    l1tex__t_sectors_pipe_lsu_mem_local_op_ld smsp__inst_executed smsp__thread_inst_executed \
    dram__bytes_read gpu__time_duration; do
    metrics="$metrics${metrics:+,}$m.sum"
done
metrics="$metrics,launch__registers_per_thread"

# Compiles kernels with all cores, so that the runs under ncu find them.
timeout 60 ./assay check $ops --device cuda --quick -q > "$out/check.txt" 2>&1 || true
for op in $ops; do
    [ ! -f "$out/$op.ncu.csv" ] || continue
    left=$((started + seconds - $(date +%s)))
    [ "$left" -gt 5 ] || break
    if timeout "$left" ncu --csv --log-file "$out/$op.part" --metrics "$metrics" --target-processes application-only \
        ./assay profile "$op" --each 3 --play --device cuda > "$out/$op.plays.csv" 2> "$out/$op.errors.txt"; then
        mv "$out/$op.part" "$out/$op.ncu.csv"
    else
        rm -f "$out/$op.part" "$out/$op.plays.csv"
    fi
done
wc -l "$out"/*.ncu.csv
