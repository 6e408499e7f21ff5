# A token, part by part: on top one bar for each device, below the parts of the first, each starting
# where the one above it ended. The scale is the token's own time: parts that take more go past 100 %.
height = 720
subtitle = 'Top: the whole token; below: its parts, each timed by itself, starting where the one above it ended'
load common.'style.gp'
array whole[files]
most = 100
do for [f=1:files] {
    stats file(f) using (where('kind', 'token', column('wall_ns'))) nooutput
    whole[f] = STATS_max
    stats file(f) using (column('end_ns')) nooutput
    most = 100 * STATS_max / whole[f] > most ? 100 * STATS_max / whole[f] : most
}
stats file(1) using (column('rank')) nooutput
n = STATS_max
top = -0.6 - 1.1 * files
stats file(1) using (strlen(strcol('op'))) nooutput
set lmargin at screen (30 + 6.7 * STATS_max) / width # room for the longest name
set rmargin at screen 1 - 64.0 / width
set xrange [0:most * 1.02]
set yrange [n + 0.7:top - 0.3]
unset ytics
set grid noytics xtics
set xlabel '% of the time of a token'
set key off
set style fill solid 0.9 noborder
if (most > 101) {
    set arrow from 100, graph 0 to 100, graph 1 nohead dt 2 lw 1.5 lc rgb '#404040' front
    set label 1 'the token' at 100, top - 0.3 center offset 0, 0.5 font small
}
array shade[8] = [0x0072B2, 0x56B4E9, 0x009E73, 0xCC79A7, 0xE69F00, 0x7F7F7F, 0x8A6FB0, 0x6B8E23]
colour(kind, rank) = kind eq 'op' ? shade[1 + (int(rank) - 1) % 8] : kind eq 'launches' ? 0xD55E00 : \
    kind eq 'idle' ? 0x404040 : 0xFFFFFF
low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
from(f) = 100 * low(column('start_ns'), column('end_ns')) / whole[f]
to(f) = 100 * high(column('start_ns'), column('end_ns')) / whole[f]
# What is missing is drawn in the bar of the whole only where it is a part of it.
is_part(value) = strcol('kind') eq 'missing' && column('share_pct') < 0 ? NaN : value
# 'missing': the parts, timed op by op, take less or more than the token.
label_of(op) = op ne 'missing' ? op : column('share_pct') < 0 ? 'more than the token takes' : 'in none of the parts'
bar(f) = top + 1.1 * (f - 0.5)
plot for [f=1:files] file(f) using (is_part(from(f))):(bar(f)):(from(f)):(to(f)):(bar(f) - 0.45):(bar(f) + 0.45):(colour(strcol('kind'), column('rank'))) \
    with boxxyerror lc rgb variable dt 1, \
    for [f=1:files] file(f) every ::0::0 using (0):(bar(f)):(word(titles, f)) with labels right offset -1,0, \
    file(1) using (from(1)):(column('rank')):(from(1)):(to(1)):(column('rank') - 0.36):(column('rank') + 0.36):(colour(strcol('kind'), column('rank'))) \
    with boxxyerror lc rgb variable dt 1, \
    file(1) using (to(1)):(column('rank')):(column('share_pct') == column('share_pct') ? sprintf('%.1f %%', column('share_pct')) : '') with labels left offset 0.4,0 font small, \
    file(1) using (0):(column('rank')):(strcol('rank') eq '' ? '' : label_of(strcol('op'))) with labels right offset -1,0 font small
