# Norm and product in one launch against two, by width and number of rows.
width = 1000
load common.'style.gp'
list = ''
stats file(1) using (strcol('shape') eq 'layer' ? 0 : add(strcol('out'))) nooutput
n = items(list)
set logscale x 2
set logscale y 2
set format y '%g'
set yrange [*:*]
set xlabel 'width of the norm (in)'
set ylabel 'time relative to two launches'
set title 'RMSNorm fused into the Q4_0 product after it: below 1 it pays off'
set key outside right top Left reverse
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#000000' lw 1.5 front
plot for [f=1:files] for [k=1:n] file(f) \
    using (strcol('out') eq item(list, k) ? where('variant', 'fused_row', column('in')) : NaN):(column('ratio_to_separate')) \
    with linespoints lt 2 pt (k * 2 + 3) dt k title once(f, 'per row, '.item(list, k).' rows'), \
    for [f=1:files] for [k=1:n] file(f) \
    using (strcol('out') eq item(list, k) ? where('variant', 'fused_group', column('in')) : NaN):(column('ratio_to_separate')) \
    with linespoints lt 1 pt (k * 2 + 3) dt k title once(f, 'per group of 8, '.item(list, k).' rows')
