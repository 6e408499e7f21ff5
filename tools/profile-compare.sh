#!/bin/sh
# profile-compare: the counters that tools/profile-ncu.sh wrote beside the counts of `assay profile`, as CSV.
#
#   tools/profile-compare.sh DIR [EARLIER.csv] > results/<device>/profile_ncu.csv
#
# On stderr: how many cases agree, and those that do not. Launches are matched in order: ncu lists kernels as they
# ran, the .plays.csv beside it as they were played. DIR/ours.csv is kept: remove it to count again. Cases that only
# EARLIER has keep their row. conflicts_gpu is what the hardware counts, and arbitration_gpu at most how many of them are
# waits for data that arrives from memory. Where these may be more than a tenth, conflicts are judged by wavefronts_gpu -
# ideal_gpu, if known: what ncu makes of the addresses of instrumented instructions.
set -eu
dir=${1:?the folder that profile-ncu.sh wrote}
earlier=${2:-/dev/null}
files=
for ncu in "$dir"/*.ncu.csv; do
    [ -s "$ncu" ] || { echo "profile-compare: $dir has no .ncu.csv" >&2; exit 3; }
    files="$files ${ncu%.ncu.csv}.plays.csv $ncu"
done
[ -f "$dir/ours.csv" ] || "${ASSAY:-./assay}" profile $(cut -d, -f1 "$dir"/*.plays.csv | grep / | sort -u) --each 100 \
    --csv "$dir/ours.csv" > /dev/null
printf '# device: NVIDIA H200\n# counters: %s, beside the counts of assay profile\n' \
    "$(sed -n 's/^Version \([^ ]*\).*/ncu \1/p' "$dir/info.txt" 2> /dev/null || echo ncu)"
awk "$(cat "$(dirname "$0")/csv.awk")"'
function judge(name, what, ours, theirs, room,    off) {
    off = ours > theirs ? ours - theirs : theirs - ours
    total[what]++
    if (off <= room) good[what]++
    else printf "%s: %s %d, ncu %d (%+.1f %%)\n", name, what, ours, theirs, theirs ? 100 * (ours / theirs - 1) : 100 > "/dev/stderr"
}
BEGIN {
    OFS = ","
    count = split("load_sectors store_sectors load_requests store_requests conflicts instructions", ours, " ")
    lsu = "l1tex__t_"; mem = "_pipe_lsu_mem_global_op_"; bank = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
    as[lsu "sectors" mem "ld"] = "load_sectors"; as[lsu "sectors" mem "st"] = "store_sectors"
    as[lsu "requests" mem "ld"] = "load_requests"; as[lsu "requests" mem "st"] = "store_requests"
    as[bank "ld"] = as[bank "st"] = "conflicts"; as["smsp__inst_executed"] = "instructions"
    as["launch__registers_per_thread"] = "registers"; as["l1tex__data_bank_conflicts_type_arbitration"] = "arbitration"
    as["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld"] = "loads"
    as["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st"] = "stores"
    as["memory_l1_wavefronts_shared"] = "wavefronts"; as["memory_l1_wavefronts_shared_ideal"] = "ideal"
    others = split("registers arbitration wavefronts ideal loads stores", other, " ")
    title = "case"
    for (i = 1; i <= count; i++) title = title "," ours[i] "," ours[i] "_gpu"
    title = title ",registers_gpu,arbitration_gpu,wavefronts_gpu,ideal_gpu,load_wavefronts_gpu,store_wavefronts_gpu,made_of"
    print title
    columns = split(title, names, ",")
}
FILENAME ~ /[.]plays[.]csv$/ {
    if (FNR == 1) plays = 0
    if (split($0, f, ",") < 5 || f[1] !~ /\//) next
    play[++plays] = f[1]; kernel[plays] = f[3]; made[f[1]] = f[5]
    next
}
FILENAME ~ /[.]ncu[.]csv$/ {
    n = cut($0, f)
    if (f[1] == "ID") { for (i = 1; i <= n; i++) at[f[i]] = i; next }
    if (f[1] !~ /^[0-9]+$/ || !("Metric Name" in at)) next
    if (f[at["Kernel Name"]] !~ kernel[f[1] + 1]) {
        print "profile-compare: " FILENAME ": launch " f[1] " is of " f[at["Kernel Name"]] ", not of " kernel[f[1] + 1] > "/dev/stderr"
        exit 3
    }
    value = f[at["Metric Value"]]; gsub(/,/, "", value)
    metric = f[at["Metric Name"]]; sub(/\.sum$/, "", metric)
    if (!(metric in as)) next
    key = play[f[1] + 1] SUBSEP as[metric]
    if (from[key] != FILENAME) delete sum[key] # a later file counts
    from[key] = FILENAME
    sum[key] = as[metric] == "registers" ? value : sum[key] + value # the launches of a case together
    next
}
/^#/ { next }
FILENAME != ARGV[ARGC - 1] { # ours
    n = cut($0, f)
    if (f[1] == "case") { for (i = 1; i <= n; i++) col[f[i]] = i; next }
    if (f[col["line"]] != 0 || !(f[1] in made)) next
    printf "%s", f[1]
    is_told[f[1]] = 1
    for (i = 1; i <= count; i++) {
        mine = (ours[i] == "conflicts" ? f[col["conflicts_load"]] + f[col["conflicts_store"]] : f[col[ours[i]]]) + 0
        theirs = sum[f[1], ours[i]] + 0
        if (i <= 4) judge(f[1], ours[i], mine, theirs, 0.02 * theirs)
        else if (ours[i] == "conflicts") {
            least = theirs - sum[f[1], "arbitration"]
            if ((f[1], "ideal") in sum && least < 0.9 * theirs) by = sum[f[1], "wavefronts"] - sum[f[1], "ideal"]
            else by = mine >= theirs ? theirs : mine > least ? mine : least # any number between agrees
            if (mine + by > 0) judge(f[1], ours[i], mine, by, 0.1 * by)
        }
        printf ",%d,%d", mine, theirs
    }
    for (i = 1; i <= others; i++) printf ",%s", sum[f[1], other[i]]
    print "," made[f[1]]
    next
}
{ # earlier
    n = cut($0, f)
    if (f[1] == "case") { for (i = 1; i <= n; i++) had[f[i]] = i; next }
    if (f[1] in is_told) next
    for (i = 1; i <= columns; i++) printf "%s%s", names[i] in had ? f[had[names[i]]] : "", i < columns ? "," : "\n"
}
END { for (what in total) printf "%s: %d of %d within %d %%\n", what, good[what], total[what], what == "conflicts" ? 10 : 2 > "/dev/stderr" }
' $files "$dir/ours.csv" "$earlier"
