# How often a planted slowdown is found.
load common.'style.gp'
set xlabel 'planted slowdown, % (measured cost of the additional rounds)'
set ylabel '% of comparisons (bars: 95 % intervals)'
set yrange [0:105]
set xrange [-0.5:*]
set xtics (0, 1, 2, 3, 5, 10)
set title 'Verdicts on a kernel against a slower twin, interleaved'
set key outside right top Left reverse
set rmargin at screen 0.8
set arrow 1 from first 3, graph 0 to first 3, graph 1 nohead dt 3 lc rgb '#707070'
set label 1 'smallest effect' at first 3.1, graph 0.97 font ',10' textcolor rgb '#404040'
plot for [f=1:files] file(f) using (column('planted_pct')):(column('slower_pct')):(column('slower_low')):(column('slower_high')) \
    with yerrorlines lt 1 dt dash(f, 1) title once(f, 'slower'), \
    for [f=1:files] file(f) using (column('planted_pct')):(column('same_pct')) \
    with linespoints lt 2 dt dash(f, 2) title once(f, 'same')
