# Whole models beside llama.cpp (tools/rivals.sh): how many times its tokens per second, by test and model.
subtitle = 'Tokens per second as a multiple of llama.cpp''s, both waiting for each token; pp: prompt, tg: writing, @d: after so many tokens'
load common.'style.gp'
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('test'))) nooutput }
tests = list
list = ''
do for [f=1:files] { stats file(f) using (add(strcol('model'))) nooutput }
ratio(k) = strcol('model') eq item(list, k) && strlen(strcol('ratio')) ? column('ratio') : NaN
seen = reach(1)
do for [k=1:items(list)] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(at(tests, strcol('test')), ratio(k))) nooutput }
    name_end = item(list, k)
    end_hue = hue(k)
    load common.'end.gp'
}
y_log = 1
y_lo = low / 1.3
y_hi = high * 1.3
set rmargin at screen 1 - 200.0 / width
set logscale y
set xrange [0.7:items(tests) + 0.2]
set yrange [y_lo:y_hi]
set xtics ('' 0)
set for [i=1:items(tests)] xtics add (item(tests, i) i)
set label 996 'times as fast as llama.cpp' @above
set key off
load common.'ends.gp'
plot 1 with lines lt 8 lw 1.5 dt 1, \
    for [f=1:files] for [k=1:items(list)] file(f) using (at(tests, strcol('test'))):(ratio(k)) \
    with linespoints lt k dt 3 lw 1 ps (f == 1 ? 1 : 0.6)
