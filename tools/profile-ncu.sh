#!/bin/sh
# profile-ncu: the counters of an NVIDIA GPU for the cases that `assay profile` counts.
#
#   tools/profile-ncu.sh OUT    on the machine with the GPU: writes OUT/plays.csv and OUT/ncu.csv
#
# Then, anywhere: tools/profile-compare.sh OUT. Bounded: 60 s to compile, 180 s to measure.
set -eu
out=${1:?the folder for the counters}
mkdir -p "$out"
cases="matvec rmsnorm layer_norm l2_norm group_norm decode_attention prefill_attention attention_ranges
attention_merge rope_apply rope_apply_tokens rope_apply_table rope_apply_dual buffer_copy kv_cache_copy
kv_cache_copy_tokens blit"
metrics=""
for m in l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st \
    l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st \
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st \
    l1tex__t_sectors_pipe_lsu_mem_local_op_ld smsp__inst_executed smsp__thread_inst_executed \
    dram__bytes_read gpu__time_duration; do
    metrics="$metrics${metrics:+,}$m.sum"
done
metrics="$metrics,launch__registers_per_thread"

# Compiles kernels with all cores, so that the run under ncu finds them.
timeout 60 ./assay check $cases --device cuda --quick -q > "$out/check.txt" 2>&1 || true
timeout 180 ncu --csv --log-file "$out/ncu.csv" --metrics "$metrics" --target-processes application-only \
    ./assay profile $cases --each 3 --play --device cuda > "$out/plays.csv" 2> "$out/errors.txt" || true
wc -l "$out/plays.csv" "$out/ncu.csv"
tail -3 "$out/errors.txt"
