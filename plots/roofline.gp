# Arithmetic against bandwidth: each case is numbered in the chart and named beside it.
subtitle = 'GPU clock, launches in a chain; the roofs are measured in the same run'
height = 640
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('variant').' '.strcol('shape'))) nooutput
n = items(list)
longest = 28
do for [i=1:n] { longest = strlen(item(list, i)) > longest ? strlen(item(list, i)) : longest }
set lmargin at screen 72.0 / width
set rmargin at screen 1 - (50 + 7.1 * longest) / width
set key off
set logscale xy
set format x '%g'
set xlabel 'flops per byte that must be moved, log scale'
set label 996 'GFLOP/s, log scale' @above
left = 1e300
right = 0
do for [f=1:files] {
    stats file(f) using (see(column('flop_per_byte'), column('gflop_s'))) nooutput
    stats file(f) using (column('flop_per_byte')) nooutput
    left = STATS_min < left ? STATS_min : left
    right = STATS_max > right ? STATS_max : right
}
roof = exists("m_roof_gflop_s") ? m_roof_gflop_s : exists("m_best_gflop_s") ? m_best_gflop_s : high
top = (roof > high ? roof : high) * 3
set xrange [left / 2:right * 2]
set yrange [low / 2:top]
unset ytics
set ytics out nomirror ('' 1) font small
set for [d=-3:6] for [k=0:2] ytics add (sprintf('%g', (1 + k * k) * 10.0 ** d) (1 + k * k) * 10.0 ** d)
lines = n + 4 > 24 ? n + 4 : 24
line_at(i) = 1 - (i - 0.5) / lines
do for [i=1:n] { set label 100 + i sprintf('%d  %s', i, item(list, i)) at graph 1.04, graph line_at(i) left font ',12' }
set label 50 'dotted: '.(exists("m_roof_gflop_s") ? 'measured arithmetic' : 'most GFLOP/s seen') at graph 1.04, graph line_at(n + 4) left font ',12'
if (exists("m_roof_gb_s")) { set label 51 sprintf('solid: %s GB/s, best size', show(m_roof_gb_s)) at graph 1.04, graph line_at(n + 2) left font ',12' }
if (exists("m_roof_memory_gb_s")) { set label 52 sprintf('dashed: %s GB/s, memory', show(m_roof_memory_gb_s)) at graph 1.04, graph line_at(n + 3) left font ',12' }
plot (exists("m_roof_gb_s") ? m_roof_gb_s * x : NaN) with lines lc rgb '#404040' lw 2, \
    (exists("m_roof_memory_gb_s") ? m_roof_memory_gb_s * x : NaN) with lines lc rgb '#404040' lw 2 dt 2, \
    roof with lines lc rgb '#404040' lw 1.5 dt 3, \
    for [f=1:files] file(f) using (column('flop_per_byte')):(column('gflop_s')) with points pt 7 ps (f == 1 ? 0.8 : 0.5) lc rgb hue(f), \
    file(1) using (column('flop_per_byte')):(column('gflop_s')):(sprintf('%d', at(list, strcol('variant').' '.strcol('shape')))) \
    with labels offset 1.1,0.4 font ',12' tc rgb hue(1)
