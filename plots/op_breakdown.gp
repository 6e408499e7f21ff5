# A token, part by part: on top one bar per device, below the parts of the first, each starting
# where the one above it ended.
width = 1150
height = 720
load common.'style.gp'
array whole[files]
do for [f=1:files] {
    stats file(f) using (column('end_ns')) nooutput
    whole[f] = STATS_max
}
stats file(1) using (column('rank')) nooutput
n = STATS_max
top = -0.6 - 1.1 * files
set lmargin at screen 0.43
set rmargin at screen 0.94
set xrange [0:100]
set yrange [n + 0.7:top - 0.3]
unset ytics
set grid noytics xtics
set xlabel 'percent of the time of a token'
set title sprintf('Where the time of a token goes (%.4g ms)', whole[1] * 1e-6)
set key off
set style fill solid 0.9 border lc rgb '#202020'
array shade[8] = [0x0072B2, 0x56B4E9, 0x009E73, 0xCC79A7, 0xE69F00, 0x7F7F7F, 0xB3CDE3, 0xD9D9D9]
colour(kind, rank) = kind eq 'op' ? shade[1 + (int(rank) - 1) % 8] : kind eq 'launches' ? 0xD55E00 : \
    kind eq 'idle' ? 0xF0E442 : 0xFFFFFF
low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
from(f) = 100 * low(column('start_ns'), column('end_ns')) / whole[f]
to(f) = 100 * high(column('start_ns'), column('end_ns')) / whole[f]
# The whole token, one bar per device, then the parts of the first.
bar(f) = top + 1.1 * (f - 0.5)
plot for [f=1:files] file(f) using (from(f)):(bar(f)):(from(f)):(to(f)):(bar(f) - 0.45):(bar(f) + 0.45):(colour(strcol('kind'), column('rank'))) \
    with boxxyerror lc rgb variable dt 1, \
    for [f=1:files] file(f) every ::0::0 using (0):(bar(f)):(word(titles, f)) with labels right offset -1,0, \
    file(1) using (from(1)):(column('rank')):(from(1)):(to(1)):(column('rank') - 0.36):(column('rank') + 0.36):(colour(strcol('kind'), column('rank'))) \
    with boxxyerror lc rgb variable dt 1, \
    file(1) using (to(1)):(column('rank')):(sprintf(' %.1f %%', column('share_pct'))) with labels left font ',10', \
    file(1) using (0):(column('rank')):(strcol('rank') eq '' ? '' : strcol('op')) with labels right offset -1,0 font ',10'
