# A token, part by part: each bar starts where the one above it ended.
width = 1100
height = 700
load style
set lmargin at screen 0.44
set rmargin at screen 0.95
set bmargin at screen 0.13
stats file(1) using (column('rank')) nooutput
n = STATS_max
set yrange [n + 0.7:0.3]
set ylabel ''
unset ytics
set grid noytics xtics
set xlabel 'us of a token'
set title 'Where the time of a token goes (longest first; each bar starts where the last one ended)'
set key off
set style fill solid 0.9 border lc rgb '#202020'
colour(kind) = kind eq 'op' ? 0x0072B2 : kind eq 'launches' ? 0xD55E00 : kind eq 'idle' ? 0xE69F00 : 0x999999
low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
plot file(1) using (column('start_us')):(column('rank')):(low(column('start_us'), column('end_us'))):(high(column('start_us'), column('end_us'))):(column('rank') - 0.36):(column('rank') + 0.36):(colour(strcol('kind'))) \
    with boxxyerror lc rgb variable dt 1, \
    file(1) using (high(column('start_us'), column('end_us'))):(column('rank')):(sprintf(' %.1f %%', column('share_pct'))) \
    with labels left font ',10', \
    file(1) using (0):(column('rank')):ytic(strcol('rank') eq '' ? '' : strcol('op')) with points pt 0
