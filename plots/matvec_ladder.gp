# Every kernel on every shape: a heat map of the time relative to the fastest kernel of the same shape and cache state.
subtitle = 'Q4_0 matrix times one token, GPU clock, chained: time divided by that of the fastest kernel (boxed: the fastest)'
set datafile separator comma
set datafile columnheaders
kernels = ''
cases = ''
caches = ''
has(l, text) = strstrt(l, '|'.text.'|')
add_to(l, text) = has(l, text) ? l : (l eq '' ? '|' : l).text.'|'
case_of(x) = strcol('matrix').' '.strcol('cache')
note_names(x) = column('n') > 0 ? (kernels = add_to(kernels, strcol('variant')), caches = add_to(caches, strcol('cache')), 0) : 0
note_cases(c) = column('n') > 0 && has(caches, strcol('cache')) == c ? (cases = add_to(cases, case_of(0)), 0) : 0
do for [f=1:files] { stats word(csv, f) using (note_names(0)) nooutput }
# The cases of one state of the caches stand together.
do for [c=1:strlen(caches)] { do for [f=1:files] { stats word(csv, f) using (note_cases(c)) nooutput } }
count(l) = strlen(l) < 2 ? 0 : (sum [c=2:strlen(l)] (substr(l, c, c) eq '|' ? 1 : 0))
kinds = count(kernels)
rows = files * kinds + (files > 1 ? files : 0)
columns = count(cases)
height = 280 + 30 * rows + 16 * (footer_lines - 1)
load common.'style.gp'
array best[columns * files]
do for [i=1:columns*files] { best[i] = 1e300 }
place(x) = at(cases, case_of(0))
ns(x) = column('n') > 0 ? column('gpu_ns') : NaN
slot(f) = place(0) + columns * (f - 1)
keep(f) = ns(0) == ns(0) && ns(0) < best[slot(f)] ? (best[slot(f)] = ns(0), 0) : 0
do for [f=1:files] { stats file(f) using (keep(f)) nooutput }
ratio(f) = ns(0) / best[slot(f)]
# The line of a kernel; with several devices, the name of each is above its kernels.
row(f, k) = k + (f - 1) * (kinds + 1) + (files > 1 ? 1 : 0)
tint(r) = mix(0x00568A, 0xF4F4F4, log(r) / log(8))
text(r) = r != r ? '' : r < 9.95 ? sprintf('%.1f', r) : sprintf('%.0f', r)

longest = 10
do for [k=1:kinds] { longest = strlen(item(kernels, k)) > longest ? strlen(item(kernels, k)) : longest }
set lmargin at screen (22 + 7.6 * longest) / width
set rmargin at screen 1 - 14.0 / width
set bmargin at screen (140.0 + 16 * (footer_lines - 1)) / height
set xrange [0.5:columns + 0.5]
set yrange [rows + 0.5:0.5]
unset grid
set border 0
set key off
set ytics scale 0 ('' 0)
set for [f=1:files] for [k=1:kinds] ytics add (item(kernels, k) row(f, k))
set xtics scale 0 rotate by 90 right ('' 0)
set for [i=1:columns] xtics add (item(cases, i) i)
if (files > 1) { do for [f=1:files] { set label 300 + f word(titles, f) at first 0.5, first row(f, 0) left font ',13' } }
# What has no time has no cell.
spot(x) = ns(0) == ns(0) ? place(0) : NaN
cell(f) = row(f, at(kernels, strcol('variant')))
plot for [f=1:files] file(f) using (spot(0)):(cell(f)):(place(0) - 0.5):(place(0) + 0.5):(cell(f) - 0.5):(cell(f) + 0.5):(tint(ratio(f))) \
    with boxxyerror lc rgb variable fs solid 1 noborder, \
    for [f=1:files] file(f) using (ratio(f) == 1 ? place(0) : NaN):(cell(f)):(place(0) - 0.44):(place(0) + 0.44):(cell(f) - 0.42):(cell(f) + 0.42) \
    with boxxyerror lt 1 lw 2.5 lc rgb '#E69F00' fs empty border lc rgb '#E69F00', \
    for [f=1:files] file(f) using (spot(0)):(cell(f)):(text(ratio(f))):(ink(tint(ratio(f)))) with labels font ',12' tc rgb variable
