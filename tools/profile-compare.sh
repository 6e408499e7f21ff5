#!/bin/sh
# profile-compare: the counters that tools/profile-ncu.sh wrote beside the counts of `assay profile`, as CSV.
#
#   tools/profile-compare.sh DIR > results/<device>/profile_ncu.csv
#
# Launches are matched in order: ncu lists kernels as they ran, the .plays.csv beside it as they were played.
set -eu
dir=${1:?the folder that profile-ncu.sh wrote}
files=
for ncu in "$dir"/*.ncu.csv; do
    [ -f "$ncu" ] || { echo "profile-compare: $dir has no .ncu.csv" >&2; exit 3; }
    files="$files ${ncu%.ncu.csv}.plays.csv $ncu"
done
[ -f "$dir/ours.csv" ] || ./assay profile $(awk -F, 'FNR > 1 && !seen[$3]++ { print $3 }' "$dir"/*.plays.csv) \
    --each 3 --csv "$dir/ours.csv" > /dev/null
awk '
function split_csv(line, out,    n, i, c, quoted, text) { # RFC 4180, without line ends in fields
    n = 0; text = ""; quoted = 0
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) { out[++n] = text; text = "" }
        else text = text c
    }
    out[++n] = text
    return n
}
function percent(a, b) { return b == 0 ? (a == 0 ? "0" : "inf") : sprintf("%.2f", 100 * (a / b - 1)) }
FILENAME ~ /plays.csv$/ {
    if (FNR == 1) plays = 0
    else { split($0, f, ","); play[++plays] = f[1] }
    next
}
FILENAME ~ /ncu.csv$/ {
    n = split_csv($0, f)
    if (f[1] == "ID") { for (i = 1; i <= n; i++) at[f[i]] = i; next }
    if (f[1] !~ /^[0-9]+$/ || !("Metric Name" in at)) next
    value = f[at["Metric Value"]]; gsub(/,/, "", value)
    sum[play[f[1] + 1] SUBSEP f[at["Metric Name"]]] += value # the launches of a case together
    next
}
/^#/ { next }
{
    n = split_csv($0, f)
    if (f[1] == "case") { for (i = 1; i <= n; i++) col[f[i]] = i; next }
    if (f[col["line"]] != 0) next
    if (!titles++) print "case,counter,ours,ncu,difference_pct"
    split("load_sectors store_sectors load_requests store_requests conflicts_load conflicts_store instructions", ours, " ")
    split("l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_st l1tex__t_requests_pipe_lsu_mem_global_op_ld l1tex__t_requests_pipe_lsu_mem_global_op_st l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st smsp__inst_executed", theirs, " ")
    for (i = 1; i <= 7; i++) {
        key = f[1] SUBSEP theirs[i] ".sum"
        if (key in sum) print f[1] "," ours[i] "," f[col[ours[i]]] "," sum[key] "," percent(f[col[ours[i]]], sum[key])
    }
}' $files "$dir/ours.csv"
