# What a launch costs: the time of command buffers of n launches, and the share of one.
width = 1150
height = 580
load common.'style.gp'
set bmargin at screen 0.30
set multiplot layout 1,2
set logscale xy
set xlabel 'launches in a command buffer'
set xtics (1, 10, 30, 100, 302, 1000)
variants = 'chain independent sorted alternating'
set format y '%g'

set lmargin at screen 0.085
set rmargin at screen 0.475
set title 'Time of a command buffer'
set ylabel 'us'
set key at screen 0.085, 0.175 left top Left reverse maxrows 3 samplen 2 width 2
plot for [f=1:files] for [k=1:4] file(f) \
    using (where('variant', word(variants, k), column('launches'))):(1e-3 * column('gpu_ns')) \
    with linespoints lt k dt dash(f, k) title once(f, word(variants, k).', GPU'), \
    for [f=1:files] file(f) using (where('variant', 'chain', column('launches'))):(1e-3 * column('wall_ns')) \
    with linespoints lt 7 dt f title once(f, 'chain, wall'), \
    (exists("m_launch_us") ? m_launch_us * x : NaN) with lines lc rgb '#808080' dt 3 title 'fitted launch cost x n'

unset label 999
set lmargin at screen 0.585
set rmargin at screen 0.985
set title 'Share of one launch'
set ylabel 'us per launch'
set key off
plot for [f=1:files] for [k=1:4] file(f) \
    using (where('variant', word(variants, k), column('launches'))):(1e-3 * column('gpu_ns') / column('launches')) \
    with linespoints lt k dt dash(f, k) title once(f, word(variants, k).', GPU'), \
    for [f=1:files] file(f) using (where('variant', 'chain', column('launches'))):(1e-3 * column('wall_ns') / column('launches')) \
    with linespoints lt 7 dt f title once(f, 'chain, wall')
unset multiplot
