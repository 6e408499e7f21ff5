# How much a batch saves per token, and the parts of a token's time.
width = 1250
height = 560
load common.'style.gp'
set bmargin at screen 0.29
list = ''
stats file(1) using (add(strcol('matrix'))) nooutput
shape = first(list)
set multiplot layout 1,3
mine(variant, regime, cache, value) = strcol('matrix') eq shape && strcol('variant') eq variant \
    && strcol('regime') eq regime && strcol('cache') eq cache ? value : NaN
set xlabel 'tokens in a batch'

set lmargin at screen 0.065
set rmargin at screen 0.355
set title shape.': speed-up per token'
set ylabel 'B x T(1) / T(B)'
set logscale xy 2
set format y '%g'
set xtics (1, 2, 4, 8, 16, 32)
set key at screen 0.065, 0.165 left top Left reverse maxrows 3 font ',10' samplen 2
set xrange [0.9:36]
set yrange [*:*]
plot x with lines lc rgb '#808080' dt 3 lw 2 title 'ideal (each: every batch submitted alone)', \
    for [f=1:files] file(f) using (mine('token_outer', 'single', 'warm', column('batch'))):(column('speedup')) \
    smooth unique with linespoints lt 2 dt f title once(f, 'token outer, each, warm'), \
    for [f=1:files] file(f) using (mine('token_outer', 'chained', 'cold', column('batch'))):(column('speedup')) \
    smooth unique with linespoints lt 1 dt f title once(f, 'token outer, chained, cold'), \
    for [f=1:files] file(f) using (mine('reuse', 'single', 'cold', column('batch'))):(column('speedup')) \
    smooth unique with linespoints lt 5 dt f title once(f, 'reuse, each, cold'), \
    for [f=1:files] file(f) using (mine('reuse', 'chained', 'cold', column('batch'))):(column('speedup')) \
    smooth unique with linespoints lt 3 dt f title once(f, 'reuse, chained, cold')

unset label 999
unset logscale
set format y '%g'
set yrange [0:*]
set ylabel 'us per token, each submitted, cold'
unset xtics
set xtics nomirror out ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5)
set xrange [-0.6:5.6]
set style fill solid 0.85 border lc rgb '#202020'
set boxwidth 0.7
set key at screen 0.99, 0.165 right top maxrows 3 font ',10'
log2(x) = log(x) / log(2)
do for [p=1:2] {
    variant = p == 1 ? 'token_outer' : 'reuse'
    set lmargin at screen p == 1 ? 0.44 : 0.74
    set rmargin at screen p == 1 ? 0.685 : 0.99
    if (p == 2) { unset ylabel; set key off }
    set title (p == 1 ? 'token outer' : 'reuse').': parts of a token'
    part(name) = 1e-3 * column('fit_'.name.'_ns') / column('batch')
    plot file(1) using (mine(variant, 'single', 'cold', log2(column('batch')))):(part('submit') + part('launch') + part('stream') + part('compute')) \
        with boxes fs solid 1 lc rgb '#005A8C' dt 1 title 'submit', \
        file(1) using (mine(variant, 'single', 'cold', log2(column('batch')))):(part('launch') + part('stream') + part('compute')) \
        with boxes fs solid 1 lc rgb '#D55E00' dt 1 title 'launch', \
        file(1) using (mine(variant, 'single', 'cold', log2(column('batch')))):(part('stream') + part('compute')) \
        with boxes fs solid 1 lc rgb '#80CEB9' dt 1 title 'stream', \
        file(1) using (mine(variant, 'single', 'cold', log2(column('batch')))):(part('compute')) \
        with boxes fs solid 1 lc rgb '#EDEDED' dt 1 title 'compute', \
        file(1) using (mine(variant, 'single', 'cold', log2(column('batch')))):(1e-3 * column('time_ns') / column('batch')):(1e-3 * column('time_q1_ns') / column('batch')):(1e-3 * column('time_q3_ns') / column('batch')) \
        with yerrorbars lc rgb '#000000' pt 7 dt 1 title 'measured'
}
unset multiplot
