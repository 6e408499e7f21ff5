# How often a planted slowdown is found.
subtitle = 'Verdicts on a kernel against a slower twin, interleaved; bars: 95 % intervals'
load common.'style.gp'
verdicts = 'slower same'
do for [k=1:2] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(column('planted_pct'), column(word(verdicts, k).'_pct'))) nooutput }
    name_end = 'called '.word(verdicts, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_log = 0
y_lo = 0
y_hi = 105
set rmargin at screen 1 - 130.0 / width
set xlabel 'planted slowdown, % (measured cost of the additional rounds)'
set label 996 '% of comparisons' @above
set yrange [y_lo:y_hi]
set xrange [least_x - 0.03 * most_x:most_x * 1.03]
set xtics (0, 1, 2, 3, 5, 10)
set key off
set arrow 1 from first 3, graph 0 to first 3, graph 1 nohead dt 3 lc rgb '#707070'
set label 1 'smallest effect ' at first 3, graph 0.7 right font small textcolor rgb '#404040'
load common.'ends.gp'
plot for [f=1:files] file(f) using (column('planted_pct')):(column('slower_pct')):(column('slower_low')):(column('slower_high')) \
    with yerrorlines lt 1 dt dash(f, 1), \
    for [f=1:files] file(f) using (column('planted_pct')):(column('same_pct')) with linespoints lt 2 dt dash(f, 1)
