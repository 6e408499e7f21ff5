# How much a batch saves per token, and the parts of a token's time. The parts are differences of measured medians,
# which add up to the measured time: the submit is the wall time alone minus the GPU time in a chain, the launch is that
# of an empty kernel, weights from memory are cold minus warm, and the kernel is what is left.
height = 620
load common.'style.gp'
list = ''
stats file(1) using (add(strcol('matrix'))) nooutput
shape = first(list)
subtitle = 'Q4_0 '.shape.', cold caches; alone: wall clock around each submit, chained: GPU clock without the submit'
set label 998 subtitle at screen 12.0 / width, 1 - (19 + 22.0 * finding_lines) / height left font ',13' textcolor rgb '#404040'
set tmargin at screen 1 - (head + 50.0) / height
set multiplot layout 1,2
mine(variant, regime, cache, value) = strcol('matrix') eq shape && strcol('variant') eq variant \
    && strcol('regime') eq regime && strcol('cache') eq cache ? value : NaN
set xlabel 'tokens in a batch, log scale'

variants = 'token_outer token_outer reuse reuse'
regimes = 'single chained single chained'
names = '"token outer, alone" "token outer, chained" "reuse, alone" "reuse, chained"'
right = 1
do for [k=1:4] {
    do for [f=files:1:-1] { last_x = -1e300; last_y = NaN; stats file(f) using (see(mine(word(variants, k), word(regimes, k), 'cold', column('batch')), column('speedup'))) nooutput }
    right = last_x > right ? last_x : right
    name_end = word(names, k)
    end_hue = hue(k)
    load common.'end.gp'
}
# Lines of the ideal, and of nothing saved.
last_x = right
last_y = right
name_end = 'ideal'
end_hue = '#707070'
load common.'end.gp'
y_log = 1
y_lo = 0.8
y_hi = (high > right ? high : right) * 1.15
set lmargin at screen 50.0 / width
set rmargin at screen 0.345
set label 996 'times as fast per token: B x T(1) / T(B), log scale' at graph 0, graph 1 left offset -3.5,1.1 font small textcolor rgb '#404040'
set logscale xy 2
set format y '%g'
set xtics (1, 2, 4, 8, 16, 32)
set key off
set xrange [0.9:right * 1.1]
set yrange [y_lo:y_hi]
load common.'ends.gp'
set ytics (1, 2, 4, 8, 16, 32)
plot x with lines lc rgb '#808080' dt 3 lw 2, \
    for [f=1:files] for [k=1:4] file(f) using (mine(word(variants, k), word(regimes, k), 'cold', column('batch'))):(column('speedup')) \
    smooth unique with linespoints lt k dt dash(f, 1)

# Parts of the first device, µs per token, token outer and reuse beside each other.
load common.'again.gp'
unset logscale
array wall[128]
array gpu[128]
array warm[128]
array empty[128]
array spot[128]
array batch[128]
sets = 0
find(variant, b) = (found = 0, sum [i=1:sets] (spot[i] eq variant.b ? (found = i, 0) : 0), found)
note(variant) = (b = column('batch'), i_ = find(variant, strcol('batch')), \
    i_ == 0 ? (sets = sets + 1, i_ = sets, spot[i_] = variant.strcol('batch'), batch[i_] = b, 0) : 0, \
    strcol('regime') eq 'single' && strcol('cache') eq 'cold' ? (wall[i_] = 1e-3 * column('time_ns') / b, 0) : 0, \
    strcol('regime') eq 'chained' && strcol('cache') eq 'cold' ? (gpu[i_] = 1e-3 * column('time_ns') / b, 0) : 0, \
    strcol('regime') eq 'chained' && strcol('cache') eq 'warm' ? (warm[i_] = 1e-3 * column('time_ns') / b, \
        empty[i_] = 1e-3 * column('launch_ns') / b, 0) : 0, 0)
do for [i=1:128] {
    wall[i] = NaN
    gpu[i] = NaN
    warm[i] = NaN
    empty[i] = NaN
    spot[i] = ''
    batch[i] = NaN
}
stats file(1) using (strcol('matrix') eq shape ? note(strcol('variant')) : 0) nooutput
log2(x) = log(x) / log(2)
is_reuse(i) = substr(spot[i], 1, 5) eq 'reuse'
place(i) = log2(batch[i]) + (is_reuse(i) ? 0.2 : -0.2)
# A difference below 0 is noise: it is drawn as nothing. Without the time of an empty launch there is no such part.
part(v) = v > 0 ? v : 0
least(a, b) = a < b ? a : b
on_gpu(i) = least(gpu[i], wall[i])
launch(i) = empty[i] == empty[i] ? empty[i] : 0
set lmargin at screen 0.60
set rmargin at screen 0.99
set label 996 'µs per token, alone (left bars: token outer, right: reuse)' at graph 0, graph 1 left offset -3.5,1.1 font small textcolor rgb '#404040'
if (files > 1) { set label 995 word(titles, 1) at graph 0.98, graph 0.7 right font small }
set xtics ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5)
set xrange [-0.6:log2(right) + 0.6]
# Above the bars is room for the key.
tallest = 0
do for [i=1:sets] { if (wall[i] > tallest) { tallest = wall[i] } }
set yrange [0:1.32 * tallest]
set grid noxtics ytics
set boxwidth 0.36
set key inside right top Left reverse
# Arrays are plotted as text with spaces.
set datafile separator whitespace
set datafile nocolumnheaders
plot wall using (place($1)):2 with boxes lc rgb '#0072B2' title 'submit and wait', \
    gpu using (place($1)):(on_gpu($1)) with boxes lc rgb '#D55E00' title 'launch', \
    gpu using (place($1)):(part(on_gpu($1) - launch($1))) with boxes lc rgb '#80CEB9' title 'weights from memory', \
    warm using (place($1)):(part(least($2, on_gpu($1)) - launch($1))) with boxes lc rgb '#C8C8C8' title 'rest of the kernel'
unset multiplot
