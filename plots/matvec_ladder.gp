# Every variant on every shape.
width = 1150
height = 600
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('matrix').' '.strcol('cache'))) nooutput
cases = list
list = ''
stats file(1) using (add(strcol('variant'))) nooutput
n = items(list)
# Many shapes need room, and names that stand upright.
is_crowded = items(cases) > 6
if (is_crowded) width = 480 + 44 * items(cases)
if (is_crowded) height = 700
if (is_crowded) load common.'style.gp'
if (is_crowded) set bmargin at screen 0.25
set lmargin at screen 80.0 / width
set rmargin at screen 1 - 345.0 / width
set key outside right top Left reverse
set logscale y
set format y '%g'
set xrange [0.5:items(cases) + 0.5]
set ylabel 'GB/s (GPU, chained)'
set xlabel ' '
set xtics nomirror out ('' 0)
if (is_crowded) set xtics rotate by 60 right
set for [i=1:items(cases)] xtics add (item(cases, i) i)
set for [i=1:items(cases)-1] arrow from i + 0.5, graph 0 to i + 0.5, graph 1 nohead lc rgb '#B0B0B0' lw 1
set title 'Q4_0 matrix times one token: every kernel on every shape'
plot for [f=1:files] for [k=1:n] file(f) \
    using (where('variant', item(list, k), at(cases, strcol('matrix').' '.strcol('cache')) + 0.8 * ((k - 0.5) / n - 0.5) + 0.02 * (f - 1))):(column('gb_s')) \
    with points lt k lw 1.5 ps (f == 1 ? 1.3 : 0.8) title once(f, item(list, k))
