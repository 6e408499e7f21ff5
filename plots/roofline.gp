# Arithmetic against bandwidth.
width = 1200
height = 640
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('variant').' '.strcol('shape'))) nooutput
set lmargin at screen 0.075
set rmargin at screen 0.64
set key outside right top Left reverse maxcols 1
set logscale xy
set format x '%g'
set format y '%g'
set xlabel 'flops per byte that must be moved'
set ylabel 'GFLOP/s'
set title 'Roofline: kernels against measured bandwidth and arithmetic'
set xrange [0.05:*]
# Beyond the twelve line types marks change, so that no two cases look alike.
array marks[19] = [7, 5, 9, 11, 13, 6, 4, 8, 2, 1, 3, 12, 14, 15, 2, 1, 3, 12, 10]
mark(k) = marks[1 + (k - 1) % 19]
plot (exists("m_roof_gb_s") ? m_roof_gb_s * x : NaN) with lines lc rgb '#404040' lw 2 title 'measured bandwidth, best size', \
    (exists("m_roof_memory_gb_s") ? m_roof_memory_gb_s * x : NaN) with lines lc rgb '#404040' lw 2 dt 2 title 'measured bandwidth, memory', \
    (exists("m_roof_gflop_s") ? m_roof_gflop_s : exists("m_best_gflop_s") ? m_best_gflop_s : NaN) with lines lc rgb '#404040' lw 1.5 dt 3 title \
    (exists("m_roof_gflop_s") ? 'measured arithmetic' : 'highest GFLOP/s seen'), \
    for [f=1:files] for [k=1:items(list)] file(f) \
    using (strcol('variant').' '.strcol('shape') eq item(list, k) ? column('flop_per_byte') : NaN):(column('gflop_s')) \
    with points lt k pt mark(k) lw 1.5 ps (f == 1 ? 1.5 : 0.9) title once(f, item(list, k))
